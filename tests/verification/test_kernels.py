"""The shipped checkpoint passes under every OpenBLAS kernel that this machine can run."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

ROOT = Path(__file__).resolve().parents[2]
#: Kernels that NumPy's wheels carry; the machine decides which of them it can run.
KERNELS = {
    "x86_64": ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake",
               "Sapphirerapids"),
    "aarch64": ("ARMV8", "NEOVERSEN1", "NEOVERSEV1", "CORTEXA57", "THUNDERX2T99"),
}  # fmt: skip


def probe(kernel):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    environment |= {"OPENBLAS_CORETYPE": kernel, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, str(ROOT / "tests" / "verification" / "kernel_probe.py")],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def uses_openblas():
    return any(lib.get("internal_api") == "openblas" for lib in threadpool_info())


@pytest.mark.skipif(not uses_openblas(), reason="this NumPy has no OpenBLAS")
def test_error_and_traces_hold_under_every_kernel():
    ran = {}
    for kernel in KERNELS.get(platform.machine(), ()):
        result = probe(kernel)
        if result.returncode < 0:
            continue  # killed by an instruction that this processor does not have
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        (used,) = {name for name in found["kernels"] if name}
        ran[used] = found
        assert found["passed"] == 16, (kernel, found)
        assert found["max_abs_error"] <= 5e-6, (kernel, found)
        assert found["traces"] == ["<bos> A B D <eos>", "<bos> Y X Y <eos>"], (kernel, found)
    print({kernel: found["max_abs_error"] for kernel, found in ran.items()})
    assert ran, "expected at least one kernel to have run"
