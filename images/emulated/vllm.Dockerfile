# A stand-in for an image of vllm-ascend: that of its CANN, with the packages of an environment that
# `capture-canary env create` made. Made by `capture-canary images standins --flavour vllm`.
ARG CANN=localhost/capture-canary-emulated/cann:9.1.0-a3-debian12-py3.11
FROM ${CANN}
ARG MADE_FROM=unknown
LABEL io.capture-canary.made-from="${MADE_FROM}"
COPY site-packages /usr/local/lib/python3.11/dist-packages
COPY standins /usr/local/Ascend/standins
ENV LD_LIBRARY_PATH=${LD_LIBRARY_PATH}:/usr/local/Ascend/standins \
    TASK_QUEUE_ENABLE=1 \
    OMP_NUM_THREADS=1
