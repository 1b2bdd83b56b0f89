"""A bundle: all tables, the checkpoint and a manifest, as bytes, as a zip and as a directory."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tinydec.errors import InputError
from tinydec.evidence.audit import AuditReport
from tinydec.evidence.csv_format import write_csv
from tinydec.evidence.environment import code_version, environment
from tinydec.evidence.manifest import CHECKPOINT, MANIFEST, FileEntry, Manifest, sha256
from tinydec.evidence.registry import Report, kind_of, tables_of
from tinydec.model.storage import checkpoint_bytes

#: The earliest date that a zip file can hold.
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def bundle_files(report: Report, created: str | None = None) -> dict[str, bytes]:
    """Return every file of the bundle by name; the same report gives the same bytes.

    Args:
        report: what was computed: an audit, or the fault lab.
        created: a date and time to write into the manifest; without it there is none, and two
            runs on one machine give identical bytes.
    """
    tables = tables_of(report)
    built = {name: table.build(report) for name, table in tables.items()}
    files = {name: write_csv(found, tables[name].schema) for name, found in built.items()}
    files[CHECKPOINT] = checkpoint_bytes(report.checkpoint)
    rows = {name: len(found) for name, found in built.items()}
    manifest = Manifest(
        kind=kind_of(report),
        run=report.spec,
        checkpoint_digest=report.checkpoint.digest,
        dtype=report.spec.dtype,
        tolerance=report.tolerance,
        passed=report.passed,
        code=code_version(),
        environment=environment(),
        files={
            name: FileEntry(sha256(data), len(data), rows.get(name)) for name, data in files.items()
        },
        context_prompt=report.context_prompt if isinstance(report, AuditReport) else None,
        created=created,
    )
    return {MANIFEST: manifest.to_bytes(), **files}


def bundle_zip_bytes(files: Mapping[str, bytes], folder: str = "tinydec-evidence") -> bytes:
    """Return a zip of the files in one folder; equal files give equal bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{folder}/{name}", _ZIP_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whatever the system at hand
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name])
    return stream.getvalue()


def check_output(directory: Path) -> Path:
    """Return where a bundle would be written, or refuse the path before anything is computed.

    A new directory is made; an empty one is replaced. Its parent must exist.

    Raises:
        InputError: a file, a directory that is not empty or is the current one, no parent
            folder, or one that cannot be written.
    """
    try:
        target = directory.resolve()
        if target.is_dir():
            _check_empty(directory, target)
        elif target.exists():
            raise _refused(directory, "a file")
        if not target.parent.is_dir():
            raise _refused(directory, f"no folder {target.parent}")
        probe = Path(tempfile.mkdtemp(dir=target.parent, prefix=_prefix(target)))
        probe.rmdir()
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: NUL; RuntimeError: a loop
        raise _failed(directory, error) from None
    return target


def write_bundle(files: Mapping[str, bytes], directory: Path) -> None:
    """Write a bundle, whole or not at all: into a folder beside it that is then renamed.

    Raises:
        InputError: as :func:`check_output`, or the disk is full.
    """
    target = check_output(directory)
    temporary: Path | None = None
    try:
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=_prefix(target)))
        temporary.chmod(0o755)
        for name, data in files.items():
            (temporary / name).write_bytes(data)
        if target.is_dir():
            target.rmdir()  # refuses to remove what has been filled meanwhile
        temporary.rename(target)
    except OSError as error:
        raise _failed(directory, error) from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _prefix(target: Path) -> str:
    return f".{target.name[:100]}."


def _check_empty(directory: Path, target: Path) -> None:
    if any(target.iterdir()):
        raise _refused(directory, "a directory that is not empty")
    if target == Path.cwd():
        raise _refused(directory, "the current directory")


def _refused(directory: Path, found: str) -> InputError:
    return InputError(f"output {directory}: expected a new or empty directory, found {found}")


def _failed(directory: Path, error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InputError(
        f"output {directory}: expected a directory that can be written, found: {reason}"
    )
