"""What a recording tries beside its runs: cache operations, refusals, rows made by hand."""

from __future__ import annotations

import numpy as np

from tinydec.errors import InputError
from tinydec.generation.policy import build_policy, choose_rows
from tinydec.generation.stream import UniformStream
from tinydec.model.cache import KVCache
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.decode import decode_step
from tinydec.model.guards import GuardError
from tinydec.model.prefill import prefill
from tinydec.runspec import SAMPLE, Policy
from tinydec.verification.lab.intervention import Intervention
from tinydec.verification.observation import CraftedRow, PostCondition, Probe


def post_conditions(
    checkpoint: Checkpoint, intervention: Intervention
) -> tuple[PostCondition, ...]:
    """Fill a cache with two inputs, truncate it to one, export it, reset it; say what is left."""
    cache = KVCache(checkpoint, "first")
    inputs = [0] * min(2, checkpoint.config.n_positions)
    prefill(checkpoint, cache, inputs, "first")
    keys = cache.layers[0].keys[:, :, :1].copy()
    cache.truncate(1)
    exported = cache.export()
    truncated = _left(cache)
    kept = bool(np.array_equal(exported.keys[0], keys))
    cache.reset(checkpoint, "second", keep_length=intervention.request.model.reset_keeps_length)
    layers = checkpoint.config.n_layer
    return (
        PostCondition("truncate", f"lengths {[1] * layers}, the rest cleared", truncated),
        PostCondition("export", "the valid rows, unchanged", _changed(kept)),
        PostCondition("reset", f"lengths {[0] * layers}, the rest cleared", _left(cache)),
    )


def _left(cache: KVCache) -> str:
    lengths = [layer.length for layer in cache.layers]
    parts = [
        part[:, :, layer.length :] for layer in cache.layers for part in (layer.keys, layer.values)
    ]
    cleared = not any(part.any() for part in parts)
    return f"lengths {lengths}, the rest {'cleared' if cleared else 'not cleared'}"


def _changed(kept: bool) -> str:
    return "the valid rows, unchanged" if kept else "other rows"


def overflow(checkpoint: Checkpoint, intervention: Intervention, guards: frozenset[str]) -> Probe:
    """Fill the context and try to consume one more input."""
    context = checkpoint.config.n_positions
    cache = KVCache(checkpoint, "probe", capacity=context + 1)
    prefill(checkpoint, cache, [0] * context, "probe")
    try:
        found = decode_step(checkpoint, cache, [0], "probe", intervention.request.model, guards)
    except GuardError as error:
        return Probe("one input past the context", "position", str(error))
    outcome = f"computed at position {found.positions[0]}"
    return Probe("one input past the context", "position", None, outcome)


def domains(checkpoint: Checkpoint, intervention: Intervention) -> tuple[Probe, ...]:
    """Try policies with numbers outside their domain."""
    size = checkpoint.config.vocab_size
    cases: tuple[tuple[str, float, int | None, float | None], ...] = (
        ("temperature 0", 0.0, None, None),
        ("temperature -1", -1.0, None, None),
        ("top_k 0", 1.0, 0, None),
        (f"top_k {size + 1}", 1.0, size + 1, None),
        ("top_p 0", 1.0, None, 0.0),
        ("top_p 1.5", 1.0, None, 1.5),
    )
    probes = []
    for name, temperature, top_k, top_p in cases:
        try:
            policy = build_policy(
                SAMPLE, temperature, top_k, top_p, size, intervention.request.policy
            )
        except InputError as error:
            probes.append(Probe(name, "policy", str(error)))
        else:
            probes.append(Probe(name, "policy", None, f"ran with {policy}"))
    return tuple(probes)


def crafted(checkpoint: Checkpoint, intervention: Intervention) -> tuple[CraftedRow, ...]:
    """Select from a row with ties, greedily and among the two highest."""
    size = checkpoint.config.vocab_size
    row = np.zeros((1, size))
    row[0, : min(3, size)] = 1.0  # three tokens share the highest logit
    seams = intervention.request.policy
    stream = UniformStream(0)
    greedy = choose_rows(row, Policy(), [stream.state], seams)[0]
    sampled = Policy(SAMPLE, top_k=min(2, size))
    two = choose_rows(row, sampled, [stream.draw()], seams)[0]
    return (
        CraftedRow("row with ties, greedy", greedy),
        CraftedRow("row with ties, top-k 2", two),
    )
