"""Replay a bundle: recompute everything from its manifest and checkpoint, compare every cell."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tinydec.errors import InputError
from tinydec.evidence.audit import run_audit
from tinydec.evidence.comparison import Difference, compare_tables, own_differences
from tinydec.evidence.csv_format import CsvError, read_csv, write_csv
from tinydec.evidence.environment import code_version, environment
from tinydec.evidence.fault_report import run_faults
from tinydec.evidence.manifest import CHECKPOINT, FAULTS, MANIFEST, Manifest, read_manifest, sha256
from tinydec.evidence.registry import Report, tables_for, tables_of
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import shown

#: The files that must agree with each other; they are held together when both stand the test alone.
_EQUIVALENCE = {"prefix_equivalence.csv", "prefix_logits.csv"}


@dataclass(frozen=True)
class FileVerdict:
    """What a replay says about one file.

    Attributes:
        file: its name.
        cells: cells compared; 0 for what is no table or could not be compared.
        differences: everything that is not as it should be, the first one first.
    """

    file: str
    cells: int
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """Whether the file is as it should be."""
        return not self.differences


@dataclass(frozen=True)
class ReplayReport:
    """The verdict on a bundle.

    Attributes:
        manifest: what the bundle says of itself.
        verdicts: one per file: the manifest, the checkpoint, the tables, then strangers.
        elsewhere: in what this machine or code differs from the one that wrote the bundle.
    """

    manifest: Manifest
    verdicts: tuple[FileVerdict, ...]
    elsewhere: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every file is as it should be."""
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def first_difference(self) -> Difference | None:
        """The first thing that is not as it should be."""
        return next((d for verdict in self.verdicts for d in verdict.differences), None)

    @property
    def cells(self) -> int:
        """Cells compared."""
        return sum(verdict.cells for verdict in self.verdicts)


def read_bundle(directory: Path) -> dict[str, bytes]:
    """Return the files of a directory by name; anything else in it as ``name/`` without bytes.

    Raises:
        InputError: no such directory, no manifest in it, or a file that cannot be read.
    """
    try:
        if not directory.is_dir():
            found = "a file" if directory.exists() else "none"
            raise InputError(f"bundle {directory}: expected a directory, found {found}")
        paths = sorted(directory.iterdir())
        files = {p.name: p.read_bytes() for p in paths if p.is_file()}
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"bundle {directory}: expected files that can be read, found: {reason}"
        ) from None
    if MANIFEST not in files:
        raise InputError(f"bundle {directory}: expected a {MANIFEST}, found none")
    return files | {f"{p.name}/": b"" for p in paths if p.name not in files}


def replay_bundle(files: Mapping[str, bytes], checkpoint: Checkpoint | None = None) -> ReplayReport:
    """Recompute a bundle and compare every cell.

    Args:
        files: as :func:`read_bundle` or ``bundle_files`` returns them.
        checkpoint: recompute with this one instead of the bundle's copy.

    Raises:
        InputError: no manifest, or one that cannot be read.
    """
    if MANIFEST not in files:
        raise InputError(f"bundle: expected a {MANIFEST}, found none")
    manifest = read_manifest(files[MANIFEST])
    tables = tables_for(manifest.kind, manifest.run)
    found = [d for name in (CHECKPOINT, *tables) for d in _whole(name, files, manifest)]
    found += _listed(manifest, (CHECKPOINT, *tables))
    strangers = [name for name in files if name not in (MANIFEST, CHECKPOINT, *tables)]
    found += [Difference(name, None, None, "no such file", "one") for name in strangers]
    report, reasons = _recompute(files, manifest, checkpoint)
    differing, cells = ([], {}) if report is None else _compare_all(files, report, manifest)
    ordered = differing + reasons + found  # a cell says more than a hash
    verdicts = tuple(
        FileVerdict(name, cells.get(name, 0), tuple(d for d in ordered if d.file == name))
        for name in (MANIFEST, CHECKPOINT, *tables, *strangers)
    )
    return ReplayReport(manifest, verdicts, _elsewhere(manifest))


