"""What is believed about real CANN, by its public sources, and could not be tried: each with a check of its own."""

from collections.abc import Callable
from typing import NamedTuple

from capture_canary.doctor.evidence import Evidence, Measured
from capture_canary.model import ArmName
from capture_canary.stack import versions
from capture_canary.stack.exposure import FIXED, default_mode, family, mitigates
from capture_canary.stack.npus import Npus
from capture_canary.trend.growth import copies_trend, matches_law

BUFFERS = 2
"""Buffers that a communicator takes, each of `buffer_mb`."""
CONTEXT_MB = 4096
"""HBM that contexts and the rest of a probe may take besides."""
PORTS = range(60000, 60016)
MICROSECONDS = (0.2, 200.0)
"""A copy of a list's node, by what its count costs a load: a few µs."""


class Answer(NamedTuple):
    """Whether an assumption holds here (None: cannot tell), and why one says so."""

    holds: bool | None
    why: str


class Assumption(NamedTuple):
    """One belief."""

    name: str
    belief: str
    source: str
    check: Callable[[Evidence], Answer]


def _toolkit_file(found: Evidence) -> Answer:
    return _said(found, "cann")


def _package_files(found: Evidence) -> Answer:
    answers = [_said(found, name) for name in ("hcomm", "hccl", "runtime")]
    return next((one for one in answers if not one.holds), answers[0])


def _driver_file(found: Evidence) -> Answer:
    if found.findings.emulated:
        return Answer(None, "the emulated node has no driver")
    return _said(found, "driver")


def _said(found: Evidence, name: str) -> Answer:
    if found.home is None:
        return Answer(None, "no CANN is installed here")
    fact = found.findings.node.stack[name]
    if fact.value is None:
        return Answer(False, f"{name}: {fact.source}")
    return Answer(True, f"{fact.source} says {fact.value}")


def _order(found: Evidence) -> Answer:
    text = found.version("hcomm")
    if text is None:
        return Answer(None, "hcomm's version is not known")
    return Answer(versions.parse(text) is not None, f"hcomm says {text}")


def _exports(found: Evidence) -> Answer:
    wanted = {
        "libacl_rt": ("aclrtMemcpy", "aclmdlRICaptureBegin", "aclmdlRICaptureEnd", "aclmdlRIDestroy"),
        "libruntime": ("rtMemcpy",),
        "libhccl": ("HcclAllReduce", "HcclAllGather"),
    }  # fmt: skip
    for library, names in wanted.items():
        if library not in found.libraries:
            return _unread(found, library)
        missing = [name for name in names if name not in found.libraries[library].exports]
        if missing:
            return Answer(False, f"{library}.so does not export {', '.join(missing)}")
    return Answer(True, f"{len(wanted)} libraries export what is preloaded over")


def _imports(found: Evidence) -> Answer:
    library = found.libraries.get("libhccl_plf")
    if library is None:
        return _unread(found, "libhccl_plf")
    crosses = "aclrtMemcpy" in library.imports
    return Answer(
        crosses, f"libhccl_plf.so {'imports' if crosses else 'does not import'} aclrtMemcpy"
    )


def _binding(found: Evidence) -> Answer:
    names = ("libhccl_plf", "libhcomm", "libhccl", "libacl_rt")
    for name in names:
        if name not in found.libraries:
            return _unread(found, name)
    inside = [name for name in names if found.libraries[name].symbolic]
    if inside:
        return Answer(False, f"{', '.join(inside)} bind inside (-Bsymbolic)")
    return Answer(True, "none of HCCL's libraries binds inside")


def _callback(found: Evidence) -> Answer:
    runtime = versions.parse(found.version("runtime"))
    library = found.libraries.get("libacl_rt")
    if library is None:
        return _unread(found, "libacl_rt")
    if runtime is None:
        return Answer(None, "the runtime's version is not known")
    there = "aclmdlRIDestroyRegisterCallback" in library.exports
    expected = runtime >= versions.Version(9, 0, 0, ())
    said = f"runtime {found.version('runtime')}: {'exported' if there else 'not exported'}"
    return Answer(there == expected, said)


