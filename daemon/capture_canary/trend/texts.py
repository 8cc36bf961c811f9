"""Every sentence of advice, in English and Chinese: whoever words advice words it here, and nowhere else.

What stands in braces is filled in from the node's own facts. A test sees that both languages name the same facts.
"""

from typing import Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

TEXTS: dict[str, dict[Language, str]] = {
    "aiv_warning": {
        "en": "validate AIV with your model first: it can hang models with mixture of experts or fused communication "
        "(MC2), and only one communicator of a process may use it",
        "zh": "请先用您的模型验证 AIV：它可能使混合专家（MoE）或通算融合（MC2）模型挂起，且一个进程中只能有一个通信域使用它",
    },
    "upgrade_or_aiv": {
        "en": "Move to CANN 9.1.0 or later, or set HCCL_OP_EXPANSION_MODE=AIV; {aiv_warning}.",
        "zh": "升级到 CANN 9.1.0 或更高版本，或设置 HCCL_OP_EXPANSION_MODE=AIV；{aiv_warning}。",
    },
    "upgrade_no_aiv": {
        "en": "Move to CANN 9.1.0 or later. AIV is no way out here: {why}.",
        "zh": "升级到 CANN 9.1.0 或更高版本。此处不能改用 AIV：{why}。",
    },
    "unset": {
        "en": "Unset HCCL_OP_EXPANSION_MODE ({mode}): the default here is {default}. Or move to CANN 9.1.0 or later.",
        "zh": "取消设置 HCCL_OP_EXPANSION_MODE（{mode}）：此处默认值为 {default}。或升级到 CANN 9.1.0 或更高版本。",
    },
    "when_it_suits": {
        "en": "Move to CANN 9.1.0 or later when it suits: at the measured size a load hardly notices.",
        "zh": "方便时升级到 CANN 9.1.0 或更高版本：按实测，加载几乎不受影响。",
    },
    "keep": {
        "en": "Keep {mode} until CANN is 9.1.0 or later.",
        "zh": "在 CANN 升级到 9.1.0 或更高版本之前，请保持 {mode}。",
    },
    "probe_again": {
        "en": "Remove what kept the measurement from its end, then probe again; until then nothing is known{hcomm}.",
        "zh": "排除妨碍测量完成的原因后重新探测；在此之前无法下结论{hcomm}。",
    },
    "mode_not_effective": {
        "en": "Set HCCL_OP_EXPANSION_MODE in the environment that starts the server, before its first collective; look "
        "for a communicator that overrides it, and on A3 for payloads above the size at which AIV falls back to "
        "AI_CPU. Or move to CANN 9.1.0 or later.",
        "zh": "请在启动服务的环境中、首次集合通信之前设置 HCCL_OP_EXPANSION_MODE；检查是否有通信域覆盖了该设置，以及在 A3 上"
        "数据量是否超过 AIV 回退到 AI_CPU 的阈值。或升级到 CANN 9.1.0 或更高版本。",
    },
    "regression": {
        "en": "Check which hcomm is really loaded (share/info/hcomm/version.info), then report this to the vendor with "
        "the output of `capture-canary probe --json`. Meanwhile HCCL_OP_EXPANSION_MODE=AIV may help; {aiv_warning}.",
        "zh": "请确认实际加载的 hcomm 版本（share/info/hcomm/version.info），并附上 `capture-canary probe --json` 的输出"
        "向厂商报告。在此期间 HCCL_OP_EXPANSION_MODE=AIV 可能有所帮助；{aiv_warning}。",
    },
    "copies_unattributed": {
        "en": "Keep the output of `capture-canary probe --json` and compare with CANN 9.1.0 or later; do not count on "
        "AIV here.",
        "zh": "请保留 `capture-canary probe --json` 的输出，并与 CANN 9.1.0 或更高版本对比；此处不要寄望于 AIV。",
    },
    "other": {
        "en": "The H2D copies are not it: look for host memory pressure, a growing heap (garbage collection inside the "
        "capture) or a driver that slows down, and compare with another node of the same image.",
        "zh": "原因不在 H2D 拷贝：请检查主机内存压力、不断增长的堆（捕获期间的垃圾回收）或变慢的驱动，并与使用相同镜像的其他节点对比。",
    },
    "time_only": {
        "en": "Let copies be counted (start the server by `capture-canary exec`, or allow the probe its tracer): they "
        "tell the cause.",
        "zh": "请让拷贝次数可被统计（用 `capture-canary exec` 启动服务，或允许探测使用其跟踪库）：由此可知原因。",
    },
    "suspect": {
        "en": "Let copies be counted (start the server by `capture-canary exec`), or run `capture-canary probe` on free "
        "NPUs.",
        "zh": "请让拷贝次数可被统计（用 `capture-canary exec` 启动服务），或在空闲 NPU 上运行 `capture-canary probe`。",
    },
    "tracer_blind": {
        "en": "See that LD_PRELOAD reaches the process with libcapturetrace.so in it, that no DISABLE file lies in the "
        "trace folder, and that the process is not statically linked or set-uid.",
        "zh": "请确认含 libcapturetrace.so 的 LD_PRELOAD 传到了该进程，跟踪目录中没有 DISABLE 文件，且该进程不是静态链接或 set-uid 程序。",
    },
    "expect_degrade": {
        "en": "{who} runs hcomm {hcomm} on {soc} with {mode} in force: each graph that it captures makes the next one "
        "slower.",
        "zh": "{who} 在 {soc} 上运行 hcomm {hcomm}，生效模式为 {mode}：每捕获一张图，下一张图的捕获都会更慢。",
    },
    "expect_mitigated": {
        "en": "{who} runs hcomm {hcomm} on {soc}, which has the fault; {mode} in force avoids it (not verified by a "
        "measurement).",
        "zh": "{who} 在 {soc} 上运行有此缺陷的 hcomm {hcomm}；生效的 {mode} 模式可避开它（未经测量验证）。",
    },
    "expect_unknown": {
        "en": "Nothing can be said of {who}: {why}.",
        "zh": "无法判断 {who}：{why}。",
    },
    "saves": {
        "en": "That saves about {seconds} s of a load of {graphs} graphs, as measured here.",
        "zh": "按此处实测，加载 {graphs} 张图约可节省 {seconds} 秒。",
    },
    "saves_unknown": {
        "en": "What it saves was not measured here: `capture-canary probe` tells.",
        "zh": "可节省的时间尚未在此测量：请运行 `capture-canary probe`。",
    },
    "deterministic": {
        "en": "HCCL_DETERMINISTIC is set and comes first",
        "zh": "已设置 HCCL_DETERMINISTIC，其优先级更高",
    },
    "several_communicators": {
        "en": "the server runs several communicators, and only one may use AIV at a time",
        "zh": "该服务运行多个通信域，而同一时刻只能有一个使用 AIV",
    },
}


def text(key: str, language: Language, **facts: object) -> str:
    """Return a text with the node's facts in it."""
    return TEXTS[key][language].format(**facts)
