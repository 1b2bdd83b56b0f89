"""Texts from outside as Markdown: nothing in them is markup."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinydec.ui.html import code, digits, grouped, prose, spelled, table_html

# CommonMark 6.1: a fence of back-quotes, the text, a fence of the same length.
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
MARKED = st.text("`|\\[]()!<>$*_:ab/. ", max_size=20)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("<bos> A", "`<bos> A`"),
        ("`![x](http://192.0.2.1/a.png)`", "`` `![x](http://192.0.2.1/a.png)` ``"),
        ("a``b", "``` a``b ```"),
        ("`", "`` ` ``"),
        ("a\n\n![x](y)", "`a ![x](y)`"),
        ("", ""),
    ],
)
def test_code_span_is_fenced_longer_than_what_it_holds(text: str, span: str) -> None:
    assert code(text) == span


@given(MARKED)
def test_code_span_holds_the_whole_text(text: str) -> None:
    line = " ".join(text.split())
    found = SPAN.fullmatch(code(text))
    assert (found is None) == (not line)
    if found is not None:
        inside = found[2]
        if inside.startswith(" ") and inside.endswith(" "):  # the room that Markdown takes off
            inside = inside[1:-1]
        assert inside == line


def test_bar_in_a_table_does_not_end_the_cell() -> None:
    assert code("a|b", in_table=True) == "`a\\|b`"
    assert "|" not in code("\\|", in_table=True).replace("\\|", "")


@given(MARKED)
def test_prose_has_no_mark_outside_code(text: str) -> None:
    outside = SPAN.sub("", prose(f"expected one of A B, found {text}"))
    assert not set("`[]!<>$*|") & set(outside)
    assert "//" not in outside or "://" not in outside


def test_prose_keeps_plain_words_and_fences_the_others() -> None:
    assert prose("checkpoint a.safetensors: expected x, found 'b'.") == (
        "checkpoint a.safetensors: expected x, found 'b'."
    )
    assert prose("see www.example.org or [a](c) now") == "see `www.example.org` or `[a](c)` now"
    assert prose("n <= 64 :red[x] __b__") == "n `<=` 64 `:red[x] __b__`"


@pytest.mark.parametrize(
    ("number", "text"),
    [(1e-5, "1e−5"), (2.5e-12, "2.500e−12"), (3e8, "3e8"), (0.5, "0.5000")],
)
def test_powers_of_ten_are_spelled_without_leading_zeros(number: float, text: str) -> None:
    assert digits(number) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("difference at most 1e-05", "difference at most 1e−5"),
        ("1.07e-06, -2.5e+10", "1.07e−6, −2.5e10"),
        ("h.0.k at 1e-5 of b4b3e-05", "h.0.k at 1e−5 of b4b3e-05"),
        ("checkpoint 25e12", "checkpoint 25e12"),
        ("nothing here", "nothing here"),
        ("`-1.5` is -1.5, ``1e-05`` is 1e-05", "`-1.5` is −1.5, ``1e-05`` is 1e−5"),
        ("-1.94493 and (-2.238, -1.569)", "−1.94493 and (−2.238, −1.569)"),
        ("h.0.q-1.5, request-0, a -3 of 7", "h.0.q-1.5, request-0, a -3 of 7"),
    ],
)
def test_powers_of_ten_are_spelled_as_on_every_page(text: str, shown: str) -> None:
    assert spelled(text) == shown


def test_sentences_of_a_table_wrap_and_are_escaped() -> None:
    frame = pd.DataFrame({"a": ["within 1e-05 <b>"], "b": ["1e-05"]})
    html = table_html(frame, "t", sentences=("a",))
    assert '<td class="sentence">within 1e−5 &lt;b&gt;</td>' in html
    assert html.count('class="sentence"') == 1
    assert "<td>1e-05</td>" in html  # a token may look like a number


def test_columns_of_one_name_are_told_apart_by_place() -> None:
    frame = pd.DataFrame([[1, "x", 2.5]], columns=["a", "a", "a"])
    html = table_html(frame, "t")
    assert '<td class="number">1</td><td>x</td><td class="number" title="2.5">2.500</td>' in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2 · 134217728 = 268435456 bytes", "2 · 134 217 728 = 268 435 456 bytes"),
        ("9999 and 10000", "9999 and 10 000"),
        ("25cc1e5cc68a, 0.12345, v12345", "25cc1e5cc68a, 0.12345, v12345"),
    ],
)
def test_long_integers_of_a_formula_are_grouped(text: str, shown: str) -> None:
    assert grouped(text) == shown