def _unread(found: Evidence, library: str) -> Answer:
    return Answer(None, found.flaws.get(library, "no CANN is installed here"))


def _table(found: Evidence) -> Answer:
    node = found.findings.node
    if node.npus is None:
        return Answer(None, node.npus_error or "npu-smi was not run")
    if node.npus.unknown_lines or any(chip.phy_id is None for chip in node.npus.chips):
        return Answer(False, f"{node.npus.unknown_lines} lines of npu-smi's make no sense to us")
    return Answer(True, f"{len(node.npus.chips)} chips, every line understood")


def _soc(found: Evidence) -> Answer:
    shown = family(found.findings.node.soc)
    if found.measured is None:
        return Answer(None, found.why_not)
    fact = found.measured.report.stack.get("soc")
    called = family(fact.value) if fact else None
    if shown is None or called is None:
        return Answer(None, "npu-smi or CANN names no SoC that is known")
    return Answer(shown == called, f"npu-smi says {shown}, aclrtGetSocName {called}")


def _nodes(found: Evidence) -> Answer:
    node = found.findings.node
    if found.findings.emulated or not node.nodes or node.npus is None:
        return Answer(None, "there are no device nodes, or no npu-smi, here")
    chips = {chip.phy_id for chip in node.npus.chips}
    return Answer(
        set(node.nodes) <= chips, f"device nodes {list(node.nodes)}, chips {sorted(chips, key=str)}"
    )


def _exclusive(found: Evidence) -> Answer:
    node = found.findings.node
    if found.findings.emulated:
        return Answer(None, "the emulated node knows no containers")
    if node.npus_error and "another container holds" in node.npus_error:
        return Answer(True, node.npus_error)
    holders = {one.container.id for one in node.servers.servers if one.npus and one.container}
    shared = [
        n
        for n in node.nodes
        if len(
            {one.container.id for one in node.servers.servers if one.container and n in one.npus}
        )
        > 1
    ]
    if shared:
        return Answer(False, f"NPUs {shared} are held by more than one container")
    return Answer(None, f"{len(holders)} containers hold NPUs, none of them the same one")


def _captures_seen(found: Evidence) -> Answer:
    return _measured(found, _seen)


def _seen(measured: Measured) -> Answer:
    captures = [one for one in measured.captures("as_configured") if one.outcome == "ok"]
    counted = [one for one in captures if one.h2d_copies is not None and one.collectives]
    if not captures:
        return Answer(None, measured.failure or "nothing was captured")
    return Answer(
        len(counted) == len(captures), f"{len(counted)} of {len(captures)} captures were recorded"
    )


def _copies_seen(found: Evidence) -> Answer:
    return _measured(found, _control)


def _control(measured: Measured) -> Answer:
    control = measured.report.control
    if control is None and not measured.captures("as_configured"):
        return Answer(None, measured.failure or "nothing was captured")
    return Answer(
        bool(control), f"an eager AI_CPU collective made {control or 'no'} copies that were seen"
    )


def _default_mode(found: Evidence) -> Answer:
    soc = found.findings.node.soc

    def check(measured: Measured) -> Answer:
        mode = measured.report.mode
        default = default_mode(soc)
        if measured.settings.mode is not None or default is None or family(soc) == "950":
            return Answer(None, f"the mode is set, or {soc} was not analysed")
        copies = sum(one.h2d_copies or 0 for one in measured.captures("as_configured")[1:])
        expected = not mitigates(default)
        return Answer((copies > 0) == expected, f"unset ({mode}): {copies} copies in captures")

    return _measured(found, check)


def _aiv(found: Evidence) -> Answer:
    return _measured(found, lambda measured: _without_copies(measured, "aiv"))


