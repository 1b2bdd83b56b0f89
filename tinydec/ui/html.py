"""Small pieces of HTML as pure functions; every text is escaped here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

ROLES = ("prompt", "consumed", "returned", "plain")


@dataclass(frozen=True)
class Chip:
    """One token: its text, its role, a note below it, and whether it is the current one.

    Roles: ``prompt`` (given), ``consumed`` (returned by the policy, then read by the decoder),
    ``returned`` (selected, never consumed), ``plain``.
    """

    text: str
    role: str = "plain"
    note: str = ""
    current: bool = False


@dataclass(frozen=True)
class Card:
    """One verdict card: what it is about, its figure, the verdict, and the page that proves it.

    ``good`` colours it; None is a card without a verdict. ``page`` is a page's ``url_path``.
    """

    name: str
    value: str
    verdict: str = ""
    good: bool | None = None
    page: str = ""

    @property
    def tone(self) -> str:
        """``good``, ``bad`` or ``plain``."""
        return "plain" if self.good is None else "good" if self.good else "bad"


def chips_html(chips: Iterable[Chip], label: str) -> str:
    """Return a row of token chips; ``label`` names the row for screen readers."""
    items = []
    for chip in chips:
        role = chip.role if chip.role in ROLES else "plain"
        current = ' aria-current="step"' if chip.current else ""
        classes = f"td-chip {role}{' current' if chip.current else ''}"
        note = f"<br>{escape(chip.note)}" if chip.note else ""
        items.append(
            f'<li><span class="{classes}"{current} title="{escape(chip.text)}">'
            f"{escape(chip.text)}</span>{note}</li>"
        )
    return f'<ul class="td-chips" aria-label="{escape(label)}">{"".join(items)}</ul>'


def cards_html(cards: Iterable[Card], label: str) -> str:
    """Return one row of verdict cards, without their links."""
    items = "".join(
        f'<li class="{card.tone}"><div class="name">{escape(card.name)}</div>'
        f"{card_body_html(card)}</li>"
        for card in cards
    )
    return f'<ul class="td-cards" aria-label="{escape(label)}">{items}</ul>'


def card_body_html(card: Card) -> str:
    """Return a card's figure and verdict, what stands below its name."""
    sign = {"good": "✓ ", "bad": "✗ ", "plain": ""}[card.tone]
    verdict = f'<div class="verdict">{sign}{escape(card.verdict)}</div>' if card.verdict else ""
    return f'<div class="value">{escape(card.value)}</div>{verdict}'


# Texts from a checkpoint or a visitor in Markdown ------------------------------------------------

# Words that no Markdown rule touches: no marks, no shorthand between colons.
_HARMLESS = re.compile(r"(?![_-])[\w.,;()'\"/%…-]+(?<!_):?")


def code(text: str, *, in_table: bool = False) -> str:
    """Return any text as a Markdown code span, in which nothing is read as Markdown or HTML.

    The fence is longer than any run of back-quotes inside (CommonMark 6.1). Tokens, prompts and
    file names come from outside: they enter Markdown only through this.

    Args:
        text: any text; white space becomes single spaces.
        in_table: whether the span stands in a cell of a table, where a bar has to be escaped.
    """
    line = " ".join(text.split())
    if not line:
        return ""
    if in_table:  # a backslash before a bar could not be told from the escape
        line = line.replace("\\|", "\\¦").replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    room = " " if longest else ""
    return f"{fence}{room}{line}{room}{fence}"


def prose(text: str) -> str:
    """Return a line of prose that quotes outside text, such as a refusal, as Markdown.

    Words that Markdown could read as anything but letters become code spans.
    """
    runs: list[tuple[bool, list[str]]] = []
    for word in text.split():
        # Markdown makes a link of a bare `www.`, and bold text of double underscores.
        address = "www." in word.lower() or "__" in word
        harmless = _HARMLESS.fullmatch(word) is not None and not address
        if runs and runs[-1][0] == harmless:
            runs[-1][1].append(word)
        else:
            runs.append((harmless, [word]))
    return " ".join(
        " ".join(words) if harmless else code(" ".join(words)) for harmless, words in runs
    )


# Numbers -----------------------------------------------------------------------------------------


