"""The child of a probe with vLLM: starts one engine over the spec's NPUs, whose workers capture round after round."""
# pyright: reportMissingImports=false

import contextlib
import os
import select
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from capture_canary.model import Capture, GraphsFate
from capture_canary.probe.messages import (
    Captured,
    Control,
    Ended,
    Failed,
    Noted,
    Record,
    Spec,
    Started,
    encode,
)
from capture_canary.probe.vllm import modes, tiny

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_USE_V1": "1",
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "VLLM_ASCEND_ENABLE_NZ": "0",
    "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:False",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "TASK_QUEUE_ENABLE": "1",
}
"""As in the first description of the fault, and offline."""
MAX_SEQUENCES = 24
LONGEST_FOLDER = 107 - len("/00000000-0000-0000-0000-000000000000")
"""Bytes: unix(7) has 107 for the path of a socket, and vLLM names them by UUID."""
FALLEN_BACK = "only the graphs of vLLM's own start were seen, it could not be told to capture again"
EXTENSION = "capture_canary.probe.vllm.extension.CaptureCanaryRounds"


class VllmLeader:
    """Runs a spec by one engine."""

    def __init__(self, spec: Spec, records: int, stdin: int) -> None:
        """Bind to the pipes of the runner."""
        self._spec = spec
        self._records = records
        self._stdin = stdin
        self._step = "Open"

    def run(self) -> int:
        """Start, control, capture; 0 when all of it was made."""
        try:
            self._run()
        except Exception as error:  # noqa: BLE001  # whatever vLLM raises, the runner is to hear it
            reason = f"{error}"[:1000] or type(error).__name__
            self._record(Failed(rank=0, step=self._step, reason=reason))
            return 1
        self._record(Ended())
        return 0

    def _run(self) -> None:
        devices = self._spec.devices
        engine = start(self._spec)
        in_force: str | None = None
        for seen in engine.collective_rpc("capture_canary_open"):
            in_force = seen.pop("graph_mode")
            self._record(Started(**{**seen, "device": devices[seen["rank"]]}))
        if in_force == "NONE":
            raise modes.ModeError(
                f"vLLM captures nothing: it made cudagraph_mode {self._spec.graph_mode or ''} into NONE"
            )
        self._step = "RunControl"
        for rank, copies in enumerate(engine.collective_rpc("capture_canary_control")):
            self._record(Control(rank=rank, copies=copies))
        self._step = "MakeCapture"
        if _at_start(self._spec):
            self._captured(engine.collective_rpc("capture_canary_start"), "kept")
            return
        for number in range(self._spec.rounds):
            if select.select([self._stdin], [], [], 0)[0]:
                break  # the runner wants no more
            found = engine.collective_rpc("capture_canary_round", args=(number,))
            missing = next((seen["missing"] for seen in found if "missing" in seen), None)
            if missing is None:
                self._captured(found, "destroyed")
                continue
            if number:
                raise RuntimeError(missing)
            self._record(Noted(text=f"{FALLEN_BACK}: {missing}"))
            self._captured(engine.collective_rpc("capture_canary_start"), "kept")
            break

    def _captured(self, found: Iterable[dict[str, Any]], graphs: GraphsFate) -> None:
        """Record what each rank captured."""
        series = [kind.graphs for kind in self._spec.kinds].index(graphs)
        for rank, seen in enumerate(found):
            for capture in seen["captures"]:
                self._record(
                    Captured(
                        rank=rank,
                        series=series,
                        mode=seen["mode"],
                        peers=None,
                        capture=msgspec.convert(capture, Capture),
                    )
                )

    def _record(self, record: Record) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._records, encode(record))


def start(spec: Spec) -> Any:
    """Start the LLM of a spec: vLLM captures its sizes, its workers have the methods of ours.

    Raises:
        modes.ModeError: its version does not capture in the mode that is wanted.
    """
    os.environ.update(ENVIRONMENT)
    os.environ.pop("ASCEND_LAUNCH_BLOCKING", None)
    if spec.devices != tuple(range(len(spec.devices))):
        os.environ["ASCEND_RT_VISIBLE_DEVICES"] = ",".join(map(str, spec.devices))
    folder = Path(os.environ["CAPTURE_CANARY_TRACE_DIR"])
    if len(os.fsencode(folder)) <= LONGEST_FOLDER:
        # vLLM leaves the sockets of ended engines where they are: let them go with the folder of the arm.
        os.environ["VLLM_RPC_BASE_PATH"] = str(folder)
    from vllm import LLM  # noqa: PLC0415  # reads the environment that was just set

    mode = modes.chosen(spec.graph_mode, metadata.version("vllm-ascend"))
    # Decoding of more sequences than max_num_seqs is not captured.
    sequences = (
        max(MAX_SEQUENCES, *spec.shapes)
        if _at_start(spec) or mode == modes.DECODE
        else MAX_SEQUENCES
    )
    layers = tiny.layers(spec.collectives)
    model = spec.model or str(tiny.write(folder / "model", layers=layers, ranks=len(spec.devices)))
    return LLM(
        model=model,
        load_format="dummy",
        skip_tokenizer_init=True,
        dtype="bfloat16",
        seed=10,
        tensor_parallel_size=len(spec.devices),
        distributed_executor_backend="mp",
        max_model_len=128,
        max_num_seqs=sequences,
        max_num_batched_tokens=max(128, *spec.shapes),
        num_gpu_blocks_override=64,
        gpu_memory_utilization=0.5,
        use_tqdm_on_load=False,
        worker_extension_cls=EXTENSION,
        compilation_config=_compilation(spec, mode),
    )


def _compilation(spec: Spec, mode: str) -> dict[str, Any]:
    from vllm.config import CompilationConfig  # noqa: PLC0415  # as above

    config: dict[str, Any] = {"cudagraph_capture_sizes": list(spec.shapes)}
    # vLLM before 0.10.1 knows no modes: it captures a graph a piece.
    if "cudagraph_mode" in CompilationConfig.__dataclass_fields__:
        config["cudagraph_mode"] = mode
    return config


def _at_start(spec: Spec) -> bool:
    """Whether only what vLLM captures when it starts is wanted."""
    return all(kind.graphs == "kept" for kind in spec.kinds)
