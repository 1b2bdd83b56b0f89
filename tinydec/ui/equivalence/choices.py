"""Two rows with one highest logit: why comparing tokens is not enough."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tinydec.ui import show
from tinydec.ui.audits import base_audit, course_audit
from tinydec.ui.current import CurrentRun
from tinydec.ui.equivalence import compute
from tinydec.ui.equivalence.common import BIND, acting_failures, choice_text, downloads, words
from tinydec.ui.equivalence.compute import case_label
from tinydec.ui.html import digits
from tinydec.verification.contrast import (
    keeps_choice,
    most_hidden,
    of_fault,
)
from tinydec.verification.faults import DELIBERATE


def choices_view(run: CurrentRun) -> None:
    """Two rows with one highest logit: why comparing tokens is not enough."""
    report = base_audit(run)
    names = [fault.name for fault in DELIBERATE]
    cases = [prefix.case for prefix in report.equivalence.prefixes]
    labels = {case_label(case): index for index, case in enumerate(cases)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fault = st.segmented_control(
            "Failure", names, default=names[-1], key="eq_fault", bind=BIND, required=True,
            format_func=words, label_visibility="collapsed",
        ) or names[-1]  # fmt: skip
        failures = of_fault(report.failures, fault)
        best = most_hidden(report.equivalence, failures)
        label = st.selectbox(
            "Prefix",
            list(labels),
            index=best,
            key="eq_prefix",
            bind=BIND,
            width=330,
            label_visibility="collapsed",
        )
    index = labels[label]
    failure, tokens = failures[index], run.checkpoint.vocabulary.tokens
    kept = sum(map(keeps_choice, failures))
    acting = acting_failures(report, fault)
    result = failure.result
    show.contract(
        "Equal tokens prove little: a broken cache can move every logit and leave the same one "
        "on top.",
        r"\arg\max_v \mathrm{full}_v = \arg\max_v \mathrm{broken}_v"
        r"\;\not\Rightarrow\; \mathrm{full} = \mathrm{broken}",
        f"{choice_text(tokens, result.full_argmax, result.cached_argmax)} on top; differs by "
        f"{digits(result.max_abs_error)}",
    )
    show.figure(
        compute.choices_chart(run, index, fault),
        key="eq.picture",
        alt=f"Two logits rows. Highest: {tokens[result.full_argmax]} without a cache, "
        f"{tokens[result.cached_argmax]} with the broken one; they differ by up to "
        f"{digits(result.max_abs_error)}.",
    )
    why = f" Here it cannot act: {failure.cannot_act}." if failure.cannot_act else ""
    show.look_for(
        f"the two triangles over one token while the bars part. {words(fault).capitalize()} "
        f"keeps the choice on {kept} of the {len(acting)} prefixes where it can act, so a test "
        f"that compares greedy tokens would pass there.{why}"
    )
    prefix = report.equivalence.prefixes[index]
    frame = pd.DataFrame(
        {
            "token": tokens,
            "full": prefix.logits.astype(float),
            words(fault): result.logits.astype(float),
        }
    )
    frame["difference"] = (frame["full"] - frame[words(fault)]).abs()
    show.table(frame, label="Both rows and their difference by token")
    with st.expander("Every prefix under this failure"):
        show.table(
            pd.DataFrame(
                {
                    "prefix": [f.case.tokens for f in failures],
                    "choice kept": [keeps_choice(f) for f in failures],
                    "without a cache": [tokens[f.result.full_argmax] for f in failures],
                    "broken": [tokens[f.result.cached_argmax] for f in failures],
                    "largest difference": [f.result.max_abs_error for f in failures],
                    "cannot act because": [f.cannot_act or "" for f in failures],
                }
            ),
            label="Which prefixes keep their highest logit",
            verdicts=("choice kept",),
        )
    downloads(course_audit(run), "deliberate_failures.csv")
