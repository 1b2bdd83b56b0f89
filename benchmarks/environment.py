"""The machine, and the environment in which a group is timed."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import numpy as np

#: Settings that choose a BLAS kernel by hand: without them the library takes the fastest one.
_KERNEL_SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
_THREAD_SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def child_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Return an environment whose BLAS picks its own kernel and runs on this many threads."""
    kept = {key: value for key, value in environment.items() if key not in _KERNEL_SETTINGS}
    return kept | dict.fromkeys(_THREAD_SETTINGS, str(threads))


def machine() -> dict[str, str]:
    """Return what the timings depend on, by name."""
    try:
        load = f"{os.getloadavg()[0]:.1f}"
    except (AttributeError, OSError):
        load = "unknown"
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": load,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def blas_kernels() -> str:
    """Return which BLAS runs, its kernel and its threads; needs threadpoolctl."""
    from threadpoolctl import threadpool_info

    found = [
        f"{library['internal_api']} {library.get('version')} "
        f"{library.get('architecture', '')} on {library['num_threads']} thread(s)"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    return ", ".join(found) or "unknown"


def installed(name: str) -> bool:
    """Whether a distribution is installed."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1] if match else platform.processor() or "unknown"
