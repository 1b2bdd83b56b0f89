"""Real models' attention layouts, read from `assets/kv_models.csv` and checked row by row."""

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tinydec.errors import InputError
from tinydec.memory.layout import AttentionLayout, LayoutError

PRESETS_FILE = Path(__file__).resolve().parents[2] / "assets" / "kv_models.csv"

COLUMNS = (
    "name",
    "attention",
    "global_layers",
    "window_layers",
    "window",
    "query_heads",
    "kv_heads",
    "head_dim",
    "latent_dim",
    "max_context",
    "dtype",
    "verified",
    "notes",
    "source",
)
_OPTIONAL = frozenset({"window", "kv_heads", "head_dim", "latent_dim"})
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


def load_presets(path: str | Path | None = None) -> Mapping[str, AttentionLayout]:
    """Return the layouts of a presets file by name, in file order, as a read-only mapping.

    path: a CSV file with the columns of `COLUMNS`; None means the shipped one. Rows are counted as
    a spreadsheet shows them: the header is row 1. Raises InputError for a file that cannot be read,
    a wrong header, or a bad row (naming row, column, what was expected and what was found).
    """
    file = PRESETS_FILE if path is None else Path(path)
    rows = _read_rows(file)
    if not rows or tuple(rows[0]) != COLUMNS:
        found = repr(",".join(rows[0])) if rows else "an empty file"
        raise InputError(f"{file.name}, row 1: expected columns {','.join(COLUMNS)}, found {found}")
    presets: dict[str, AttentionLayout] = {}
    seen: dict[str, int] = {}
    for number, cells in enumerate(rows[1:], start=2):
        layout = _parse_row(file.name, number, cells)
        earlier = seen.setdefault(layout.name.casefold(), number)
        if earlier != number:
            raise InputError(
                f"{file.name}, row {number}, column name: expected a name not used before, "
                f"found {layout.name!r} (also row {earlier})"
            )
        presets[layout.name] = layout
    if not presets:
        raise InputError(f"{file.name}: expected at least one model, found the header alone")
    return MappingProxyType(presets)


def find_preset(name: str, presets: Mapping[str, AttentionLayout]) -> AttentionLayout:
    """Return the preset called `name`, upper or lower case; InputError lists the valid names."""
    given: object = name  # may come unchecked from a command line
    wanted = given.strip().casefold() if isinstance(given, str) else None
    for preset_name, layout in presets.items():
        if preset_name.casefold() == wanted:
            return layout
    raise InputError(f"model: expected one of {', '.join(presets)}; found {name!r}")


def _read_rows(file: Path) -> list[list[str]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            return list(csv.reader(stream, strict=True))
    except (OSError, ValueError, csv.Error) as error:  # ValueError: not UTF-8, or NUL in the path
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise InputError(f"{file}: expected a UTF-8 CSV file of presets, found: {reason}") from None


def _parse_row(file: str, number: int, cells: list[str]) -> AttentionLayout:
    if len(cells) != len(COLUMNS):
        column = "none" if not cells else COLUMNS[min(len(cells), len(COLUMNS)) - 1]
        raise InputError(
            f"{file}, row {number}, last column {column}: expected {len(COLUMNS)} cells, "
            f"found {len(cells)}"
        )
    row = dict(zip(COLUMNS, cells, strict=True))

    def bad(column: str, expected: str, found: str) -> InputError:
        where = f"{file}, row {number} ({row['name']!r}), column {column}"
        return InputError(f"{where}: expected {expected}, found {found}")

    def whole(column: str) -> int:
        if _WHOLE.fullmatch(row[column]) is None:
            raise bad(column, "a whole number in plain digits", repr(row[column]))
        return int(row[column])

    def optional(column: str) -> int | None:
        return None if row[column] == "" and column in _OPTIONAL else whole(column)

    if row["verified"] not in ("yes", "no"):
        raise bad("verified", "yes or no", repr(row["verified"]))
    if row["source"].strip() == "":
        raise bad("source", "where the numbers come from", "nothing")
    try:
        return AttentionLayout(
            name=row["name"],
            attention=row["attention"],
            global_layers=whole("global_layers"),
            window_layers=whole("window_layers"),
            window=optional("window"),
            query_heads=whole("query_heads"),
            kv_heads=optional("kv_heads"),
            head_dim=optional("head_dim"),
            latent_dim=optional("latent_dim"),
            max_context=whole("max_context"),
            dtype=row["dtype"],
            verified=row["verified"] == "yes",
            notes=row["notes"],
            source=row["source"],
        )
    except LayoutError as error:
        raise bad(error.field, error.expected, error.found) from None
