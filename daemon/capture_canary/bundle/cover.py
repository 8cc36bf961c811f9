"""The cover page of a bundle, in English and Chinese."""

from capture_canary.doctor.findings import Findings
from capture_canary.doctor.screen import versions
from capture_canary.store import Probe
from capture_canary.trend.advice import remedy
from capture_canary.trend.texts import LANGUAGES, Language

_TEXTS: dict[str, dict[Language, str]] = {
    "title": {
        "en": "Capture Canary: does graph capture get slower with every graph captured on this node?",
        "zh": "Capture Canary：本节点上每捕获一张图，后续图捕获是否变慢？",
    },
    "emulated": {
        "en": "EMULATED: this says nothing of any real NPU.",
        "zh": "模拟运行：不代表任何真实 NPU。",
    },
    "stack": {"en": "Stack", "zh": "软件栈"},
    "soc": {"en": "SoC", "zh": "SoC"},
    "verdict": {"en": "Last verdict", "zh": "最近结论"},
    "none": {"en": "nothing was measured yet", "zh": "尚未测量"},
    "remedy": {"en": "Remedy", "zh": "处置建议"},
    "servers": {"en": "Serving processes", "zh": "推理服务进程"},
    "redacted": {
        "en": "Host names, addresses, serial numbers and secrets were replaced; manifest.json counts them.",
        "zh": "主机名、地址、序列号和密钥已被替换；数量见 manifest.json。",
    },
    "plain": {
        "en": "Nothing was redacted: whoever made this asked for it. It names hosts and addresses.",
        "zh": "未做脱敏（按制作者要求）：其中包含主机名和地址。",
    },
    "files": {
        "en": "doctor.json: what runs here. probes.json: verdicts with their series. environment.txt: named "
        "variables only. plog/: CANN's logs by PID. npu-smi.txt, driver.txt, our.log. manifest.json: every file with "
        "its checksum, and what is missing.",
        "zh": "doctor.json：本节点运行情况。probes.json：结论及其捕获序列。environment.txt：仅列出白名单变量。plog/：按 PID 的 "
        "CANN 日志。npu-smi.txt、driver.txt、our.log。manifest.json：所有文件及校验和，以及缺失项。",
    },
}


def cover(found: Findings, last: Probe | None, *, redacted: bool) -> str:
    """Return the page."""
    return "\n\n".join(_page(found, last, language, redacted=redacted) for language in LANGUAGES)


def _page(found: Findings, last: Probe | None, language: Language, *, redacted: bool) -> str:
    def say(key: str) -> str:
        return _TEXTS[key][language]

    lines = [say("title"), ""]
    if found.emulated or (last and last.emulated):
        lines.append(say("emulated"))
    lines.append(f"{say('stack')}: {versions(found.node.stack)} ({found.stack_id})")
    lines.append(f"{say('soc')}: {found.node.soc or '?'}")
    cause = f" ({last.cause})" if last and last.cause else ""
    verdict = f"{last.verdict}{cause}: {last.reason}" if last else say("none")
    lines.append(f"{say('verdict')}: {verdict}")
    if last and last.report:
        text = remedy(last.report, soc=found.node.soc, mode=last.mode, language=language)
        lines.append(f"{say('remedy')}: {text}")
    lines.append(f"{say('servers')}: {len(found.expected)}")
    lines += [one.advice[language] for one in found.expected[:4] if one.advice[language]]
    lines += ["", say("redacted" if redacted else "plain"), say("files")]
    return "\n".join(lines) + "\n"
