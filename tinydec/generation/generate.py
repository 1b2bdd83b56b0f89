"""Run a request to its end."""

from __future__ import annotations

from tinydec.generation.request import Request
from tinydec.generation.trace import GenerationTrace
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import RunSpec


def run_request(request: Request) -> GenerationTrace:
    """Step a request until it stops and return its trace.

    Raises:
        GuardError: the cache refused an input.
    """
    while request.stop_reason is None:
        request.step()
    return request.trace()


def new_request(
    checkpoint: Checkpoint, spec: RunSpec, *, keep_activations: bool = False
) -> Request:
    """Return the request that a spec describes; ``checkpoint`` is the one the spec names.

    Raises:
        InputError: unknown tokens, a prompt beyond the context, a ``top_k`` above V.
    """
    vocabulary = checkpoint.vocabulary
    stop_token_ids = vocabulary.encode(spec.stop_tokens) if spec.stop_tokens else ()
    return Request(
        checkpoint.cast(spec.dtype),
        vocabulary.encode(spec.prompt),
        spec.policy,
        spec.seed,
        max_new_tokens=spec.max_new_tokens,
        stop_token_ids=stop_token_ids,
        use_cache=spec.cache,
        keep_activations=keep_activations,
    )


def generate(
    checkpoint: Checkpoint, spec: RunSpec, *, keep_activations: bool = False
) -> GenerationTrace:
    """Generate as ``spec`` says and return the trace.

    Raises:
        InputError: see :func:`new_request`.
    """
    return run_request(new_request(checkpoint, spec, keep_activations=keep_activations))
