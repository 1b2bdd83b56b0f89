"""Tables of one selection: every stage by token, the record of the draw, other policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tinydec.evidence.csv_format import frame
from tinydec.evidence.run_tables import intervals
from tinydec.evidence.schema import TableSchema, flag, integer, number, text
from tinydec.generation.policy import Selection, choose_rows, distribution, replay
from tinydec.generation.stream import Draw, GeneratorState
from tinydec.model.vocabulary import Vocabulary
from tinydec.runspec import GREEDY, SAMPLE, Policy

STAGES = TableSchema(
    "stages.csv",
    "From logits to probabilities, token by token, and what many seeds selected",
    (
        integer("id", "id of the token"),
        text("token", "the same as text"),
        number("logit", "original logit"),
        number("(z − max) / T", "logit minus the highest, divided by the temperature"),
        number("softmax", "probability before top-k and top-p"),
        number("after top-k", "the k highest, renormalised"),
        number("after top-p", "the fewest that reach p, renormalised: what is drawn from"),
        number("from", "start of its interval; empty where it has none", optional=True),
        number("to", "end of its interval", optional=True),
        integer("drawn", "how many seeds selected it"),
        number("expected", "probability times the number of seeds"),
        number("± sd", "standard deviation of that count: sqrt(N p (1 - p))"),
        flag("selected", "whether it is the token selected here"),
    ),
)

OTHER_POLICIES = TableSchema(
    "other_policies.csv",
    "The same draw under other policies",
    (
        text("policy", "the rule"),
        text("drawn", "numbers that the rule consumes"),
        number("uniform", "the number drawn; empty under greedy", optional=True, rule="exact"),
        number("from", "start of the interval that it fell in", optional=True),
        number("to", "end of that interval", optional=True),
        text("token", "the selected token"),
        flag("same state before", "whether the generator is the same before the draw"),
        text("state after", "the last 32 of the 128 bits after it"),
    ),
)

RECORD = TableSchema(
    "draw_record.csv",
    "Everything that one selection was computed from",
    (text("what", "name of the entry"), text("value", "its value, every digit")),
)


def policy_text(policy: Policy) -> str:
    """Return a policy in words, such as ``sample, temperature 0.5, top-k 3``."""
    if not policy.samples:
        return "greedy"
    words = ["sample", f"temperature {policy.temperature:g}"]
    if policy.top_k is not None:
        words.append(f"top-k {policy.top_k}")
    if policy.top_p is not None:
        words.append(f"top-p {policy.top_p:g}")
    return ", ".join(words)


def bits(value: int) -> str:
    """Return a 128-bit integer as eight groups of four hexadecimal digits."""
    digits = f"{value:032x}"
    return " ".join(digits[i : i + 4] for i in range(0, len(digits), 4))


def stages(vocabulary: Vocabulary, selection: Selection, counts: NDArray[np.intp]) -> pd.DataFrame:
    """Return one row per token.

    Args:
        vocabulary: V tokens.
        selection: of one row of V logits.
        counts: (V,) how often each token was selected by some number of seeds.
    """
    found = distribution(selection.logits[np.newaxis, :], selection.policy)  # (V,) -> (1, V)
    total = int(counts.sum())
    rows = zip(
        vocabulary.tokens,
        selection.logits.tolist(),
        found.scaled[0].tolist(),
        found.softmax[0].tolist(),
        found.top_k[0].tolist(),
        found.probabilities[0].tolist(),
        intervals(selection),
        counts.tolist(),
        strict=True,
    )
    return frame(
        STAGES,
        (
            (
                token_id,
                token,
                logit,
                scaled,
                softmax,
                top_k,
                p,
                *(span or (None, None)),
                count,
                total * p,
                float(np.sqrt(total * p * (1 - p))),
                token_id == selection.token_id,
            )
            for token_id, (token, logit, scaled, softmax, top_k, p, span, count) in enumerate(rows)
        ),
    )


def record(vocabulary: Vocabulary, selection: Selection, seed: int, index: int) -> pd.DataFrame:
    """Return the record of one selection, its generator states readable, and its replay.

    Args:
        vocabulary: of the row.
        selection: the draw's.
        seed: that the generator began with.
        index: numbers drawn before this one.
    """
    before, after = selection.state_before, selection.state_after
    again = replay(selection)
    same = "the same record, bit by bit" if again.same_as(selection) else "another record"
    rows = [
        ("policy", policy_text(selection.policy)),
        ("seed, and numbers drawn before", f"{seed}, {index}"),
        ("state before", bits(before.state)),
        ("increment (never changes)", bits(before.increment)),
        (
            "uniform number u",
            "none drawn" if selection.uniform is None else repr(selection.uniform),
        ),
        ("interval", _interval_text(selection)),
        ("token", f"{vocabulary.tokens[selection.token_id]} (id {selection.token_id})"),
        ("state after", bits(after.state)),
        ("state changed", "yes, by one draw" if after != before else "no"),
        ("replayed from this record", same),
    ]
    return frame(RECORD, rows)


def other_policies(
    vocabulary: Vocabulary, selection: Selection, draw: Draw, policies: Iterable[Policy]
) -> pd.DataFrame:
    """Return what other policies select from the same row with the same draw.

    Greedy ones leave the generator as it was before the draw.
    """
    rows = []
    for policy in (selection.policy, *policies):
        other = choose_for(selection.logits, policy, draw)
        rows.append(
            (
                policy_text(policy),
                "1 number" if policy.samples else "none",
                other.uniform,
                *(other.interval or (None, None)),
                vocabulary.tokens[other.token_id],
                other.state_before == draw.state_before,
                f"… {bits(other.state_after.state)[-9:]}",
            )
        )
    return frame(OTHER_POLICIES, rows)


def choose_for(logits: NDArray[np.floating], policy: Policy, draw: Draw) -> Selection:
    """Return what a policy selects from one row (V,), given the draw that it would consume."""
    given: Draw | GeneratorState = draw if policy.samples else draw.state_before
    return choose_rows(logits[np.newaxis, :], policy, [given])[0]


def neighbours(policy: Policy, size: int) -> Sequence[Policy]:
    """Return policies that lie around one, for a vocabulary of ``size``; never the policy itself.

    Half and double the temperature, two tokens and all of them, a nucleus of one half, greedy.
    """
    sampling = replace(policy, kind=SAMPLE)
    found = [
        sampling,
        replace(sampling, temperature=max(policy.temperature / 2, 0.05)),
        replace(sampling, temperature=policy.temperature * 2),
        replace(sampling, top_k=min(2, size)),
        replace(sampling, top_k=None, top_p=None),
        replace(sampling, top_p=0.5),
        Policy(GREEDY),
    ]
    unlike = [p for p in found if p != policy and not (p.kind == policy.kind == GREEDY)]
    return list(dict.fromkeys(unlike))


def _interval_text(selection: Selection) -> str:
    if selection.interval is None:
        return "none: greedy takes the highest logit"
    low, high = selection.interval
    return f"{low!r} ≤ u < {high!r}"
