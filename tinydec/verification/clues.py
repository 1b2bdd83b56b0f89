"""Clues: from a failing check, and what else was recorded, to the likely fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinydec.verification.observation import Recording
from tinydec.verification.signs import (
    all_doubled,
    all_zero,
    always,
    any_step,
    cache_foreign,
    crafted_keeps_more,
    crafted_takes_last,
    empty_slot,
    feeds_no_key,
    first_tokens_equal,
    future_seen,
    nan,
    off_by_one,
    only_projections,
    pads_seen,
    past_hidden,
    prompt_added,
    prompt_longer,
    row_reasons,
    rows_alone,
    rows_foreign,
    run_reasons,
    some_slots_foreign,
    starts_behind_slots,
    starts_elsewhere,
    sum_is_not_one,
    two_draws,
    uniform_logits,
    values_are_keys,
    went_past_context,
)


@dataclass(frozen=True)
class Clue:
    """If ``check`` fails and the recording fits, ``fault`` (an id) is a likely cause."""

    check: str
    fault: str
    fits: Callable[[Recording], bool]


#: In order: of several clues that fit, the earlier one names the likelier cause.
CLUES: tuple[Clue, ...] = (
    Clue("checkpoint.golden", "F04", uniform_logits),
    Clue("checkpoint.golden", "F29", always),
    Clue("checkpoint.vocabulary", "F05", always),
    Clue("checkpoint.mode", "F06", always),
    Clue("checkpoint.repeatable", "F06", always),
    Clue("cache.layer", "F20", always),
    Clue("cache.axes", "F11", any_step(values_are_keys)),
    Clue("cache.axes", "F15", always),
    Clue("cache.length", "F08", any_step(prompt_longer)),
    Clue("cache.length", "F13", all_doubled),
    Clue("cache.length", "F07", always),
    Clue("cache.rows", "F11", any_step(values_are_keys)),
    Clue("cache.rows", "F09", any_step(empty_slot)),
    Clue("cache.rows", "F15", always),
    Clue("cache.order", "F10", any_step(starts_behind_slots)),
    Clue("cache.order", "F09", any_step(empty_slot)),
    Clue("cache.order", "F14", always),
    Clue("cache.width", "F12", always),
    Clue("cache.reads", "F19", always),
    Clue("cache.post_conditions", "F10", always),
    Clue("position.checkpoint", "F02", feeds_no_key),
    Clue("position.checkpoint", "F01", only_projections),
    Clue("position.checkpoint", "F03", always),
    Clue("position.request", "F42", rows_foreign),
    Clue("position.request", "F21", any_step(cache_foreign)),
    Clue("position.request", "F22", any_step(some_slots_foreign)),
    Clue("position.overwritten", "F22", always),
    Clue("position.index", "F27", rows_alone),
    Clue("position.index", "F37", went_past_context),
    Clue("position.index", "F16", all_zero),
    Clue("position.index", "F17", off_by_one),
    Clue("position.index", "F18", prompt_added),
    Clue("position.refusals", "F23", always),
    Clue("position.inputs", "F37", went_past_context),
    Clue("position.inputs", "F42", always),
    Clue("equivalence.nan", "F28", nan),
    *(
        Clue(f"equivalence.{group}", fault, fits)
        for group in ("kv", "attention", "intermediates", "logits")
        for fault, fits in (
            ("F24", any_step(future_seen)),
            ("F25", any_step(past_hidden)),
            ("F26", pads_seen),
        )
    ),
    Clue("policy.support", "F40", crafted_takes_last),
    Clue("policy.support", "F30", crafted_keeps_more),
    Clue("policy.support", "F31", any_step(sum_is_not_one)),
    Clue("policy.support", "F32", always),
    Clue("policy.sum", "F31", always),
    Clue("policy.probabilities", "F32", always),
    Clue("policy.draws", "F33", any_step(two_draws)),
    Clue("policy.draws", "F35", first_tokens_equal),
    Clue("policy.token", "F40", crafted_takes_last),
    Clue("policy.token", "F35", first_tokens_equal),
    Clue("policy.stream", "F34", starts_elsewhere),
    Clue("policy.stream", "F39", always),
    Clue("policy.domain", "F41", always),
    Clue("stopping.reason", "F36", run_reasons),
    Clue("stopping.reason", "F38", row_reasons),
    Clue("stopping.end", "F38", always),
)
