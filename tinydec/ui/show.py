"""What a page is made of: contract, figure, table, download, chips, cards, captions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from tinydec.figures.style import CONFIG
from tinydec.ui.html import Card, Chip, card_body_html, cards_html, chips_html, prose, table_html
from tinydec.ui.pages import page_link

#: Rows above which a table becomes a scrolling data frame instead of HTML.
LONGEST_TABLE = 300
#: Notes that are shown one by one.
MOST_NOTES = 12


def contract(sentence: str, formula: str = "", numbers: str = "") -> None:
    """Draw what the page is about; the first thing after the controls.

    Args:
        sentence: one sentence, plain text.
        formula: LaTeX without dollar signs.
        numbers: the same formula with this run's numbers, plain text in the monospaced face;
            a formula with numbers in LaTeX can go into ``formula`` as a second line.
    """
    st.html(f'<p class="td-contract">{escape(sentence)}</p>')
    formula_block(formula, numbers)


def formula_block(formula: str, numbers: str = "") -> None:
    """Draw an equation in LaTeX, its numbers filled in beside it, or below where it is narrow."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if formula:
            st.markdown(f"${formula}$", width="content")
        if numbers:
            st.html(f'<p class="td-numbers">{escape(numbers)}</p>', width="content")


def look_for(text: str) -> None:
    """Say what to look for in the picture above: one or two sentences, plain text."""
    st.html(f'<p class="td-look"><b>Look for:</b> {escape(text)}</p>')


def notes(lines: Iterable[str]) -> None:
    """Say what was replaced, such as a value in the URL that cannot be; nothing for no lines."""
    found = list(lines)
    if len(found) > MOST_NOTES:
        found = [*found[:MOST_NOTES], f"and {len(found) - MOST_NOTES} more like these"]
    items = "".join(f"<li>{escape(line)}</li>" for line in found)
    if items:
        st.html(f'<div role="status"><ul class="td-notes">{items}</ul></div>')


def chips(row: Iterable[Chip], *, label: str) -> None:
    """Draw a row of token chips; ``label`` names it for screen readers."""
    st.html(chips_html(row, label))


def token_row(
    prompt: Sequence[str],
    returned: Sequence[str] = (),
    *,
    consumed: int | None = None,
    current: int | None = None,
    label: str = "Tokens of the run",
    notes: Sequence[str] = (),
) -> None:
    """Draw a run's tokens: prompt, then returned ones, those never consumed with a dashed edge.

    Args:
        prompt: token strings.
        returned: token strings.
        consumed: how many inputs the decoder has read; by default all but the last returned.
        current: index of the token to point at.
        label: names the row for screen readers.
        notes: text under each token, such as its position.
    """
    tokens = [*prompt, *returned]
    read = len(tokens) - bool(returned) if consumed is None else consumed
    roles = [
        "prompt" if i < len(prompt) else "consumed" if i < read else "returned"
        for i in range(len(tokens))
    ]
    chips(
        (
            Chip(token, role, notes[i] if i < len(notes) else "", i == current)
            for i, (token, role) in enumerate(zip(tokens, roles, strict=True))
        ),
        label=label,
    )


def cards(row: Iterable[Card], *, label: str) -> None:
    """Draw one row of verdict cards; ``label`` names it for screen readers."""
    st.html(cards_html(row, label))


def linked_cards(row: Iterable[Card], *, key: str) -> None:
    """Draw one row of verdict cards whose names lead to the pages that prove them.

    The links are Streamlit's own: they keep the visit, and with it an uploaded checkpoint.
    """
    with st.container(horizontal=True, gap="small", key=f"td-cards-{key}"):
        for index, card in enumerate(row):
            with st.container(key=f"td-card-{key}-{index}", gap=None):
                if card.page:
                    page_link(card.page, prose(card.name))
                else:
                    st.markdown(prose(card.name))
                st.html(f'<div class="td-card {card.tone}">{card_body_html(card)}</div>')


def figure(chart: go.Figure, *, key: str, alt: str) -> None:
    """Draw a chart made by :mod:`tinydec.figures`.

    Args:
        chart: finished with :func:`tinydec.figures.style.finish`.
        key: unique on the page and the same in every run, so that the chart is updated in place.
        alt: what a screen reader says: the chart's message, with its main numbers.
    """
    st.plotly_chart(chart, theme="streamlit", key=key, config=CONFIG, alt=alt)


def table(
    frame: pd.DataFrame,
    *,
    label: str,
    significant: int = 4,
    headings: Mapping[str, str] | None = None,
    verdicts: Sequence[str] = (),
    sentences: Sequence[str] = (),
) -> None:
    """Draw a table: sensible digits, every digit on hover, the index hidden.

    Args:
        frame: at most a few hundred rows; longer ones become a scrolling data frame.
        label: says what the table holds, for screen readers.
        significant: figures of a float.
        headings: other headings for some columns.
        verdicts: boolean columns to show as ✓ and ✗.
        sentences: columns of prose, which wrap.
    """
    if len(frame) > LONGEST_TABLE:
        st.dataframe(frame.rename(columns=headings or {}), hide_index=True, alt=label)
        return
    st.html(
        table_html(
            frame,
            label,
            significant=significant,
            headings=headings,
            verdicts=verdicts,
            sentences=sentences,
        )
    )


def download(
    label: str,
    data: Callable[[], bytes],
    file_name: str,
    *,
    key: str,
    mime: str = "text/csv",
) -> None:
    """Draw a button that downloads bytes of our own writer.

    ``data`` is called only when a visitor clicks; the page is not run again.
    """
    st.download_button(
        label,
        data,
        file_name,
        mime,
        key=key,
        on_click="ignore",
        icon=":material/download:",
        type="tertiary",
    )


def disclaimer() -> None:
    """Say what a generated trace does and does not show; beside every generated trace."""
    st.caption(
        "This trace tests how the loop runs and how its random numbers are spent. A model of "
        "this size, trained on four patterns, says nothing about the quality of language."
    )
