"""Work with and without a cache, and what a timing of it says."""

from __future__ import annotations

import time

import pandas as pd
import streamlit as st

from tinydec.evidence.cost_tables import TIMING, WORK, timing_table
from tinydec.evidence.csv_format import write_csv
from tinydec.memory import decode_work
from tinydec.memory.shapes import SHAPES
from tinydec.memory.timing import StepTiming, time_steps
from tinydec.ui import show
from tinydec.ui.current import CurrentRun
from tinydec.ui.html import digits
from tinydec.ui.memory import compute
from tinydec.ui.memory.compute import OWN
from tinydec.ui.memory.controls import BIND

LENGTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512)
MOST_ROWS = 64
REPEATS = 15
#: Longest context that a visitor may time on the server.
MOST_TIMED = 64

_TIMING = "_mem_timing"


def work_view(run: CurrentRun) -> None:
    """Draw multiply-adds of each step and their sums, with and without a cache."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shape = st.selectbox(
            "Sizes", [OWN, *SHAPES], key="mem_shape", bind=BIND, width=180
        )  # fmt: skip
        asked = st.select_slider("Prompt, P", LENGTHS, 1, key="mem_prompt", bind=BIND, width=190)
        wanted = st.select_slider(
            "Returned tokens, N", LENGTHS, 4, key="mem_new", bind=BIND, width=190
        )
    sizes = compute.sizes_of(run.checkpoint, shape)
    context = sizes.context or 1
    prompt = min(asked, context)
    new = min(wanted, context - prompt + 1)
    steps = compute.work(run, shape, prompt, new)
    last = steps[-1]
    one, all_rows = last.cached.visible.total, last.uncached.visible.total
    total, full = last.cached_visible_sum.total, last.uncached_visible_sum.total
    show.contract(
        "With a cache a step computes one row; without one it computes every row again.",
        r"\text{saved} = \frac{\sum_t \text{full}(t)}{\text{prefill} + \sum_t \text{decode}(t)}",
        f"all {new} steps: {digits(full)} / {digits(total)} = {full / total:.2f} x\n"
        f"last step alone: {digits(all_rows)} / {digits(one)} = {all_rows / one:.2f} x",
    )
    show.figure(
        compute.work_chart(run, shape, prompt, new),
        key="mem.picture",
        alt=f"Multiply-adds by step: the last takes {digits(one)} with a cache and "
        f"{digits(all_rows)} without; all together {digits(total)} and {digits(full)}.",
    )
    if (prompt, new) != (asked, wanted):
        st.caption(
            f"P = {asked} and N = {wanted} were asked for; a context of {context} allows "
            f"P = {prompt} and N = {new}, as the last returned token is not consumed."
        )
    show.look_for(
        "the grey line that climbs with every token while the green one stays almost flat: only "
        f"attention, {digits(last.cached.visible.attention)} of {digits(one)} multiply-adds in the "
        "last step, grows with what is cached. Both start equal, since the first step is the "
        "prefill and saves nothing."
    )
    frame = compute.work_rows(run, shape, prompt, new)
    show.table(_rows(frame.head(MOST_ROWS)), label="Multiply-adds of each step")
    st.caption(
        "Counted: matrix products, each query with the keys it may see, logits for the last row. "
        "Not counted: embeddings, biases, norms, softmax, GELU."
        + (f" The first {MOST_ROWS} of {len(frame)} steps." if len(frame) > MOST_ROWS else "")
    )
    show.download("work.csv", lambda: write_csv(frame, WORK), "work.csv", key="_mem.work")
    _timing(run)


def _rows(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "step": frame["step"],
            "phase": frame["phase"],
            "tokens": frame["tokens"],
            "projections": frame["cached_projections"],
            "attention": frame["cached_attention"],
            "MLP": frame["cached_mlp"],
            "head": frame["cached_head"],
            "with a cache": frame["cached_total"],
            "without": frame["full_total"],
            "ratio": [
                f"{a / b:.2f}" for a, b in zip(frame["full_total"], frame["cached_total"],
                                               strict=True)
            ],
        }
    )  # fmt: skip


# Timing -------------------------------------------------------------------------------------------


def _timing(run: CurrentRun) -> None:
    st.header("What a timing here says", anchor=False)
    config = run.checkpoint.config
    if config.n_positions > MOST_TIMED:
        st.caption(f"Timing is offered for contexts of at most {MOST_TIMED} tokens.")
        return
    st.button(
        "Time this checkpoint here",
        icon=":material/timer:",
        key="_mem.time",
        on_click=_measure,
        args=(run,),
    )
    found_key, found = st.session_state.get(_TIMING, (None, ()))
    if found_key == _timing_key(run):
        show.table(_timing_rows(found), label="Microseconds of one step, measured just now")
        show.download("timing.csv", lambda: write_csv(timing_table(found), TIMING), "timing.csv",
                      key="_mem.timing")  # fmt: skip
    own = compute.sizes_of(run.checkpoint, OWN)
    count = decode_work(own, config.n_positions - 1, "last").visible.total
    st.markdown(
        f"The count says how much there is to multiply: {digits(count)} multiply-adds in the last "
        f"decode step of this checkpoint. The clock also sees every call into NumPy, and with "
        f"{digits(config.parameter_count())} parameters the calls may well outweigh the "
        "arithmetic: then the ratio stays far below that of the counts. So a timing says what "
        "*this program* costs *here and now*, with whatever else this machine is doing. It says "
        "nothing about other machines or larger models; the counts hold everywhere. To see a "
        "cache pay off in seconds, run `make bench`: it times a model of GPT-2 small's sizes."
    )


def _measure(run: CurrentRun) -> None:
    repeats = REPEATS if run.checkpoint.config.n_positions <= 8 else 5
    found = time_steps(run.checkpoint.cast(run.spec.dtype), repeats, time.perf_counter)
    st.session_state[_TIMING] = (_timing_key(run), found)


def _timing_key(run: CurrentRun) -> tuple[str, str]:
    return run.checkpoint.digest, run.spec.dtype


def _timing_rows(found: tuple[StepTiming, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "tokens": [step.length for step in found],
            "decode step, median µs": [step.cached[1] * 1e6 for step in found],
            "middle half": [_range(step.cached) for step in found],
            "full forward, median µs": [step.full[1] * 1e6 for step in found],
            "its middle half": [_range(step.full) for step in found],
            "ratio": [f"{step.ratio:.2f}" for step in found],
        }
    )


def _range(quartiles: tuple[float, float, float]) -> str:
    return f"{quartiles[0] * 1e6:.1f} to {quartiles[2] * 1e6:.1f}"
