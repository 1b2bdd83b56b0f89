"""Write a file whole or not at all, and only where a file may stand."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from tinydec.errors import InputError


def check_file_output(path: Path) -> Path:
    """Return the file that would be written, or refuse the path before anything is computed.

    A symbolic link to a regular file is followed: that file is written, and the link stays.

    Raises:
        InputError: a directory, device, pipe or socket, a link to none, a file that is marked
            read-only, or a folder that is missing or cannot be written.
    """
    target = _target(path)
    handle, name = _temporary(path, target)
    os.close(handle)
    Path(name).unlink(missing_ok=True)
    return target


def write_whole(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary file beside it, so that no part is seen.

    Raises:
        InputError: as :func:`check_file_output`, or the disk is full.
    """
    target = _target(path)
    handle, name = _temporary(path, target)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(
            f"output {path}: expected a file that can be written, found {error.strerror}"
        ) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _target(path: Path) -> Path:
    """Return the regular file, or free place, that a path leads to."""
    try:
        target = path.resolve()
        found = _kind(path, target)
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: NUL; RuntimeError: a loop
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"output {path}: expected a file to write, found: {reason}") from None
    if found is not None:
        raise InputError(f"output {path}: expected a file to write, found {found}")
    return target


def _kind(path: Path, target: Path) -> str | None:
    """Say what stands in the way at a path; None where a file stands that may be replaced."""
    try:
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):  # free, or without a folder: that shows later
        return "a link to none" if path.is_symlink() else None
    if stat.S_ISDIR(mode):
        return "a directory"
    if not stat.S_ISREG(mode):
        return "a device, pipe or socket"
    # The mode as well: to the superuser, every file can be written.
    writable = mode & 0o222 and os.access(target, os.W_OK)
    return None if writable else "a read-only file"


def _temporary(path: Path, target: Path) -> tuple[int, str]:
    try:
        return tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    except OSError as error:
        raise InputError(
            f"output {path}: expected a folder that can be written, found {error.strerror}"
        ) from None
