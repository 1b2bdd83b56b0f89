"""A bundle written under one OpenBLAS kernel replays under every other one."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from tinydec.evidence.audit import AuditReport, run_audit
from tinydec.evidence.bundle import bundle_files, write_bundle
from tinydec.evidence.fault_report import faults_spec, run_faults
from tinydec.evidence.session import with_faults
from tinydec.verification.faults import FAULTS

#: Kernels whose sums run in another order than their neighbours' in this list.
KERNELS = {
    "x86_64": ("Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX"),
    "aarch64": ("ARMV8", "NEOVERSEN1", "NEOVERSEV1", "CORTEXA57"),
}
SCRIPT = Path(__file__).with_name("kernel_replay.py")


def uses_openblas() -> bool:
    return any(lib.get("internal_api") == "openblas" for lib in threadpool_info())


@pytest.mark.slow
@pytest.mark.skipif(not uses_openblas(), reason="this NumPy has no OpenBLAS")
def test_correct_faulty_and_lab_bundles_replay_under_every_kernel(
    report: AuditReport, shipped_files: dict[str, bytes], tmp_path: Path, repository: Path
) -> None:
    checkpoint = report.checkpoint
    # One bundle of all the faults that move numbers, and of those whose texts hold figures.
    told = [fault.id for fault in FAULTS if fault.stage == 2 and not fault.silent]
    bundles = {
        "correct": shipped_files,
        "lab": bundle_files(run_faults(checkpoint, faults_spec(checkpoint, "float32"))),
        "lab in float64": bundle_files(run_faults(checkpoint, faults_spec(checkpoint, "float64"))),
        "several": bundle_files(run_audit(checkpoint, with_faults(report.spec, told))),
        "mask": bundle_files(run_audit(checkpoint, with_faults(report.spec, ["F25"]))),
        "reference": bundle_files(run_audit(checkpoint, with_faults(report.spec, ["F29"]))),
    }
    for name, files in bundles.items():
        write_bundle(files, tmp_path / name)
    ran = set()
    for kernel in KERNELS.get(platform.machine(), ()):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        environment |= {"OPENBLAS_CORETYPE": kernel, "PYTHONPATH": str(repository)}
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *(str(tmp_path / name) for name in bundles)],
            env=environment, check=False, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        if done.returncode < 0:
            continue  # killed by an instruction that this processor does not have
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        (used,) = {name for name in found["kernels"] if name}
        ran.add(used)
        assert found["differences"] == dict.fromkeys(bundles), kernel
    assert len(ran) >= 2, f"expected at least two kernels to have run, found {sorted(ran)}"
