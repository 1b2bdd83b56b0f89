"""What a result may depend on besides its RunSpec: code, Python, NumPy, BLAS, platform."""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import platform
from pathlib import Path
from typing import Any

import numpy as np

from tinydec import __version__

_PACKAGE = Path(__file__).resolve().parents[1]
#: Where NumPy's wheels keep the OpenBLAS that they bring.
_WHEEL_LIBRARIES = Path(np.__file__).resolve().parents[1] / "numpy.libs"
_CORE_NAMES = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename")


def environment() -> dict[str, str]:
    """Return what to know about this machine; the same in every process on it."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "blas": blas(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def code_version() -> dict[str, str]:
    """Return the package's version and the SHA-256 over its source files."""
    sha = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        sha.update(f"{path.relative_to(_PACKAGE).as_posix()}\n".encode() + path.read_bytes())
    return {"version": __version__, "source_sha256": sha.hexdigest()}


def blas() -> str:
    """Return the BLAS that NumPy runs on, such as ``OpenBLAS 0.3.31 Haswell``.

    The last word is the kernel chosen for this processor, on which the last bits of a result
    depend. It is asked of the wheel's own OpenBLAS, or of threadpoolctl where that is
    installed; otherwise it reads ``unknown kernel``.
    """
    built: Any = np.show_config(mode="dicts")
    named = built.get("Build Dependencies", {}).get("blas", {})
    name = str(named.get("name", "unknown BLAS")).replace("scipy-openblas", "OpenBLAS")
    kernel = _wheel_kernel() or _pool_kernel() or "unknown kernel"
    return f"{name} {named.get('version', 'unknown version')} {kernel}"


def _wheel_kernel() -> str | None:
    for path in sorted(_WHEEL_LIBRARIES.glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for name in _CORE_NAMES:
            if hasattr(library, name):
                corename = getattr(library, name)
                corename.argtypes, corename.restype = (), ctypes.c_char_p
                found = corename()
                return found.decode("ascii", "replace") if isinstance(found, bytes) else None
    return None


def _pool_kernel() -> str | None:
    try:
        pools = importlib.import_module("threadpoolctl").threadpool_info()
    except ImportError:
        return None
    kernels = [pool.get("architecture") for pool in pools if pool.get("user_api") == "blas"]
    return str(kernels[0]) if kernels and kernels[0] else None
