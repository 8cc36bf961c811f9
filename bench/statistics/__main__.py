"""`python -m bench.statistics [--quick] [PART …]`: every figure of docs/statistics.md; 1 if one breaks its promise."""

# ruff: noqa: A005 - a folder of bench/, never imported by the name of the standard module

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable

from bench.statistics import contamination, corpus, cost, gaussian, least_captures, rare
from bench.statistics.noise import KINDS

ALPHAS = (1e-3, 1e-6)
SURE = 0.99
NEAR = 0.985
"""Share found that a thousand series may show where 0.99 is true."""
MOST_LATE, MOST_DEAREST = 0.8, 2.0
"""What a capture may cost late in a series, and the dearest, in thousands of products: one takes some 25 us."""
broken: list[str] = []


def promise(words: str, *, kept: bool) -> None:
    """Note a promise that was not kept."""
    if not kept:
        broken.append(words)


def part_gaussian(*, quick: bool) -> None:
    """Normal noise of one size: mean captures, and their ratio to the bound."""
    runs = 400 if quick else 4000
    print(
        "| alpha | slope/sigma | bound | SPRT, sigma known | mixture | least, sigma unknown | t-SPRT | t mixture "
        "| least by ranks | ranks, tuned | ranks | Neyman-Pearson | OLS-t | Mann-Kendall | E-divisive |"
    )
    print("|" + " --- |" * 15)
    for alpha in ALPHAS:
        for slope in gaussian.SLOPES:
            least = gaussian.bound(slope, alpha)
            tests = gaussian.sequential(slope, alpha, runs)
            limits = (
                least_captures.any_test(slope, alpha).captures,
                _rank_limit(slope, alpha, quick=quick),
            )
            shown = {
                name: f"{found.captures:.1f} ({found.captures / least:.2f})"
                for name, found in tests.items()
            }
            any_test, by_ranks = (
                f"{limit:.1f} ({limit / least:.2f})" if limit else "-" for limit in limits
            )
            mann = gaussian.mann_kendall(slope, alpha, runs)
            # Its null distribution needs twenty times 1/alpha series: at 1e-6 that is out of reach.
            divisive = (
                gaussian.e_divisive(slope, alpha, 300 if quick else 1000)
                if alpha > 1e-4 and not (quick and slope < 0.2)
                else "-"
            )
            print(
                f"| {alpha:g} | {slope:g} | {least} | {shown['sprt']} | {shown['mixture']} "
                f"| {any_test} | {shown['t sprt']} | {shown['t mixture']} "
                f"| {by_ranks} | {shown['ranks tuned']} | {shown['ranks']} "
                f"| {gaussian.neyman_pearson(slope, alpha)} "
                f"| {gaussian.ols(slope, alpha)} | {mann} | {divisive} |",
                flush=True,
            )
            slack = 1.05 if quick else 1.0
            where = f"at {slope:g} sigma and alpha {alpha:g}"
            known, unknown, ranks = (
                tests[name].captures / least for name in ("sprt", "t sprt", "ranks tuned")
            )
            promise(f"SPRT takes {known:.2f} bounds {where}", kept=known <= 1.10 * slack)
            if slope <= 0.2:
                promise(f"t-SPRT takes {unknown:.2f} bounds {where}", kept=unknown <= 1.25 * slack)
                promise(f"ranks take {ranks:.2f} bounds {where}", kept=ranks <= 1.25 * slack)
            elif slope == 0.5 and alpha > 1e-4:
                promise(f"t-SPRT takes {unknown:.2f} bounds {where}", kept=unknown <= 1.40 * slack)
                promise(f"ranks take {ranks:.2f} bounds {where}", kept=ranks <= 1.40 * slack)
            for name, found in tests.items():
                promise(f"{name} finds {found.share:.3f} {where}", kept=found.share >= NEAR)
    print(
        "\n| superbench's rule: 5 % above the first capture | fires after | false alarms until then |"
    )
    print("| --- | --- | --- |")
    for relative in (0.01, 0.03):
        for slope in (0.1, 0.5):
            found, false = gaussian.five_percent(slope, relative, 4 * runs)
            print(
                f"| sigma {relative:.0%} of a capture, slope {slope:g} sigma | {found.captures:.1f} | {false:.2%} |"
            )


def _rank_limit(slope: float, alpha: float, *, quick: bool) -> float | None:
    if quick:  # long series take long
        return least_captures.any_rank_test(slope, alpha, 300).captures if slope >= 1 else None
    return least_captures.any_rank_test(slope, alpha, 1000 if slope >= 0.2 else 300).captures


def part_null(*, quick: bool) -> None:
    """Series without growth: how many alarm at alpha 1e-3."""
    runs = 10_000 if quick else 1_000_000
    print(
        "| noise | series | alarms at alpha 1e-3 (upper 95 %) | without the guard against jumps |"
    )
    print("| --- | --- | --- | --- |")
    for kind in KINDS:
        rate = contamination.false_alarms(kind, runs, contamination.ROUNDS_NULL, 1e-3)
        bare = contamination.false_alarms(
            kind, runs // 10, contamination.ROUNDS_NULL, 1e-3, steps=False
        )
        print(
            f"| {kind} | {runs:,} | {rate.estimate:.2g} ({rate.upper:.2g}) | {bare.estimate:.2g} |",
            flush=True,
        )
        promise(f"{rate.estimate:g} false alarms under {kind}", kept=rate.estimate <= 1e-3)