def digits(value: Any, significant: int = 4) -> str:
    """Return a number with sensible digits: integers whole, floats to ``significant`` figures.

    Small and large floats take the scientific form; anything else is ``str(value)``.
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return grouped(str(int(value))).replace("-", "−")
    if isinstance(value, float | np.floating):
        return _float(float(value), significant)
    return "" if value is None else str(value)


def _float(number: float, significant: int) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number == 0:
        return "0"
    exponent = math.floor(math.log10(abs(number)))
    if -4 <= exponent < significant + 2:
        text = f"{number:.{max(0, significant - 1 - exponent)}f}"
    else:
        exact = float(f"{number:.0e}") == number  # a tolerance is 1e−5, not 1.000e−5
        mantissa, _, power = f"{number:.{0 if exact else significant - 1}e}".partition("e")
        text = f"{mantissa}e{int(power)}"
    return text.replace("-", "−")


# Python's spelling of a small or large number: `1.07e-06`, `1e+16`.
_POWER = re.compile(r"(?<![\w.])(-?)(\d+(?:\.\d+)?)e([+-])0*(\d+)\b")
_SPAN = re.compile(r"(`+[^`]+`+)")
_LONG = re.compile(r"(?<![\w.])[1-9]\d{4,}(?![\w.])")
_NEGATIVE = re.compile(r"(?<![\w.-])-(?=\d+\.\d)")


def grouped(text: str) -> str:
    """Return a formula in numbers, its integers from five digits on in groups: ``268 435 456``.

    Not for prose: at the end of a sentence, or in a digest of digits, it would be wrong.
    """
    return _LONG.sub(lambda m: f"{int(m[0]):,}".replace(",", " "), text)


def spelled(text: str) -> str:
    """Return a text of the core with its numbers as the pages write them: ``−1.07e−6``.

    Code spans stay: they hold tokens, and a token may be spelled like a number.
    """
    parts = _SPAN.split(text)
    return "".join(part if i % 2 else _numbers(part) for i, part in enumerate(parts))


def _numbers(text: str) -> str:
    powers = _POWER.sub(
        lambda m: "".join(("−" * len(m[1]), m[2], "e", "−" * (m[3] == "-"), m[4])), text
    )
    return _NEGATIVE.sub("−", powers)


def full(value: Any) -> str:
    """Return a value with every digit it has, as a spreadsheet or Python would read it."""
    if isinstance(value, float | np.floating):
        return repr(value.item()) if isinstance(value, np.generic) else repr(value)
    return str(value)


# Tables ------------------------------------------------------------------------------------------


def table_html(
    frame: pd.DataFrame,
    label: str,
    *,
    significant: int = 4,
    headings: Mapping[str, str] | None = None,
    verdicts: Sequence[str] = (),
    sentences: Sequence[str] = (),
) -> str:
    """Return a table: numbers to the right with sensible digits, every digit on hover.

    Args:
        frame: its columns in order, its index not shown.
        label: the table's caption, for screen readers.
        significant: figures of a float.
        headings: other headings for some columns.
        verdicts: boolean columns shown as ✓ and ✗.
        sentences: columns of prose, which wrap and have their numbers spelled as elsewhere.
    """
    names = headings or {}
    columns = [str(column) for column in frame.columns]
    # By place: the columns may be tokens, and two of those may be cut to the same name.
    lists = [frame.iloc[:, place].tolist() for place in range(len(columns))]
    numeric = [bool(values) and all(_is_number(value) for value in values) for values in lists]
    head = "".join(
        f'<th scope="col"{_class("number" if right else "")}>{escape(names.get(c, c))}</th>'
        for c, right in zip(columns, numeric, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="sentence">{escape(spelled(digits(value)))}</td>'
            if c in sentences
            else _cell(value, right, c in verdicts, significant)
            for c, value, right in zip(columns, row, numeric, strict=True)
        )
        + "</tr>"
        for row in zip(*lists, strict=True)
    )
    return (
        f'<div class="td-table" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<caption>{escape(label)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _cell(value: Any, numeric: bool, verdict: bool, significant: int) -> str:
    if verdict and isinstance(value, bool | np.bool_):
        tone, sign = ("good", "✓ yes") if value else ("bad", "✗ no")
        return f"<td{_class(tone)}>{sign}</td>"
    shown = digits(value, significant)
    exact = full(value)
    title = f' title="{escape(exact)}"' if isinstance(value, float) and exact != shown else ""
    return f"<td{_class('number' if numeric else '')}{title}>{escape(shown)}</td>"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