def _without_copies(measured: Measured, arm: ArmName) -> Answer:
    captures = [one for one in measured.captures(arm) if one.h2d_copies is not None]
    if not captures:
        return Answer(None, measured.failure or f"the arm {arm} had nothing to capture")
    copies = sum(one.h2d_copies or 0 for one in captures)
    return Answer(copies == 0, f"{len(captures)} captures with AIV made {copies} copies")


def _law(found: Evidence) -> Answer:
    version = versions.parse(found.version("hcomm"))

    def check(measured: Measured) -> Answer:
        series = measured.series("ai_cpu")
        grown = [one for one in series if copies_trend(one) == "growing"]
        if version is None or not any(copies_trend(one) for one in series):
            return Answer(None, measured.failure or "hcomm's version or its copies are not known")
        said = (
            f"hcomm {found.version('hcomm')}: copies grow in {len(grown)} of {len(series)} series"
        )
        if version >= FIXED or not grown:
            return Answer(bool(grown) == (version < FIXED), said)
        met = [one for one in grown if matches_law(one)]
        return Answer(len(met) == len(grown), f"{said}, the law is met exactly in {len(met)}")

    return _measured(found, check)


def _copy_time(found: Evidence) -> Answer:
    return _measured(found, _one_copy)


def _one_copy(measured: Measured) -> Answer:
    captures = [one for one in measured.captures("ai_cpu") if one.h2d_copies and one.copy_seconds]
    if not captures:
        return Answer(None, measured.failure or "no copy was timed")
    each = sorted((one.copy_seconds or 0) / (one.h2d_copies or 1) * 1e6 for one in captures)
    middle = each[len(each) // 2]
    return Answer(
        MICROSECONDS[0] <= middle <= MICROSECONDS[1], f"one H2D copy takes {middle:.2f} µs"
    )


def _hbm(found: Evidence) -> Answer:
    before = found.findings.node.npus

    def check(measured: Measured) -> Answer:
        taken = _taken(before, measured.during, measured.devices)
        if not taken:
            return Answer(None, "HBM was not seen while the probe ran")
        least, most = BUFFERS * measured.settings.buffer_mb, max(taken)
        said = f"{most} MB a chip for buffers of {BUFFERS} x {measured.settings.buffer_mb} MB"
        if most < least:  # npu-smi is slow, a series short
            return Answer(None, f"{said}: the communicator may have been closed by then")
        return Answer(most <= least + CONTEXT_MB, said)

    return _measured(found, check)


def _given_back(found: Evidence) -> Answer:
    before = found.findings.node.npus

    def check(measured: Measured) -> Answer:
        left = _taken(before, measured.after, measured.devices)
        if not left:
            return Answer(None, "HBM was not seen after the probe")
        return Answer(max(left) <= 64, f"{max(left)} MB more in use than before")  # noqa: PLR2004  # the driver's rounding

    return _measured(found, check)


def _taken(before: Npus | None, then: Npus | None, devices: tuple[int, ...]) -> list[int]:
    """MB more in use on each chip than before."""
    used = [
        {chip.phy_id: chip.hbm_used_mb for chip in npus.chips if chip.hbm_used_mb is not None}
        for npus in (before, then)
        if npus
    ]
    if len(used) < 2:  # noqa: PLR2004  # one look is missing
        return []
    return [used[1][n] - used[0][n] for n in devices if n in used[0] and n in used[1]]


def _ports(found: Evidence) -> Answer:
    def check(measured: Measured) -> Answer:
        if not measured.ports:
            return Answer(None, "no port was seen to be opened")
        taken = sorted(measured.ports & set(PORTS))
        return Answer(not taken, f"the probe listened on {sorted(measured.ports)[:8]}")

    return _measured(found, check)


def _streams(found: Evidence) -> Answer:
    def check(measured: Measured) -> Answer:
        graphs = sum(len(one.captures) for one in measured.series("as_configured"))
        failed = any(one.outcome == "failed" for one in measured.captures("as_configured"))
        if failed or (measured.failure and "207008" in measured.failure):
            return Answer(
                False, f"a probe of {graphs} graphs ran out of streams: {measured.failure}"
            )
        return Answer(
            None, f"{graphs} graphs fitted; how many would, only servers' streams could tell"
        )

    return _measured(found, check)


def _measured(found: Evidence, check: Callable[[Measured], Answer]) -> Answer:
    return Answer(None, found.why_not) if found.measured is None else check(found.measured)


ASSUMPTIONS = (
    Assumption("toolkit_file", "the toolkit's version stands in <arch>-linux/ascend_toolkit_install.info", "hiascend instg_0064; runtime README.md", _toolkit_file),
    Assumption("package_files", "hcomm, hccl and runtime each have share/info/<package>/version.info (before 8.5: none, or <package>/version.info)", "runtime cann_info_utils.cpp; hcomm generate_version_info.py", _package_files),
    Assumption("version_order", "hcomm's version is one that has a place in the vendor's order", "runtime acl.cpp, aclsysGetVersionNum", _order),
    Assumption("driver_file", "the driver's version stands in driver/version.info", "vllm-ascend installation.md; content not seen", _driver_file),
    Assumption("exports", "libacl_rt exports aclrtMemcpy and the capture calls, libruntime rtMemcpy, libhccl the collectives", "runtime api_c.cc, acl_rt.h", _exports),
    Assumption("imports", "libhccl_plf calls aclrtMemcpy through its dynamic symbol table", "hcomm adapter_rts.cc, hccl_plf.cmake", _imports),
    Assumption("binding", "no library of HCCL's is linked with -Bsymbolic", "hccl_plf.cmake, hcomm.cmake; the flags of intf_pub were not seen", _binding),
    Assumption("destroy_callback", "aclmdlRIDestroyRegisterCallback is there from 9.0 on, and not before", "runtime acl_rt.h at v8.5.0 and v9.0.0", _callback),
    Assumption("npu_smi_table", "npu-smi prints one of the tables that are known", "vllm-ascend #9596, #16581, #2701", _table),
    Assumption("soc_name", "npu-smi and aclrtGetSocName name the same family", "tables as above; runtime's SoC names", _soc),
    Assumption("device_nodes", "/dev/davinciN is the chip whose Phy-ID is N", "mind-cluster devnode.go", _nodes),
    Assumption("exclusive", "a chip that one ordinary container holds is refused to another", "npu-smi's -8020; Ascend Docker Runtime's guide", _exclusive),
    Assumption("captures_seen", "the tracer sees every capture with its collectives", "torch-npu FunctionLoader; tried on the emulated CANN only", _captures_seen),
    Assumption("copies_seen", "the tracer sees the copies of an eager AI_CPU collective", "hcomm hccl_communicator_host.cc", _copies_seen),
    Assumption("default_mode", "unset, A3 takes AI_CPU (copies) and A2 HOST (none)", "hccl HCCL_OP_EXPANSION_MODE.md at v9.1.0", _default_mode),
    Assumption("aiv_has_no_copies", "with AIV a capture of small payloads makes no H2D copy", "hcomm-900 OrchestrateAicpu", _aiv),
    Assumption("growth_law", "copies grow by (P + S)k² a capture before hcomm 9.1.0, and not from it on", "hcomm's sources, run on a CPU", _law),
    Assumption("copy_time", "one H2D copy of a list's node takes between 0.2 and 200 µs", "none public", _copy_time),
    Assumption("communicator_hbm", "a communicator takes two buffers of HCCL_BUFFSIZE", "hccl environment variables; HcclCommConfig.md", _hbm),
    Assumption("hbm_given_back", "HBM is free again once the probe has ended", "none public", _given_back),
    Assumption("ports", "HCCL_HOST_SOCKET_PORT_RANGE=auto keeps a probe off the servers' ports 60000 to 60015", "vllm-ascend #405, #16205", _ports),
    Assumption("streams", "a chip has about 1984 streams, of which a probe's graphs take few", "runtime 06_stream_management.md", _streams),
)  # fmt: skip
