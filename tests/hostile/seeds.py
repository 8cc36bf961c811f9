"""What the fuzzers of the C parts begin with: an input of each shape that the code knows."""

import struct

BOOT = "dd08842a-1111-2222-3333-444444444444"

NODE = b"\x02" + struct.pack("<iiQQII", 1, 0, 7, 1 << 20, 3, 1)
"""A slot of process 1, at byte 16 of a node."""

SEEDS: dict[str, list[bytes]] = {
    "settings": [
        b"",
        b"cann=8.5.0,soc=a3,npus=16,hbm=64GiB",
        b"cann=9.1.0-beta.1,hcomm=9.1.0-pr2405,soc=950,peers=1023,scratch=1,roce=0",
        b"cann=8.3.RC2,soc=a2,hbm=999999999999999999B",
        b"hcomm=10.0.0.alpha.1-beta2rc3",
    ],
    "faults": [
        b"fail:aclrtMemcpy:3:507899@1",
        b"hang:HcclAllReduce:20",
        b"slow:rtMemcpy:999999999",
        b"die:aclmdlRICaptureEnd:1@0",
    ],
    "environment": [
        b"AIV\ntrue\n200\n120\n1836\n60000\n60000,60050-60100\nauto",
        b"HOST\nstrict\n1\n1\n0\n1024\nauto\n1024-65535",
        b"AICPU_CacheDisable\nFALSE\n2147483647\n7200\n2147483647\n65520\n"
        + b"1024," * 15
        + b"1024\n",
    ],
    "node": [
        NODE,
        b"\x00ccnode\n\x00" + struct.pack("<II", 1, 512),
        b"\x02" + struct.pack("<iiQ", -1, 0, 1) + b"\xff" * 64,
        b"\xffccnode\n\x00" + struct.pack("<II", 1, 1),
    ],
    "meeting": [
        b"\x01" + struct.pack("<Ii", 0x48434C4C, 0),
        b"\x03" + struct.pack("<Ii", 0x48434C4C, 9),
        struct.pack("<IIII", 0, 80, 0, 0) + struct.pack("<IIQ", 0x4C434348, 0, 64) + b"x" * 64,
        struct.pack("<IIII", 0xFFFFFFF0, 0x50, 65536, 0) + struct.pack("<IIQ", 0x4C434348, 0, 64),
        struct.pack("<IIII", 1, 0, 0, 0x10001),
    ],
    "traces": [
        f"{BOOT}-4026531836-4711-123456.trace".encode(),
        b"Version=9.1.0\nversion_dir=cann\n",
        b"1 (a (b) c) S " + b"1 " * 19 + b"123456 0",
        b"/usr/local/Ascend/cann/x86_64-linux/lib64/libhccl.so",
    ],
}
