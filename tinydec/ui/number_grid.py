"""A grid of numbers that can be clicked, walked by keyboard and stepped through frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike

from tinydec.errors import InputError
from tinydec.figures.palette import COLOURS, NEGATIVE, POSITIVE
from tinydec.ui.html import full

_STATIC = Path(__file__).resolve().parent / "static"
_EVENT = "cell"


@dataclass(frozen=True, eq=False)
class Grid:
    """One named grid.

    Attributes:
        name: identifies it in a :class:`Cell`; unique within a frame.
        title: above the grid, and what a screen reader says with each cell.
        values: (rows, columns) numbers; NaN leaves a cell empty, infinities are shown.
        rows: a label for each row.
        columns: a label for each column.
        limit: the magnitude of the full colour; pin it over all frames and grids that are
            compared. None leaves the cells without colour.
        decimals: shown after the point; every digit is there on hover.
        role: a meaning of the palette (``query``, ``key`` …) that colours the title, or "".
        marked: (row, column) pairs to be framed, such as the row just appended.
    """

    name: str
    title: str
    values: ArrayLike
    rows: Sequence[str]
    columns: Sequence[str]
    limit: float | None = None
    decimals: int = 3
    role: str = ""
    marked: Iterable[tuple[int, int]] = field(default=())


@dataclass(frozen=True)
class Frame:
    """What stands there at one step: a label such as ``step 2: consume B``, and the grids."""

    label: str
    grids: Sequence[Grid]


@dataclass(frozen=True)
class Cell:
    """A cell of a named grid, in the frame in which it was chosen."""

    grid: str
    row: int
    column: int
    frame: int = 0


def number_grid(
    frames: Sequence[Grid] | Sequence[Frame],
    *,
    key: str,
    frame: int = 0,
    selected: Cell | None = None,
) -> Cell | None:
    """Draw grids and return the cell that the visitor has just chosen, or None.

    A click, Enter or Space chooses; arrow keys, Home and End walk. With several frames there
    are Back and Next step buttons that step in the browser, without the server.

    Args:
        frames: grids to stand side by side, or frames of such grids.
        key: unique on the page.
        frame: the frame to show first; a changed value moves the visitor there.
        selected: the cell to show as chosen (keep the returned one, see :func:`chosen_cell`).

    Raises:
        InputError: values that are not (rows, columns), or an unknown role.
    """
    data = grid_data(frames, frame, selected)
    result = _component()(key=key, data=data, on_cell_change=_nothing)
    return _read(result.get(_EVENT), data)


def chosen_cell(
    frames: Sequence[Grid] | Sequence[Frame],
    *,
    key: str,
    default: Cell | None = None,
    frame: int = 0,
) -> Cell | None:
    """Draw grids as :func:`number_grid` does and remember the choice for the visit.

    Returns the cell chosen last, as long as it exists in ``frames``; else ``default``.
    """
    memory = f"_{key}.cell"

    def remember() -> None:
        state: Any = st.session_state.get(key)
        cell = _read(state.get(_EVENT) if state else None, None)
        if cell is not None:
            st.session_state[memory] = cell

    kept = st.session_state.get(memory, default)
    data = grid_data(frames, frame, kept)
    if kept is not default and not _exists(kept, data):
        kept = default
        data = grid_data(frames, frame, kept)
    _component()(key=key, data=data, on_cell_change=remember)
    return kept if isinstance(kept, Cell) else None


def grid_data(
    frames: Sequence[Grid] | Sequence[Frame], frame: int, selected: Cell | None
) -> dict[str, Any]:
    """Return what the component draws, as JSON values. Pure.

    Raises:
        InputError: see :func:`number_grid`.
    """
    steps = [f if isinstance(f, Frame) else None for f in frames]
    if any(step is None for step in steps):
        steps = [Frame("", [g for g in frames if isinstance(g, Grid)])]
    return {
        "frames": [
            {"label": step.label, "grids": [_grid_data(g) for g in step.grids]}
            for step in steps
            if step is not None
        ],
        "frame": min(max(frame, 0), max(len(steps) - 1, 0)),
        "selected": None if selected is None else [selected.grid, selected.row, selected.column],
    }


def _grid_data(grid: Grid) -> dict[str, Any]:
    values = np.asarray(grid.values)
    if values.shape != (len(grid.rows), len(grid.columns)):
        raise InputError(
            f"grid {grid.name}: expected {len(grid.rows)} rows and {len(grid.columns)} columns "
            f"of values, found shape {values.shape}"
        )
    if grid.role and grid.role not in COLOURS:
        raise InputError(f"grid {grid.name}: expected a role of the palette, found {grid.role!r}")
    return {
        "name": grid.name,
        "title": grid.title,
        "role": grid.role or "none",
        "rows": list(grid.rows),
        "columns": list(grid.columns),
        "texts": [[_text(v, grid.decimals) for v in row] for row in values],
        "exact": [["" if _empty(v) else full(v) for v in row] for row in values],
        "levels": [[_level(v, grid.limit) for v in row] for row in values],
        "marked": [list(pair) for pair in grid.marked],
    }


def _empty(value: Any) -> bool:
    return bool(np.isnan(value))


def _text(value: Any, decimals: int) -> str:
    if _empty(value):
        return ""
    if np.isinf(value):
        return "−∞" if value < 0 else "∞"
    if isinstance(value, np.integer):
        return str(int(value))
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def _level(value: Any, limit: float | None) -> float:
    """Strength of the colour, -1 to 1; none for what is not finite."""
    if limit is None or limit <= 0 or not np.isfinite(value):
        return 0.0
    return round(min(max(float(value) / limit, -1.0), 1.0), 3)


def _read(value: Any, data: dict[str, Any] | None) -> Cell | None:
    """Return the cell in a message from the browser, which may hold anything."""
    if not isinstance(value, dict):
        return None
    grid, numbers = value.get("grid"), [value.get(n) for n in ("row", "column", "frame")]
    if not isinstance(grid, str) or not all(type(n) is int and n >= 0 for n in numbers):
        return None
    cell = Cell(grid, *numbers)  # type: ignore[arg-type]
    return cell if data is None or _exists(cell, data) else None


def _exists(cell: Cell, data: dict[str, Any]) -> bool:
    if cell.frame >= len(data["frames"]):
        return False
    for grid in data["frames"][cell.frame]["grids"]:
        if grid["name"] == cell.grid:
            return cell.row < len(grid["rows"]) and cell.column < len(grid["columns"])
    return False


def _nothing() -> None:
    """Stand in for a callback: Streamlit reports only events that have one."""


@st.cache_resource(max_entries=1, show_spinner=False)
def _component() -> Callable[..., Any]:
    css = (_STATIC / "number_grid.css").read_text(encoding="utf-8")
    return st.components.v2.component(
        "tinydec.number_grid",
        html='<div class="root"></div>\n',
        css=css.replace("POSITIVE", POSITIVE).replace("NEGATIVE", NEGATIVE),
        js=(_STATIC / "number_grid.js").read_text(encoding="utf-8"),
    )
