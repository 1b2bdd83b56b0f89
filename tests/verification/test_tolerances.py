"""Each declared tolerance lies above the measured noise and far below a broken cache."""

import pytest

from tinydec.model.storage import load_checkpoint
from tinydec.verification.compare import TOLERANCES
from tinydec.verification.deliberate import run_deliberate_failures
from tinydec.verification.equivalence import verify_prefixes

FROZEN = load_checkpoint()

# Measured on the shipped checkpoint: float16 2.0e-3, float32 2.9e-6, float64 4.9e-15; rows of
# batches against their solo runs: float16 1.2e-2. The course fixes 1e-5 for float32; the contract
# fixes 1e-12 for float64; float16 gets twice the noise of a row in a batch.


@pytest.mark.parametrize("dtype", sorted(TOLERANCES))
def test_noise_is_below_the_tolerance_and_faults_are_far_above(dtype):
    report = verify_prefixes(FROZEN, dtype=dtype)
    assert report.tolerance == TOLERANCES[dtype]
    noise = max(float(row.errors.max()) for row in report.rows)
    assert noise <= TOLERANCES[dtype] / 2
    assert report.passed
    failures = run_deliberate_failures(FROZEN, dtype=dtype)
    assert all(failure.as_expected for failure in failures)
    smallest = min(f.result.max_abs_error for f in failures if f.cannot_act is None)
    assert smallest > 20 * TOLERANCES[dtype]


def test_float16_has_noise_that_a_float32_tolerance_would_reject():
    report = verify_prefixes(FROZEN, dtype="float16", tolerance=TOLERANCES["float32"])
    assert not report.passed
    assert report.max_abs_error > TOLERANCES["float16"] / 20
