"""One turn of the loop as a row of five boxes: prefix, logits, policy, token, extended prefix."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tinydec.generation.policy import Selection
from tinydec.generation.trace import GenerationTrace
from tinydec.model.vocabulary import Vocabulary
from tinydec.ui.html import Chip, chips_html, digits

#: Tokens shown of a long prefix: its last ones.
_MOST_CHIPS = 8

CSS = """
ol.td-flow { display: flex; flex-wrap: wrap; gap: 0.3rem; list-style: none;
margin: 0; padding: 0; align-items: stretch; }
ol.td-flow > li { margin: 0; padding: 0.35rem 0.55rem 0.45rem; background: var(--td-soft);
border-radius: 0.5rem; flex: 1 1 auto; }
ol.td-flow > li.arrow { background: none; padding: 0; flex: 0 0 auto; align-self: center; }
ol.td-flow .what { font-size: 0.8rem; margin: 0 0 0.2rem; }
ol.td-flow .say { font-family: var(--td-mono); font-size: 0.9rem; margin: 0; line-height: 1.6; }
@media (max-width: 640px) {
ol.td-flow { flex-direction: column; gap: 0.15rem; }
ol.td-flow > li.arrow { transform: rotate(90deg); line-height: 1; }
}
"""


def flow_html(vocabulary: Vocabulary, trace: GenerationTrace, step: int) -> str:
    """Return one turn of a run: what went in, what came out, how the prefix grew.

    The token that the turn adds has the dashed edge of a token that is returned but not yet
    consumed.
    """
    record = trace.steps[step]
    ids = trace.token_ids[: record.length_after]
    prompt = len(trace.prompt_ids)
    chips = [
        Chip(vocabulary.tokens[token], "prompt" if i < prompt else "consumed")
        for i, token in enumerate(ids)
    ]
    returned = Chip(vocabulary.tokens[record.returned_id], "returned")
    last, size = record.length_after - 1, len(record.selection.logits)
    boxes = (
        ("Prefix", _short_chips(chips, "Prefix")),
        (f"{size} logits, position {last}", _say(_leader(vocabulary, record.selection))),
        (f"Policy: {trace.policy.kind}", _say(_policy_words(record.selection))),
        ("Next token", chips_html([returned], "Next token")),
        ("Extended prefix", _short_chips([*chips, returned], "Extended prefix")),
    )
    arrow = '<li class="arrow" aria-hidden="true">→</li>'
    items = arrow.join(f'<li><p class="what">{escape(n)}</p>{body}</li>' for n, body in boxes)
    return f'<style>{CSS}</style><ol class="td-flow" aria-label="One turn of the loop">{items}</ol>'


def _policy_words(selection: Selection) -> str:
    return "the highest" if selection.uniform is None else f"u = {selection.uniform:.4f}"


def _leader(vocabulary: Vocabulary, selection: Selection) -> str:
    top = int(selection.logits.argmax())
    return f"{vocabulary.tokens[top]} leads: {digits(float(selection.logits[top]))}"


def _say(text: str) -> str:
    return f'<p class="say">{escape(text)}</p>'


def _short_chips(chips: Sequence[Chip], label: str) -> str:
    hidden = len(chips) - _MOST_CHIPS
    shown = list(chips[-_MOST_CHIPS:])
    if hidden > 0:
        shown.insert(0, Chip(f"… {hidden} more"))
    return chips_html(shown, label)
