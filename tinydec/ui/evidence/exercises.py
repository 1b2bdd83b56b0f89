"""Exercises of the evidence, their answers computed by the core."""

from __future__ import annotations

import random

from tinydec.evidence.comparison import close
from tinydec.figures.log_axis import short
from tinydec.ui.exercise import Task
from tinydec.verification.compare import TOLERANCES

ACCEPTED, REFUSED = "accepts it", "names it as a difference"


def draw_replay(rng: random.Random) -> Task:
    """Ask whether a replay accepts a number that came out slightly different."""
    tolerance = TOLERANCES["float32"]
    here = rng.choice((-1, 1)) * rng.choice((rng.randint(100, 999) / 1000, rng.randint(2, 12)))
    off = rng.choice((4, 8, 17, 47, 95, 187)) * 1e-6
    scale = max(1.0, abs(here))
    verdict = ACCEPTED if close(here, here + off, tolerance) else REFUSED
    return Task(
        f"A bundle says a logit is `{here + off:.6f}`; here it comes out as `{here:.6f}`. The "
        f"tolerance is {short(tolerance)}, relative where the number is above 1. What does the "
        "replay do?",
        verdict,
        "Take the difference. If the number's size is above 1, the tolerance is multiplied by it.",
        f"Difference {short(off, 2)}; allowed {short(tolerance)} · {scale:g} = "
        f"{short(tolerance * scale, 2)}. "
        f"The replay **{verdict}**.",
        (ACCEPTED, REFUSED),
    )