def _recompute(
    files: Mapping[str, bytes], manifest: Manifest, given: Checkpoint | None
) -> tuple[Report | None, list[Difference]]:
    """Run the audit or the lab again, or say why that cannot be done."""
    if given is None and CHECKPOINT not in files:
        return None, []
    try:
        used = _stored_checkpoint(files[CHECKPOINT]) if given is None else given
    except InputError as error:
        return None, [Difference(CHECKPOINT, None, None, "a checkpoint", f"none: {error}")]
    if used.digest != manifest.checkpoint_digest:
        digests = (f"the digest {manifest.checkpoint_digest[:12]}…", f"{used.digest[:12]}…")
        return None, [Difference(CHECKPOINT, None, None, *digests)]
    try:
        report = _report(used, manifest)
        differences = _manifest_differences(manifest, report)
    except InputError as error:
        return None, [Difference(MANIFEST, None, None, "a run to repeat", f"another: {error}")]
    return report, differences


def _report(used: Checkpoint, manifest: Manifest) -> Report:
    if manifest.kind == FAULTS:
        return run_faults(used, manifest.run)
    return run_audit(used, manifest.run, manifest.context_prompt)


def _whole(name: str, files: Mapping[str, bytes], manifest: Manifest) -> list[Difference]:
    """Say whether a file is there and has the recorded hash and length."""
    if name not in files:
        return [Difference(name, None, None, "the file", "none")]
    entry, data = manifest.files.get(name), files[name]
    if entry is None:
        return []
    found = []
    if entry.sha256 != sha256(data):
        digests = (f"SHA-256 {entry.sha256[:12]}…", f"{sha256(data)[:12]}…")
        found.append(Difference(name, None, None, *digests))
    if entry.bytes != len(data):
        found.append(Difference(name, None, None, f"{entry.bytes} bytes", str(len(data))))
    return found


def _listed(manifest: Manifest, known: tuple[str, ...]) -> list[Difference]:
    """Say whether the manifest lists every file, and no other."""
    missing = [
        Difference(MANIFEST, None, None, f"an entry for {name}", "none")
        for name in known
        if name not in manifest.files
    ]
    return missing + [
        Difference(MANIFEST, None, None, "the known files alone", shown(name))
        for name in manifest.files
        if name not in known
    ]


def _stored_checkpoint(data: bytes) -> Checkpoint:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CHECKPOINT
        path.write_bytes(data)
        try:
            return load_checkpoint(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), CHECKPOINT)) from None


def _manifest_differences(manifest: Manifest, report: Report) -> list[Difference]:
    pairs = {
        "dtype": (report.spec.dtype, manifest.dtype),
        "tolerance": (report.tolerance, manifest.tolerance),
        "passed": (report.passed, manifest.passed),
    }
    return [
        Difference(MANIFEST, None, name, repr(expected), shown(found))
        for name, (expected, found) in pairs.items()
        if expected != found
    ]


def _compare_all(
    files: Mapping[str, bytes], report: Report, manifest: Manifest
) -> tuple[list[Difference], dict[str, int]]:
    """Return what differs in the tables, and how many cells of each were compared."""
    recorded: dict[str, pd.DataFrame] = {}
    differences: list[Difference] = []
    for name in (name for name in tables_of(report) if name in files):
        try:
            recorded[name], found = _compare(name, files[name], report, manifest)
        except CsvError as error:
            place = (error.file, error.row, error.column)
            found = [Difference(*place, error.expected, error.found)]
        differences += found
    if not {d.file for d in differences} & _EQUIVALENCE and recorded.keys() >= _EQUIVALENCE:
        differences += own_differences(recorded, manifest.run.dtype)
    return differences, {name: int(table.size) for name, table in recorded.items()}


def _compare(
    name: str, data: bytes, report: Report, manifest: Manifest
) -> tuple[pd.DataFrame, list[Difference]]:
    table = tables_of(report)[name]
    recorded = recomputed = table.build(report)
    differences: list[Difference] = []
    if data != write_csv(recomputed, table.schema):  # the same bytes hold the same cells
        recorded = read_csv(data, table.schema)
        differences = compare_tables(recorded, recomputed, table.schema, report)
        if not differences and write_csv(recorded, table.schema) != data:
            spelling = ("cells spelled as the writer spells them", "another spelling")
            differences.append(Difference(name, None, None, *spelling))
    entry = manifest.files.get(name)
    if entry is not None and entry.rows != len(recorded):
        counts = (f"{entry.rows} rows (the manifest)", str(len(recorded)))
        differences.append(Difference(name, None, None, *counts))
    return recorded, differences


def _elsewhere(manifest: Manifest) -> tuple[str, ...]:
    pairs = ((manifest.code, code_version()), (manifest.environment, environment()))
    return tuple(
        f"{name}: {there[name]:.48} there, {here.get(name, 'none'):.48} here"
        for there, here in pairs
        for name in there
        if here.get(name) != there[name]
    )
