"""One of the runs, every intermediate: the first tensor that differs."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tinydec.figures.log_axis import short
from tinydec.model.activations import tensor_names
from tinydec.ui import show
from tinydec.ui.audits import base_audit, course_audit
from tinydec.ui.current import CurrentRun
from tinydec.ui.equivalence import compute
from tinydec.ui.equivalence.common import BIND, downloads, words
from tinydec.ui.equivalence.compute import CORRECT_CACHE, run_label
from tinydec.ui.html import digits
from tinydec.verification.faults import DELIBERATE


def tensors_view(run: CurrentRun) -> None:
    """One of the runs, every intermediate: the first tensor that differs."""
    report = base_audit(run)
    rows = {run_label(row): row for row in report.equivalence.rows}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label = st.selectbox(
            f"Run, one of {len(rows)}", list(rows), index=min(compute.FIRST_RUN, len(rows) - 1),
            key="eq_run", bind=BIND, width=380, label_visibility="collapsed",
        )  # fmt: skip
        cache = st.segmented_control(
            "Cache", [CORRECT_CACHE, *(f.name for f in DELIBERATE)], default=CORRECT_CACHE,
            key="eq_cache", bind=BIND, required=True, format_func=words,
            label_visibility="collapsed",
        )  # fmt: skip
    chosen = rows[label]
    index = [p.case for p in report.equivalence.prefixes].index(chosen.case)
    key = (index, chosen.prefill_length, cache or CORRECT_CACHE)
    split = compute.split_result(run, *key)
    show.contract(
        "Every intermediate is compared, and a mismatch is named by the first tensor that leaves "
        "the tolerance.",
        r"\lvert x^{\mathrm{full}} - x^{\mathrm{cached}} \rvert \le \varepsilon",
        f"{split.errors.shape[0]} tensors: largest "
        f"{digits(float(split.errors.max()))}. {_first(split.first_difference, split.tolerance)}",
    )
    show.figure(
        compute.tensors_chart(run, *key),
        key="eq.picture",
        alt=f"Largest difference of each tensor at each position. "
        f"{_first(split.first_difference, split.tolerance)}",
    )
    show.look_for(
        "empty cells, which are equal to the last bit, and how rounding gathers towards the right. "
        "Under a failure, everything before the first marked cell is still right. h.0 is the first "
        "layer: layers and positions count from 0."
    )
    names = tensor_names(run.checkpoint.config.n_layer)
    frame = pd.DataFrame(
        split.errors,
        columns=[
            f"position {i}: {t}"
            for i, t in enumerate(run.checkpoint.vocabulary.tokens[t] for t in split.case.token_ids)
        ],
    )
    frame.insert(0, "tensor", names)
    frame["within"] = (split.errors <= split.tolerance).all(axis=1).tolist()
    show.table(frame, label="Largest difference of each tensor", verdicts=("within",))
    downloads(course_audit(run), "intermediates.csv", "cache_trace.csv")


def _first(first: tuple[str, int] | None, tolerance: float) -> str:
    if first is None:
        return f"None beyond {short(tolerance)}."
    return f"First beyond {short(tolerance)}: {first[0]} at position {first[1]}."
