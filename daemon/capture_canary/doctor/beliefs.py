"""What is believed about real CANN, by its public sources, and could not be tried: each with a check of its own."""

from collections.abc import Callable
from typing import NamedTuple

from capture_canary.doctor import measured
from capture_canary.doctor.answer import Answer
from capture_canary.doctor.evidence import Evidence
from capture_canary.stack import versions
from capture_canary.stack.exposure import family


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
    Assumption("captures_seen", "the tracer sees every capture with its collectives", "torch-npu FunctionLoader; tried on the emulated CANN only", measured.captures_seen),
    Assumption("copies_seen", "the tracer sees the copies of an eager AI_CPU collective", "hcomm hccl_communicator_host.cc", measured.copies_seen),
    Assumption("default_mode", "unset, A3 takes AI_CPU (copies) and A2 HOST (none)", "hccl HCCL_OP_EXPANSION_MODE.md at v9.1.0", measured.unset_mode),
    Assumption("aiv_has_no_copies", "with AIV a capture of small payloads makes no H2D copy", "hcomm-900 OrchestrateAicpu", measured.aiv),
    Assumption("growth_law", "copies grow by (P + S)k² a capture before hcomm 9.1.0, and not from it on", "hcomm's sources, run on a CPU", measured.law),
    Assumption("copy_time", "one H2D copy of a list's node takes between 0.2 and 200 µs", "none public", measured.copy_time),
    Assumption("communicator_hbm", "a communicator takes two buffers of HCCL_BUFFSIZE", "hccl environment variables; HcclCommConfig.md", measured.hbm),
    Assumption("hbm_given_back", "HBM is free again once the probe has ended", "none public", measured.given_back),
    Assumption("ports", "HCCL_HOST_SOCKET_PORT_RANGE=auto keeps a probe off the servers' ports 60000 to 60015", "vllm-ascend #405, #16205", measured.ports),
    Assumption("streams", "a chip has about 1984 streams, of which a probe's graphs take few", "runtime 06_stream_management.md", measured.streams),
)  # fmt: skip
