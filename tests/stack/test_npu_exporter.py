import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.stack.npu_exporter import NpuExporter, parse
from capture_canary.stack.npus import NpusUnknownError

NOW = 1_788_511_200.0


def sample(name: str, phy_id: object, value: object, age: float = 1.0, **labels: str) -> str:
    everything = {
        "id": phy_id,
        "model_name": "910_9392",
        "vdie_id": "1-2-3",
        "pcie_bus_info": f"0000:9{phy_id}:00.0",
        **labels,
    }
    inside = ",".join(f'{key}="{value}"' for key, value in everything.items())
    return f"{name}{{{inside}}} {value} {int((NOW - age) * 1000)}\n"


def chip(phy_id: int, processes: int = 0, health: int = 1, age: float = 1.0) -> str:
    prefix = "npu_chip_info_"
    return (
        "# HELP npu_chip_info_health_status the npu health status\n"
        "# TYPE npu_chip_info_health_status gauge\n"
        + sample(prefix + "health_status", phy_id, health, age)
        + sample(prefix + "hbm_used_memory", phy_id, 3143, age)
        + sample(prefix + "hbm_total_memory", phy_id, 65536, age)
        + sample(prefix + "utilization", phy_id, 0, age)
        + sample(prefix + "process_info_num", phy_id, processes, age)
    )


def test_reads_chips_and_processes() -> None:
    held = sample(
        "npu_chip_info_process_info",
        1,
        54980.0,
        process_id="412007",
        container_name="default_pod-a_server",
    )
    npus = parse(chip(0) + chip(1, processes=1) + held + "machine_npu_nums 2\n", now=NOW)
    assert [(c.phy_id, c.processes, c.health) for c in npus.chips] == [(0, 0, "OK"), (1, 1, "OK")]
    assert npus.chips[0].hbm_used_mb == 3143
    assert npus.chips[0].bus_id == "0000:90:00.0"
    (process,) = npus.on(1)
    assert (process.pid, process.memory_mb) == (412007, 54980)
    assert process.name == "default_pod-a_server"


def test_an_idle_chip_s_empty_process_sample_is_no_process() -> None:
    empty = sample("npu_chip_info_process_info", 0, 0, process_id="", container_name="")
    npus = parse(chip(0) + empty, now=NOW)
    assert npus.processes == ()
    assert npus.chips[0].processes == 0


@pytest.mark.parametrize("value", [-1, "NaN", "+Inf", 4294967295])
def test_a_count_that_failed_is_not_zero(value: object) -> None:
    text = chip(0).replace("process_info_num", "dropped")
    npus = parse(text + sample("npu_chip_info_process_info_num", 0, value), now=NOW)
    assert npus.chips[0].processes is None


def test_a_process_shown_counts_where_the_number_failed() -> None:
    text = sample("npu_chip_info_process_info_num", 0, -1)
    text += sample("npu_chip_info_process_info", 0, 100, process_id="7")
    assert parse(text, now=NOW).chips[0].processes == 1


@pytest.mark.parametrize(("value", "health"), [(0, "not OK"), ("NaN", "unknown"), (7, "unknown")])
def test_only_one_is_healthy(value: object, health: str) -> None:
    text = sample("npu_chip_info_health_status", 0, value)
    text += sample("npu_chip_info_health_status", 0, 1)  # a virtual NPU of the same chip
    assert parse(text, now=NOW).chips[0].health == health


@pytest.mark.parametrize("age", [31.0, 3600.0, -6.0])
def test_old_and_future_samples_are_not_believed(age: float) -> None:
    with pytest.raises(ValueError, match="s old"):
        parse(chip(0) + chip(1, age=age), now=NOW)


def test_samples_without_a_time_are_not_believed() -> None:
    with pytest.raises(ValueError, match="carries no time"):
        parse('npu_chip_info_process_info_num{id="0"} 0\n', now=NOW)


@pytest.mark.parametrize("text", ["", "up 1\n", 'npu_chip_info_process_info_num{id="x"} 0 1\n'])
def test_a_page_without_npus_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="no npu_chip_info samples"):
        parse(text, now=NOW)


@given(st.text(alphabet=st.sampled_from('{}="\\ #0123456789.eid,\nx'), max_size=200))
def test_a_hostile_page_is_read_or_refused(tail: str) -> None:
    try:
        npus = parse(chip(0) + "npu_chip_info_process_info_num{" + tail, now=NOW)
    except ValueError:
        return
    assert npus.chips


@contextmanager
def serving(answer: bytes, *, drip: bool = False) -> Iterator[str]:
    """A server that gives one answer to everyone, or gives it a byte at a time."""
    stop = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.1)

    def serve() -> None:
        while not stop.is_set():
            try:
                client, _ = server.accept()
            except TimeoutError:
                continue
            with client:
                try:
                    client.recv(65536)
                    for i in range(0, len(answer), 1 if drip else len(answer)):
                        if drip and stop.wait(0.05):
                            break
                        client.sendall(answer[i : i + (1 if drip else len(answer))])
                except OSError:
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/metrics"
    finally:
        stop.set()
        thread.join()
        server.close()


def page(body: str) -> bytes:
    return b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body.encode()


def test_reads_a_page() -> None:
    fresh = chip(0).replace(str(int((NOW - 1) * 1000)), str(int(time.time() * 1000)))
    with serving(page(fresh)) as url:
        assert NpuExporter(url).read().chips[0].processes == 0


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.0 403 Forbidden\r\n\r\n", "status 403"),
        (b"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", "status 302"),
        (b"nonsense\r\n", "npu-exporter at"),
        (page("up 1\n"), "no npu_chip_info"),
        (page(chip(0)), "s old"),
        (page(chip(0)).replace(b"Content-Type", b"Content-Length: 99999\r\nX"), "broke off"),
    ],
)
def test_any_other_answer_is_an_error(answer: bytes, says: str) -> None:
    with serving(answer) as url, pytest.raises(NpusUnknownError, match=says):
        NpuExporter(url).read()


def test_a_page_that_drips_is_ended() -> None:
    begin = time.monotonic()
    page_of_lines = page(chip(0))
    with (
        serving(page_of_lines, drip=True) as url,
        pytest.raises(NpusUnknownError, match="npu-exporter at"),
    ):
        NpuExporter(url, deadline=0.5).read()
    assert time.monotonic() - begin < 0.05 * len(page(chip(0)))


def test_a_page_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capture_canary.stack.npu_exporter.MAX_PAGE", 1000)
    with serving(page("x" * 2000)) as url, pytest.raises(NpusUnknownError, match="over 1000 bytes"):
        NpuExporter(url).read()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/", "http://", "http://[::1", "x"])
def test_only_http_addresses(url: str) -> None:
    with pytest.raises(NpusUnknownError, match="npu-exporter at"):
        NpuExporter(url).read()


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NpusUnknownError, match="refused"):
        NpuExporter(f"http://127.0.0.1:{port}/metrics").read()
