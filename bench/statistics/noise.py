"""Noise of the kinds that a machine makes, in captures and in the controls beside them."""

from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from bench.statistics.vectorised import Floats

Kind = Literal[
    "Gaussian",
    "10 % spikes of 8 sigma",
    "Student t(3)",
    "AR(1) 0.6, captures alone",
    "AR(1) 0.6, controls too",
    "warm-up of 3",
    "one step",
    "machine drifts 1 %",
    "machine drifts 10 %",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
SIZES = 3
SET_UP = np.array([0.0, 20.0, 50.0])
BASE = 100.0
"""What a capture or a control takes, in sigma: noise of 1 %."""
RHO = 0.6
SPIKES, SPIKE = 0.1, 8.0


class Drawn(NamedTuple):
    """Series of captures (rows) with a control beside each capture, in sigma; and what they are made of."""

    captures: Floats
    controls: Floats
    noise: Floats
    speed: Floats
    """What the machine multiplies all times by, by capture."""
    jump: npt.NDArray[np.int64]
    """Captures before the jump of each series; 0 where it has none."""

    def growing(self, growth: Floats) -> Floats:
        """Return the captures with growth added to them."""
        return self.captures + growth * self.speed


def independent(kind: Kind, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Return noise of unit scale."""
    if kind.startswith("Student"):
        return rng.standard_t(3, shape)
    noise = rng.standard_normal(shape)
    if "spikes" in kind:
        noise += (rng.random(shape) < SPIKES) * rng.exponential(SPIKE, shape)
    if kind.startswith("AR"):
        noise[:, 1:] *= np.sqrt(1 - RHO**2)
        for column in range(1, shape[1]):
            noise[:, column] += RHO * noise[:, column - 1]
    return noise


def draw(kind: Kind, runs: int, rounds: int, rng: np.random.Generator) -> Drawn:
    """Return series without growth, of this many rounds and one of warm-up."""
    count = (rounds + 1) * SIZES
    if kind == "AR(1) 0.6, controls too":
        both = independent(kind, (runs, 2 * count), rng)
        controls, noise = both[:, ::2], both[:, 1::2]
    else:
        other: Kind = "Gaussian" if kind.startswith("AR") else kind
        controls, noise = (
            independent(other, (runs, count), rng),
            independent(kind, (runs, count), rng),
        )
    order = np.arange(1, count + 1)
    size = rng.permuted(np.tile(SET_UP, (runs, rounds + 1, 1)), axis=2).reshape(runs, count)
    captures = BASE + size + noise
    controls = BASE + controls
    if kind == "warm-up of 3":
        captures[:, :3] += [20, 10, 5]
    jump = np.zeros(runs, np.int64)
    if kind == "one step":
        jump = rng.integers(1, count, runs)
        captures += (order > jump[:, None]) * np.exp(rng.uniform(0, 3, (runs, 1)))  # 1 to 20 sigma
    speed = np.ones(count)
    if kind.startswith("machine"):
        speed += (0.01 if kind.endswith(" 1 %") else 0.1) * order / count
    return Drawn(captures * speed, controls * speed, noise, speed, jump)
