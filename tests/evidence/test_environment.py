"""What a bundle says about the machine: the same each time, true, and without asking for more."""

import builtins
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinydec import __version__
from tinydec.evidence import environment as module
from tinydec.evidence.environment import blas, code_version, environment

PRINT_BLAS = "from tinydec.evidence.environment import blas; print(blas())"


def test_environment_names_versions_and_platform() -> None:
    found = environment()
    assert found["numpy"] == np.__version__
    assert found["python"].endswith(platform.python_version())
    assert found["platform"].endswith(platform.machine())
    assert all(isinstance(value, str) and "\n" not in value for value in found.values())
    assert found == environment()


@pytest.mark.parametrize("kernel", ["Prescott", "Nehalem"])
def test_kernel_is_the_one_that_runs(kernel: str, repository: Path) -> None:
    if "OpenBLAS" not in blas() or platform.machine() != "x86_64":
        pytest.skip("expected OpenBLAS on x86_64, found another BLAS")
    command, variables = [sys.executable, "-c", PRINT_BLAS], {"OPENBLAS_CORETYPE": kernel}
    done = subprocess.run(
        command, env=variables, cwd=repository, capture_output=True, text=True, check=True
    )
    names = {"Prescott": ("Prescott", "Katmai"), "Nehalem": ("Nehalem",)}[kernel]
    assert done.stdout.split()[-1] in names


def test_kernel_is_found_by_either_way_or_called_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = blas()
    monkeypatch.setattr(module, "_WHEEL_LIBRARIES", tmp_path)
    assert blas().split()[:2] == usual.split()[:2]
    (tmp_path / "libopenblas.so").write_text("no library", encoding="utf-8")
    assert blas().split()[:2] == usual.split()[:2]

    def refuse(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", refuse)
    assert blas().endswith("unknown kernel")


def test_code_version_follows_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_version()["version"] == __version__
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(module, "_PACKAGE", tmp_path)
    one = code_version()["source_sha256"]
    assert one == code_version()["source_sha256"]
    (tmp_path / "notes.txt").write_text("no code", encoding="utf-8")
    assert one == code_version()["source_sha256"]
    (tmp_path / "a.py").write_text("x = 2\n", encoding="utf-8")
    assert one != code_version()["source_sha256"]


def test_numpy_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def only_numpy(name: str, *rest: Any, **options: Any) -> Any:
        if name.split(".")[0] in {"threadpoolctl", "pandas"}:
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", only_numpy)
    assert blas()