def part_rare(*, quick: bool) -> None:
    """The same at 1e-6, by sequential Monte Carlo."""
    swarms, size = (4, 1000) if quick else (25, 4000)
    print("| units | alarms at alpha 1e-6 (upper 95 %) | alarms of equal weight |")
    print("| --- | --- | --- |")
    for case in rare.CASES:
        found = rare.rare_alarms(case, 1e-6, swarms=swarms, size=size)
        print(
            f"| {case.name} | {found.estimate:.1g} ({found.upper:.1g}) | {found.effective:,.0f} |",
            flush=True,
        )
        if case.steps:
            promise(f"{found.upper:g} false alarms: {case.name}", kept=found.upper <= 1e-6)


def part_power(*, quick: bool) -> None:
    """Series that grow: how many are found, after how many captures."""
    slopes = (0.2, 2.0) if quick else contamination.SLOPES
    print("| noise | alpha |" + "".join(f" {slope:g} |" for slope in slopes))
    print("| --- | --- |" + " --- |" * len(slopes))
    for kind in KINDS:
        powers = [
            contamination.power(kind, slope, 300 if quick else 1000, ALPHAS) for slope in slopes
        ]
        for index, alpha in enumerate(ALPHAS):
            cells = [found[index] for found in powers]
            print(
                f"| {kind} | {alpha:g} |"
                + "".join(f" {cell.captures:.0f} ({cell.share:.3f}) |" for cell in cells),
                flush=True,
            )
            for slope, cell in zip(slopes, cells, strict=True):
                promise(
                    f"power {cell.share:.3f} at {slope:g} under {kind}", kept=cell.share >= NEAR
                )


def part_corpus(*, quick: bool) -> None:
    """Noise of the emulated CANN on this machine."""
    captures = 500 if quick else 25_000
    print(
        "| stack | machine (mean load) | captures | series | alarms at 1e-6 | at 1e-3 | highest statistic (bound) |"
    )
    print("|" + " --- |" * 7)
    total = alarms = 0
    for name, emulate, mode in (
        ("9.1.0", "cann=9.1.0,soc=a3", None),
        ("8.5.0, AIV", "cann=8.5.0,soc=a3", "AIV"),
    ):
        for state in ("as it is", "both cores busy"):
            if state == "as it is":
                found = corpus.quiet(emulate, mode, captures)
            else:
                with corpus.busy():
                    found = corpus.quiet(emulate, mode, captures)
            total, alarms = total + found.series, alarms + found.alarms
            print(
                f"| {name} | {state} ({found.load:.1f}) | {found.captures:,} | {found.series} | {found.alarms} "
                f"| {found.loose} | {found.highest:.1f} ({found.bound:.1f}) |",
                flush=True,
            )
    promise(f"{alarms} false alarms on real noise", kept=alarms == 0)
    print(
        f"\nNo alarm in {total} series proves at most {1 - 0.05 ** (1 / total):.2g} a series (95 %).\n"
    )


def part_least(*, quick: bool) -> None:
    """The least growth there is: one copy of 11,984 B more a capture."""
    print("| 8.5.0, k = 1, P = 1, S = 0 | by copies | by time | slope | noise |")
    print("| --- | --- | --- | --- | --- |")
    for _ in range(1 if quick else 3):
        grown = corpus.loud("cann=8.5.0,soc=a3,scratch=0", 60 if quick else 1000)
        print(
            f"| captures until found, by rank | {grown.by_copies} | {grown.by_time} | {grown.slope * 1e6:.2g} us "
            f"| {grown.noise * 1e6:.2g} us |",
            flush=True,
        )
        promise(f"copies took {grown.by_copies}", kept={3} == {*grown.by_copies})
        promise("time alone did not find k = 1", kept=quick or any(grown.by_time))


def part_cost(*, quick: bool) -> None:
    """What a decision costs."""
    del quick
    found = cost.cost()
    print(
        "| a capture costs | mean over 60 rounds | over a truncated series | over its last ten rounds "
        "| the dearest capture | the dearest where it grows slowly | once a process: the tables |"
    )
    print("|" + " --- |" * 7)
    for name, unit in (("us", 1.0), ("thousands of products", found.products)):
        cells = [found.sixty, found.whole, found.last, found.dearest, found.grows, found.tables]
        print(f"| {name} |" + "".join(f" {cell / unit:.3g} |" for cell in cells))
    for name, took, most in (
        ("a late capture", found.last, MOST_LATE),
        ("the dearest capture", found.dearest, MOST_DEAREST),
    ):
        relative = took / found.products
        promise(f"{name} costs {relative:.2f} thousand products", kept=relative <= most)


PARTS: dict[str, Callable[..., None]] = {
    "gaussian": part_gaussian,
    "null": part_null,
    "rare": part_rare,
    "power": part_power,
    "cost": part_cost,
    "corpus": part_corpus,
    "least": part_least,
}


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few series: seconds instead of minutes"
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all"
    )
    args = parser.parse_args()
    if unknown := {*args.parts} - {*PARTS}:
        parser.error(f"no part {', '.join(sorted(unknown))}; there is {', '.join(PARTS)}")
    print(
        f"{time.strftime('%Y-%m-%d')}, `python -m bench.statistics {' '.join(sys.argv[1:])}`, "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    for name in args.parts or PARTS:
        begin = time.monotonic()
        print(f"\n### {name}\n", flush=True)
        PARTS[name](quick=args.quick)
        print(f"\n({time.monotonic() - begin:.0f} s)", flush=True)
    for words in broken:
        print(f"BROKEN: {words}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
