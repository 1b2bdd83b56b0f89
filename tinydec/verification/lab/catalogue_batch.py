"""The faults of batches, as data."""

from __future__ import annotations

from tinydec.model.seams import LEAVE_CACHES, LEAVE_TOKENS, BatchSeams
from tinydec.verification.lab.fault import BATCH, Fault
from tinydec.verification.lab.intervention import Intervention

_PADDING = "rows of unequal lengths in a padded layout"
_REQUEST = frozenset({"request", "position", "overflow"})


def _batch(guards_off: frozenset[str] = frozenset(), **seams: object) -> Intervention:
    return Intervention(batch=BatchSeams(**seams), guards_off=guards_off)  # type: ignore[arg-type]


BATCH_FAULTS: tuple[Fault, ...] = (
    Fault(
        "F26", "pad-keys-visible", 4,
        "Padding keys are attended like any others.",
        "attention; a row against its solo run", "transformers 22707",
        _batch(pads_visible=True), part=BATCH, needs=_PADDING,
    ),
    Fault(
        "F27", "positions-from-slots", 3,
        "Positions count slots, not a row's real tokens.",
        "position record; a row against its solo run", "transformers 3021, unsloth 3699",
        _batch(frozenset({"position", "overflow"}), positions_from_slots=True), part=BATCH,
        guard="position", needs=_PADDING,
    ),
    Fault(
        "F28", "masked-row-nan", 4,
        "A query that sees no key becomes NaN, and poisons real rows from the second layer on.",
        "NaN in any layer", "pytorch 103749, transformers PR 47678",
        _batch(plain_softmax=True), part=BATCH, needs=_PADDING,
    ),
    Fault(
        "F34", "shared-stream", 5,
        "All rows draw from one generator.",
        "each row's generator state against its own seed", "vllm 51226, nanochat",
        _batch(shared_stream=True), part=BATCH, needs="two sampled rows",
    ),
    Fault(
        "F35", "first-token-broadcast", 5,
        "The first token is sampled once and copied to all rows.",
        "each row's first draw", "a regression test of nanochat",
        _batch(first_token_copied=True), part=BATCH, needs="two rows that join together",
    ),
    Fault(
        "F38", "batch-stops-together", 6,
        "A row's <eos> is recorded only when all rows emit it in one step.",
        "per-row stop reason", "flash-attention PR 2784",
        _batch(stops_together=True), part=BATCH, needs="a row that ends with <eos>",
    ),
    Fault(
        "F39", "finished-rows-draw", 5,
        "A finished row goes on drawing random numbers.",
        "each row's last generator state", "mistral-inference PR 270",
        _batch(finished_rows_draw=True), part=BATCH,
        needs="a sampled row that ends before the others",
    ),
    Fault(
        "F42", "rows-shifted-on-leave", 3,
        "A row leaves; the tokens close up and the caches do not.",
        "request tag of each slot; a row against its solo run", "course; transformers 46612",
        _batch(_REQUEST, leave=LEAVE_TOKENS), part=BATCH, guard="request",
        needs="a row that leaves before a later one",
        variants={"caches close up": _batch(_REQUEST, leave=LEAVE_CACHES)},
    ),
)  # fmt: skip
