"""The parts of the evidence page: gate, bundle, tables, manifest."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from tinydec.evidence.cells import cell_text
from tinydec.evidence.commands import audit_command
from tinydec.evidence.manifest import MANIFEST
from tinydec.evidence.registry import tables_of
from tinydec.evidence.schema import TableSchema
from tinydec.figures.log_axis import short
from tinydec.memory import format_bytes
from tinydec.ui import show
from tinydec.ui.audits import csv_bytes, current_audit
from tinydec.ui.current import CurrentRun
from tinydec.ui.evidence import compute
from tinydec.ui.evidence.compute import FOLDER, MOST_VALUES
from tinydec.verification.gate import EQUALS

BIND: Literal["query-params"] = "query-params"

TABLES, MANIFEST_VIEW = "Tables", "Manifest"
#: Rows of a table that are shown at once.
SLICE = 50
FIRST_TABLE = "prefix_equivalence.csv"


def gate_part(run: CurrentRun) -> None:
    """Draw the five conditions with their figures."""
    report = current_audit(run)
    held = sum(condition.passed for condition in report.gate)
    show.contract(
        "A claim is worth what others can recompute: every number of an audit is written down, "
        "with what is needed to run it again.",
        r"\operatorname{replay}(\text{bundle}) = \operatorname{audit}(\text{manifest})",
        f"{held} of {len(report.gate)} conditions hold\n{report.spec.dtype}, tolerance "
        f"{short(report.tolerance)}, seed {report.spec.seed}",
    )
    show.figure(
        compute.gate_chart(report),
        key="ev.picture",
        alt="The milestone's five conditions. "
        + " ".join(f"{c.measure}: {_figure(c.figure)}." for c in report.gate),
    )
    show.look_for(
        "four full bars, and below them the dashed tolerance well between rounding and the "
        "smallest deliberate failure. Lower the tolerance in the run controls and see which "
        "condition gives way first."
    )
    show.table(
        pd.DataFrame(
            {
                "no.": [c.number for c in report.gate],
                "holds": [c.passed for c in report.gate],
                "figure": [_figure(c.figure) for c in report.gate],
                "must be": [
                    f"{'' if c.relation == EQUALS else 'above '}{_figure(c.expected)}"
                    for c in report.gate
                ],
                "the milestone's condition": [c.condition for c in report.gate],
                "what the figure is": [c.measure for c in report.gate],
            }
        ),
        label="Acceptance conditions",
        verdicts=("holds",),
        sentences=("the milestone's condition", "what the figure is"),
    )


def bundle_part(run: CurrentRun) -> bool:
    """Draw the zip and the commands; say whether this checkpoint's tables are small enough."""
    report = current_audit(run)
    st.header("The bundle", anchor=False)
    name = _file_name()
    audit = audit_command(run.checkpoint, report.spec, FOLDER, name)
    count = compute.value_count(report)
    if count > MOST_VALUES:
        st.caption(
            f"This checkpoint's bundle holds about {count} values, more than the {MOST_VALUES} "
            "that the page writes for a visitor. The command line writes it:"
        )
        show.formula_block("", audit)
        return False
    files = tables_of(report)
    st.markdown(
        f"{len(files)} tables, the checkpoint and a manifest, in one zip. It is made at the click; "
        "the same run gives the same bytes. Recompute it anywhere with:"
    )
    show.formula_block("", f"unzip {FOLDER}.zip\npython -m tinydec replay {FOLDER}")
    st.markdown("The command line writes the same files from scratch:")
    show.formula_block("", audit)
    show.download(
        "Whole bundle",
        partial(compute.zip_bytes, run.checkpoint, run.spec),
        f"{FOLDER}.zip",
        key="_ev.zip",
        mime="application/zip",
    )
    return True


def tables_part(run: CurrentRun) -> None:
    """Draw one table, a slice at a time, with the meaning of its columns."""
    report = current_audit(run)
    tables = tables_of(report)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = list(tables)
        file = st.selectbox(
            "Table", names, index=names.index(FIRST_TABLE), key="ev_table", bind=BIND, width=300
        )
        frame, schema = compute.table(run, file), tables[file].schema
        start = _slice_control(file, len(frame))
        show.download(file, partial(csv_bytes, report, file), file, key=f"_ev.{file}")
    rows = f"rows {start + 1} to {min(start + SLICE, len(frame))} of {len(frame)}"
    st.caption(
        f"{schema.title}: {rows if len(frame) > SLICE else f'{len(frame)} rows'}. "
        "The columns are named as in the CSV; what they mean stands below."
    )
    show.table(_shown(frame.iloc[start : start + SLICE], schema), label=f"{file}, {rows}")
    with st.expander(f"What the {len(schema.columns)} columns mean"):
        show.table(
            pd.DataFrame(
                {
                    "column": [c.name for c in schema.columns],
                    "meaning": [c.meaning for c in schema.columns],
                    "a replay compares it": [c.rule for c in schema.columns],
                }
            ),
            label=f"Columns of {file}",
            sentences=("meaning",),
        )


def manifest_part(run: CurrentRun) -> None:
    """Draw the manifest: what determines the run, where it ran, and every file's hash."""
    data = compute.bundle(run)[MANIFEST]
    manifest: dict[str, Any] = json.loads(data)
    files = manifest.pop("files")
    run_values = manifest.pop("run")
    show.download(MANIFEST, lambda: data, MANIFEST, key="_ev.manifest", mime="application/json")
    show.table(
        pd.DataFrame(
            [(key, text) for key, text in _flat({"run": run_values} | manifest)],
            columns=["entry", "value"],
        ),
        label="Manifest: the run, the checkpoint, the code and the machine",
    )
    show.table(
        pd.DataFrame(
            {
                "file": list(files),
                "rows": [entry.get("rows", "") for entry in files.values()],
                "size": [format_bytes(entry["bytes"]) for entry in files.values()],
                "SHA-256": [entry["sha256"] for entry in files.values()],
            }
        ),
        label="Manifest: every file with its hash",
    )


def _slice_control(file: str, count: int) -> int:
    """Draw the control that steps through a long table; return the first row shown."""
    pages = max(1, -(-count // SLICE))
    if pages == 1:
        return 0
    page: int = st.slider("Part of the table", 1, pages, key=f"_ev.part.{file}", width=220)
    return (page - 1) * SLICE


def _shown(frame: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Return a table with tuples and empty cells as the CSV spells them."""
    spelled = {
        column.name: [cell_text(value, column) for value in frame[column.name].tolist()]
        for column in schema.columns
        if column.kind == "numbers" or column.optional
    }
    return frame.assign(**spelled)


def _flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{key}.")
        else:
            text = " ".join(map(str, value)) if isinstance(value, list) else json.dumps(value)
            found.append((f"{prefix}{key}", text.strip('"')))
    return found


def _figure(value: float) -> str:
    return f"{value:g}" if value == int(value) else short(value, 4)


def _file_name() -> str:
    upload = st.session_state.get("_upload")
    return getattr(upload, "name", "")
