"""Cached compute: a result is a pure function of the RunSpec and the checkpoint."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import streamlit as st

from tinydec.generation.generate import generate
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec
from tinydec.ui.current import CurrentRun

R = TypeVar("R")


def computed(
    *fields: str, max_entries: int = 128
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Cache ``function(checkpoint, spec, *extra)`` and let it be called as ``f(run, *extra)``.

    The key is the function, the checkpoint's digest, the spec and ``extra``; never an array.
    Results are shared between visitors: return something immutable, or never write to it.

    Args:
        fields: the fields of the spec that the result depends on (``policy`` is one of them);
            none means all. Fewer fields, more hits: an equivalence does not depend on the seed.
            The function gets a spec in which every other field has its default.
        max_entries: results kept; the least recently used goes first.

    Example::

        @ui.computed("dtype")
        def errors(checkpoint: Checkpoint, spec: RunSpec, layer: int) -> Errors: ...

        result = errors(ui.current_run(), 1)
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @wraps(function)
        def keyed(
            key: str,  # noqa: ARG001 - the cache key
            _checkpoint: Checkpoint,
            _spec: RunSpec,
            _extra: tuple[Any, ...],
        ) -> R:
            return function(_checkpoint, _spec, *_extra)

        # Streamlit reads the parameters of the wrapped function otherwise.
        keyed.__dict__.pop("__wrapped__", None)
        keyed.__annotations__ = {}
        cached = st.cache_resource(max_entries=max_entries, show_spinner=False)(keyed)

        @wraps(function)
        def call(run: CurrentRun, *extra: Any) -> R:
            spec = restricted(run.spec, fields)
            key = json.dumps([run.checkpoint.digest, spec.to_dict(), [repr(e) for e in extra]])
            return cached(key, run.checkpoint, spec, extra)

        return call

    return decorate


def restricted(spec: RunSpec, fields: tuple[str, ...]) -> RunSpec:
    """Return ``spec`` with the defaults in every field but ``fields`` and the checkpoint.

    Raises:
        AttributeError: the spec has no such field.
    """
    if not fields:
        return spec
    return RunSpec(checkpoint=spec.checkpoint, **{name: getattr(spec, name) for name in fields})


@computed(max_entries=256)
def _trace(checkpoint: Checkpoint, spec: RunSpec) -> GenerationTrace:
    return generate(checkpoint, spec, keep_activations=True)


def current_trace(run: CurrentRun) -> GenerationTrace:
    """Return the run that the shared controls describe, with every intermediate of every step."""
    return _trace(run)


@st.cache_resource(max_entries=64, show_spinner=False)
def settle_memory(page: str) -> None:  # noqa: ARG001 - the cache key
    """Take everything imported so far out of garbage collection, once for each page.

    Streamlit collects fully after every run; with its own modules in the way that alone takes
    more than half of a run's time.
    """
    gc.collect()
    gc.freeze()
