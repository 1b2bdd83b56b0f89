"""From the text of options to checked values; every refusal is one line."""

from __future__ import annotations

import re
from argparse import Namespace
from dataclasses import replace

from tinydec.errors import InputError
from tinydec.evidence.audit import audit_spec, checkpoint_id, default_prompt, default_spec
from tinydec.evidence.session import with_faults
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.runspec import GREEDY, Policy, RunSpec, shown

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)


def integer(name: str, text: str | None) -> int | None:
    """Return a whole number, or None when the option was not given.

    Raises:
        InputError: other text than digits.
    """
    if text is None:
        return None
    if _INTEGER.fullmatch(text) is None:
        raise InputError(f"{name}: expected an integer, found {shown(text)}")
    return int(text)


def number(name: str, text: str | None) -> float | None:
    """Return a number, or None when the option was not given.

    Raises:
        InputError: other text than a decimal number; ``nan`` and ``inf`` are none.
    """
    if text is None:
        return None
    if _NUMBER.fullmatch(text) is None:
        raise InputError(f"{name}: expected a finite number, found {shown(text)}")
    return float(text)


def checkpoint(options: Namespace) -> Checkpoint:
    """Load the checkpoint that ``--checkpoint`` names, the shipped one unless given.

    Raises:
        InputError: see ``load_checkpoint``.
    """
    return load_checkpoint(FROZEN_PATH if options.checkpoint is None else options.checkpoint)


def policy(options: Namespace, kind: str, base: Policy) -> Policy:
    """Return the policy of a kind whose numbers are the options', or those of ``base``.

    Raises:
        InputError: a number outside its domain.
    """
    temperature = number("temperature", options.temperature)
    top_k = integer("top_k", options.top_k)
    top_p = number("top_p", options.top_p)
    return Policy(
        kind,
        base.temperature if temperature is None else temperature,
        base.top_k if top_k is None else top_k,
        base.top_p if top_p is None else top_p,
    )


def generation_run(options: Namespace, used: Checkpoint) -> RunSpec:
    """Return the RunSpec of ``generate``.

    Raises:
        InputError: a value outside its domain.
    """
    prompt = default_prompt(used) if options.prompt is None else tuple(options.prompt.split())
    return RunSpec(
        checkpoint=checkpoint_id(used),
        prompt=prompt,
        policy=policy(options, GREEDY if options.policy is None else options.policy, Policy()),
        seed=_seed(options, RunSpec().seed),
        max_new_tokens=integer("max_new_tokens", options.max_new_tokens),
        stop_tokens=tuple((options.stop_tokens or "").split()),
        cache=not options.no_cache,
        dtype=RunSpec().dtype if options.dtype is None else options.dtype,
    )


def audit_run(options: Namespace, used: Checkpoint) -> RunSpec:
    """Return the RunSpec of ``audit``.

    Raises:
        InputError: a value outside its domain, or a fault that there is not.
    """
    base = default_spec(used)
    spec = replace(
        base,
        prompt=base.prompt if options.prompt is None else tuple(options.prompt.split()),
        policy=policy(options, base.policy.kind, base.policy),
        seed=_seed(options, base.seed),
        dtype=base.dtype if options.dtype is None else options.dtype,
        tolerance=number("tolerance", options.tolerance),
    )
    return with_faults(audit_spec(spec), options.faults or ())


def _seed(options: Namespace, default: int) -> int:
    seed = integer("seed", options.seed)
    return default if seed is None else seed
