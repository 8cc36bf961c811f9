"""The layout that Python reads is the one that C writes."""

import re
import subprocess
from pathlib import Path
from struct import Struct

from capture_canary.trace import layout
from capture_canary.trace.layout import FileFlag, RecordFlag, RecordKind

TRACER = Path(__file__).parents[2] / "daemon" / "tracer"
HEADER = (TRACER / "trace_format.h").read_text()

PROGRAM = r"""
#include <stddef.h>
#include <stdio.h>
#include "trace_format.h"
#define SIZE(TYPE) printf(#TYPE " %zu\n", sizeof(TYPE));
#define HEAD(FIELD) printf("head." #FIELD " %zu\n", offsetof(traceHeader, FIELD));
#define REC(FIELD) printf("record." #FIELD " %zu\n", offsetof(traceRecord, FIELD));
#define IS(NAME) printf(#NAME " %zu\n", (size_t)(NAME));
int main(void) {
    SIZE(traceHeader) SIZE(traceRecord) SIZE(traceCommunicator) SIZE(traceLibrary)
    HEAD(checksum) HEAD(pid) HEAD(boot_id) HEAD(mode) HEAD(hccl_started_ns) HEAD(communicators) HEAD(libraries)
    REC(sequence) REC(copy_ns) REC(device) REC(other_copies) REC(collectives) REC(communicators) REC(eager_copies)
    REC(lost)
    IS(TRACE_VERSION) IS(TRACE_BYTE_ORDER) IS(TRACE_FILE_BYTES) IS(TRACE_FOLDER_FILES) IS(TRACE_COMMUNICATORS)
    IS(TRACE_LIBRARIES) IS(TRACE_RECORD_CAPACITY) IS(TRACE_COLLECTIVES)
}
"""


def numbers_of_c(folder: Path) -> dict[str, int]:
    (folder / "layout.c").write_text(PROGRAM)
    command = ["gcc", f"-I{TRACER}", "-o", str(folder / "layout"), str(folder / "layout.c")]
    subprocess.run(command, check=True)
    printed = subprocess.run([folder / "layout"], check=True, capture_output=True, text=True).stdout
    return {name: int(number) for name, number in (line.split() for line in printed.splitlines())}


def offset(struct_format: str, fields: int) -> int:
    """Where the field behind so many others lies, by a struct's format."""
    codes = re.findall(r"(\d*)([a-zA-Z])", struct_format[1:])
    singles = [
        f"{n}s" if code == "s" else code
        for n, code in codes
        for _ in range(1 if code == "s" else int(n or 1))
    ]
    return Struct(struct_format[0] + "".join(singles[:fields])).size


def test_sizes_and_offsets(tmp_path):
    c = numbers_of_c(tmp_path)
    python = layout.LAYOUTS[1, "<"]
    assert python.header_bytes == c["traceHeader"]
    assert python.record.size == c["traceRecord"]
    assert python.communicator.size == c["traceCommunicator"]
    assert python.library.size == c["traceLibrary"]
    assert python.record_capacity == c["TRACE_RECORD_CAPACITY"]
    assert python.communicators_at == c["head.communicators"]
    assert python.libraries_at == c["head.libraries"]
    head = {"checksum": 6, "pid": 7, "boot_id": 11, "mode": 12, "hccl_started_ns": 15}
    assert {name: offset(python.head.format, n) for name, n in head.items()} == {
        n: c[f"head.{n}"] for n in head
    }
    record = {
        "sequence": 3,
        "copy_ns": 9 - 0,
        "device": 10,
        "other_copies": 14,
        "collectives": 22,
        "communicators": 38,
        "eager_copies": 46,
        "lost": 57,
    }
    assert {name: offset(python.record.format, n) for name, n in record.items()} == {
        n: c[f"record.{n}"] for n in record
    }


def test_constants(tmp_path):
    c = numbers_of_c(tmp_path)
    assert c["TRACE_VERSION"] == 1
    assert c["TRACE_BYTE_ORDER"] == layout.BYTE_ORDER
    assert c["TRACE_FILE_BYTES"] == layout.FILE_BYTES
    assert c["TRACE_FOLDER_FILES"] == layout.FOLDER_FILES
    assert c["TRACE_COMMUNICATORS"] == layout.COMMUNICATORS
    assert c["TRACE_LIBRARIES"] == layout.LIBRARIES
    assert c["TRACE_COLLECTIVES"] == len(layout.COLLECTIVES)
    assert f'"{layout.MAGIC.decode().strip()}\\n"' in HEADER


def test_enums():
    for enum, name in (
        (RecordKind, "traceRecordKind"),
        (RecordFlag, "traceRecordFlags"),
        (FileFlag, "traceFileFlags"),
    ):
        (body,) = re.findall(rf"enum {name} \{{(.*?)\}};", HEADER, re.DOTALL)
        declared = {
            n: int(a) << int(b or 0)
            for n, a, b in re.findall(r"TRACE_(\w+) = (\d+)(?: << (\d+))?", body)
        }
        assert declared == {member.name: member.value for member in enum}


def test_kinds_of_collectives_come_in_the_same_order():
    (body,) = re.findall(r"enum traceCollective \{(.*?)TRACE_COLLECTIVES", HEADER, re.DOTALL)
    declared = [name.replace("_", "") for name in re.findall(r"TRACE_(\w+)", body)]
    assert declared == [name.upper() for name in layout.COLLECTIVES]
