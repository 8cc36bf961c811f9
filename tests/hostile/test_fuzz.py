"""What others can write is read within bounds, whatever it is; bench/fuzzing.py runs longer, with libFuzzer."""

import pytest

from tests.hostile.fuzzing import C, build, mutate, seeds
from tests.hostile.seeds import SEEDS

RUNS = {"node": 500, "meeting": 500, "traces": 2000}


def test_every_fuzzer_is_run():
    shared = {"mutate"}
    assert {path.stem for path in C.glob("*.c")} - shared == set(SEEDS)


@pytest.mark.parametrize("name", SEEDS)
def test_mutated_input_breaks_nothing(tmp_path, name):
    runs = RUNS.get(name, 10_000)
    done = mutate(build(name, tmp_path), seeds(name, tmp_path), 1, runs)
    assert (done.returncode, done.stdout) == (0, f"{runs}\n"), done.stderr[-4000:]


def test_a_sanitizer_is_at_work(tmp_path, monkeypatch):
    """Or nothing could be found."""
    monkeypatch.setattr("tests.hostile.fuzzing.C", tmp_path)
    (tmp_path / "mutate.c").write_bytes((C / "mutate.c").read_bytes())
    (tmp_path / "over.c").write_text(
        "#include <stdint.h>\n#include <stdlib.h>\n"
        "int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {\n"
        "    uint8_t *one = malloc(1);\n"
        "    one[size / 16] = data[0];\n"
        "    free(one);\n"
        "    return 0;\n"
        "}\n"
    )
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed" / "0").write_bytes(b"0123456789")
    done = mutate(build("over", tmp_path), tmp_path / "seed", 1, 1000)
    assert done.returncode != 0
    assert "over.c:5" in done.stderr
