"""Bets on ranks: what it pays to see a value at its place among those before it, were there a slope.

Among exchangeable values each is as likely at any place (1 to k) among the first k, and independently so for every k
(Rényi 1962), whatever the noise. A bet on the place that pays 1 on average is therefore fair for any noise, and a
product of such bets reaches 1/alpha with a chance of alpha at most (Ville 1939). docs/statistics.md derives it.
"""

import math
from functools import cache
from statistics import NormalDist

SLOPES = (0.06, 0.2, 0.8)
"""Slopes (in deviations a value) that are betted on, with equal shares: no slope worth finding is far from one."""

_normal = NormalDist()


class Payoffs(list[list[float]]):
    """For 1, 2, … values: the logarithm of what a bet on one slope pays at each place, from the lowest."""

    def __init__(self, slope: float) -> None:
        """Begin empty: who needs more values appends them with `made`."""
        super().__init__()
        self.slope = slope


payoffs = cache(Payoffs)
"""One table a slope, shared by all tests: it is made once as far as any of them came."""


def made(k: int, slope: float) -> list[float]:
    """Return the logarithm of each place's payoff among k values: its chance with this slope, over that without.

    The k-th value lies slope·k/2 above the middle of those before it, which the slope itself spreads to a variance of
    1 + (slope·k)²/12. Kept from falling, so that a smaller slope (a falling one too) can only lower a product of bets.
    """
    spread = 1 + (slope * k) ** 2 / 12
    shift = slope * k / 2 / math.sqrt(spread)
    logs: list[float] = []
    for place in range(1, k + 1):
        z = _normal.inv_cdf((place - 0.375) / (k + 0.25))  # Blom's normal score
        log = (z * z - spread * (z - shift) ** 2) / 2
        logs.append(max(log, logs[-1]) if logs else log)
    top = max(logs)
    mean = math.log(math.fsum(math.exp(log - top) for log in logs) / k) + top
    return [log - mean for log in logs]
