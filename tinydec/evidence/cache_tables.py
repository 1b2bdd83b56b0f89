"""Tables of the caches and of every value on both paths, for the token-by-token runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tinydec.evidence.audit import AuditReport
from tinydec.evidence.csv_format import frame
from tinydec.evidence.schema import Column, TableSchema, flag, integer, number, numbers, text
from tinydec.model.activations import CACHE_TENSORS, HEAD_TENSORS, SCORE_TENSORS, Activations
from tinydec.verification.cache_records import CacheRecord
from tinydec.verification.equivalence import PrefixResult

Array = NDArray[Any]
Row = tuple[Any, ...]

_CASE: tuple[Column, ...] = (
    text("pattern", "the corpus pattern"),
    integer("length", "T, tokens of the prefix"),
)
_PATH = text("path", "full (no cache) or cached (token by token)")

CACHE_TRACE = TableSchema(
    "cache_trace.csv",
    "Every layer's cache after every consumed token",
    (
        *_CASE,
        integer("step", "0 consumes the first token"),
        text("phase", "prefill or decode"),
        integer("token_id", "id of the consumed token"),
        text("token", "the same as text"),
        integer("position", "absolute position: the number of inputs consumed before"),
        integer("layer", "layer that owns the cache, from 0"),
        text("owner", "request that owns the cache"),
        numbers("k_shape", "axes (B, h, t, d_h) of the valid keys"),
        numbers("v_shape", "axes (B, h, t, d_h) of the valid values"),
        numbers("expected_shape", "axes that both should have"),
        integer("length_before", "t before the step"),
        integer("length_after", "t after the step"),
        integer("payload_scalars", "valid scalars, K and V"),
        integer("payload_bytes", "their bytes, read off the arrays"),
        number("k_max_error", "largest difference of any stored key from the full projections"),
        number("v_max_error", "the same for the values"),
        flag("passed", "shape, length and every stored value are right"),
    ),
)

KV_VALUES = TableSchema(
    "kv_values.csv",
    "Every key and value: projections of the full prefix, and what the cache holds at its end",
    (
        *_CASE,
        _PATH,
        text("tensor", "k or v"),
        integer("layer", "layer, from 0"),
        integer("head", "head, from 0"),
        integer("position", "position, which is the cache slot"),
        integer("index", "index within the head width d_h"),
        number("value", "the number"),
    ),
)

ATTENTION = TableSchema(
    "attention.csv",
    "Every attention score and weight",
    (
        *_CASE,
        _PATH,
        text("tensor", "scores (scaled, masked) or attention (their softmax)"),
        integer("layer", "layer, from 0"),
        integer("head", "head, from 0"),
        integer("query_position", "position that attends"),
        integer("key_position", "position attended to"),
        flag("visible", "false where the causal mask hides the key"),
        number("value", "the number; a hidden score is -inf, a hidden weight 0"),
    ),
)

INTERMEDIATES = TableSchema(
    "intermediates.csv",
    "Every other named intermediate, in the order of computation",
    (
        *_CASE,
        _PATH,
        text("tensor", "name of the intermediate"),
        integer("layer", "layer, from 0; empty outside the layers", optional=True),
        integer("head", "head, from 0; empty where there are none", optional=True),
        integer("position", "position, from 0"),
        integer("index", "index within the tensor's last axis"),
        number("value", "the number"),
    ),
)


def cache_trace(report: AuditReport) -> pd.DataFrame:
    """Return one row per prefix, consumed token and layer of the token-by-token runs."""
    tokens = report.checkpoint.vocabulary.tokens
    return frame(
        CACHE_TRACE,
        (
            _trace_row(prefix, record, tokens)
            for prefix in report.equivalence.prefixes
            for record in prefix.token_by_token.records
        ),
    )


def kv_values(report: AuditReport) -> pd.DataFrame:
    """Return every key and value of both paths."""
    return frame(KV_VALUES, _per_prefix(report, _kv_rows))


def attention(report: AuditReport) -> pd.DataFrame:
    """Return every score and attention weight of both paths."""
    return frame(ATTENTION, _per_prefix(report, _attention_rows))


def intermediates(report: AuditReport) -> pd.DataFrame:
    """Return all other intermediates of both paths."""
    return frame(INTERMEDIATES, _per_prefix(report, _intermediate_rows))


def _trace_row(prefix: PrefixResult, record: CacheRecord, tokens: tuple[str, ...]) -> Row:
    (token_id,), (position,) = record.token_ids, record.positions  # one token at a time
    return (
        prefix.case.pattern,
        prefix.case.length,
        record.step,
        record.phase,
        token_id,
        tokens[token_id],
        position,
        record.layer,
        record.owner,
        record.k_shape,
        record.v_shape,
        record.expected_shape,
        record.length_before,
        record.length_after,
        record.payload_scalars,
        record.payload_bytes,
        record.k_max_error,
        record.v_max_error,
        record.passed,
    )


def _per_prefix(report: AuditReport, rows: Any) -> Iterator[Row]:
    for prefix in report.equivalence.prefixes:
        case = (prefix.case.pattern, prefix.case.length)
        yield from ((*case, *row) for row in rows(prefix))


def _kv_rows(prefix: PrefixResult) -> Iterator[Row]:
    split = prefix.token_by_token
    stored = split.steps[-1].stored
    for layer, block in enumerate(prefix.full.blocks):
        for tensor, array in (("k", block.k), ("v", block.v)):
            yield from _indexed(array[prefix.row], "full", tensor, layer)  # (h, T, d_h)
        held = stored[layer]
        for tensor, array in (("k", held.keys), ("v", held.values)):  # noqa: PD011 - no pandas
            yield from _indexed(array[split.row], "cached", tensor, layer)


def _attention_rows(prefix: PrefixResult) -> Iterator[Row]:
    for path, found, row in _passes(prefix):
        for layer, block in enumerate(found.blocks):
            for tensor in ("scores", "attention"):
                array = getattr(block, tensor)[row]  # (h, P, t)
                for head, query, key, value in _cells(array):
                    position = found.positions[query]
                    visible = key <= position
                    yield path, tensor, layer, head, position, key, visible, value


def _intermediate_rows(prefix: PrefixResult) -> Iterator[Row]:
    for path, found, row in _passes(prefix):
        for name, array in found.named():
            *place, tensor = name.split(".")  # h.{layer}.{tensor}, or the tensor alone
            if tensor in CACHE_TENSORS | SCORE_TENSORS:
                continue
            layer = int(place[1]) if place else None
            heads = tensor in HEAD_TENSORS
            own = array[row if len(array) > 1 else 0]  # (h, P, n) or (P, n)
            for head, at, index, value in _cells(own if heads else own[np.newaxis]):
                position = found.positions[at]
                yield path, tensor, layer, head if heads else None, position, index, value


def _passes(prefix: PrefixResult) -> Iterator[tuple[str, Activations, int]]:
    """Yield the full pass, then each step of the cached path, with the prefix's batch row."""
    yield "full", prefix.full, prefix.row
    split = prefix.token_by_token
    for step in split.steps:
        yield "cached", step.activations, split.row


def _indexed(array: Array, *before: Any) -> Iterator[Row]:
    for head, position, index, value in _cells(array):
        yield (*before, head, position, index, value)


def _cells(array: Array) -> Iterator[tuple[int, int, int, float]]:
    """Yield three indices and the value of each element of an array with three axes."""
    for first, plane in enumerate(array.tolist()):
        for second, line in enumerate(plane):
            for third, value in enumerate(line):
                yield first, second, third, value
