"""Steps of the tolerance slider."""

from __future__ import annotations

import pytest

from tinydec.ui.domains import TOLERANCE
from tinydec.ui.equivalence.controls import STEPS, nearest_step
from tinydec.verification.compare import TOLERANCES


def test_steps_ascend_over_the_whole_domain_of_the_shared_control() -> None:
    assert list(STEPS) == sorted(set(STEPS))
    assert (STEPS[0], STEPS[-1]) == TOLERANCE


@pytest.mark.parametrize("tolerance", TOLERANCES.values())
def test_every_declared_tolerance_is_a_step(tolerance: float) -> None:
    assert nearest_step(tolerance) == tolerance


@pytest.mark.parametrize(("tolerance", "step"), [(1.6e-5, 1e-5), (1.8e-5, 3e-5), (0.9, 1.0)])
def test_other_tolerances_stand_at_the_nearest_step(tolerance: float, step: float) -> None:
    assert nearest_step(tolerance) == step
