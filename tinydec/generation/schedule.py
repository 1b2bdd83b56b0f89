"""What a batch is asked to do: requests, and when they join and leave, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tinydec.errors import InputError
from tinydec.runspec import Policy, check_integer, shown

JOIN = "join"
LEAVE = "leave"
ACTIONS = (JOIN, LEAVE)


@dataclass(frozen=True)
class BatchRequest:
    """One row of a batch: all that its solo run depends on, under a stable id.

    Attributes:
        request_id: unique in the batch.
        prompt_ids: the prompt.
        policy: how its tokens are selected.
        seed: seeds its own PCG64 stream.
        max_new_tokens: most tokens to return, or None.
        stop_token_ids: further tokens that end it.

    Raises:
        InputError: a value of another type or outside its domain; what only a checkpoint can
            tell is checked when the run begins.
    """

    request_id: str
    prompt_ids: tuple[int, ...]
    policy: Policy = field(default_factory=Policy)
    seed: int = 0
    max_new_tokens: int | None = None
    stop_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if type(self.request_id) is not str or not self.request_id:
            raise InputError(f"request id: expected a name, found {shown(self.request_id)}")
        for name in ("prompt_ids", "stop_token_ids"):
            if type(getattr(self, name)) is not tuple:
                found = shown(getattr(self, name))
                raise InputError(f"{name}: expected a tuple of ids, found {found}")
        check_integer("seed", self.seed, 0)
        if self.max_new_tokens is not None:
            check_integer("max_new_tokens", self.max_new_tokens, 1)
        if not isinstance(self.policy, Policy):
            raise InputError(f"policy: expected a policy, found {shown(self.policy)}")


@dataclass(frozen=True)
class Event:
    """A request joins or leaves before a step of the batch.

    Attributes:
        step: 0 for the first one; the event takes effect before this step.
        action: ``join``, or ``leave``: cancelled, unless it has finished by itself.
        request_id: whom it concerns.

    Raises:
        InputError: another action, or a step that is no integer >= 0.
    """

    step: int
    action: str
    request_id: str

    def __post_init__(self) -> None:
        check_integer("step", self.step, 0)
        if self.action not in ACTIONS:
            raise InputError(
                f"action: expected one of {', '.join(ACTIONS)}, found {shown(self.action)}"
            )


@dataclass(frozen=True)
class Timeline:
    """A checked schedule.

    Attributes:
        joins: (step, request) in the order in which they join.
        leaves: for each cancelled request the step before which it leaves.
    """

    joins: tuple[tuple[int, BatchRequest], ...]
    leaves: dict[str, int]


def timeline(requests: Sequence[BatchRequest], schedule: Sequence[Event] = ()) -> Timeline:
    """Return who joins and leaves when; a request without a join event joins at step 0.

    Requests that join at the same step do so in the order of ``requests``.

    Raises:
        InputError: other values than requests and events, no request, an id twice, an event for
            an unknown request, two events of one kind for a request, or a request that leaves
            before it joins.
    """
    _check_types("requests", requests, BatchRequest)
    _check_types("schedule", schedule, Event)
    if not requests:
        raise InputError("requests: expected at least one, found none")
    known: dict[str, BatchRequest] = {}
    for request in requests:
        if request.request_id in known:
            raise InputError(f"request id: expected each once, found {request.request_id!r} twice")
        known[request.request_id] = request
    steps: dict[str, dict[str, int]] = {JOIN: {}, LEAVE: {}}
    for event in schedule:
        name, found = event.request_id, steps[event.action]
        if name not in known:
            raise InputError(
                f"schedule: expected one of the requests {', '.join(known)}, found {name!r}"
            )
        if name in found:
            raise InputError(f"schedule: expected one {event.action} of {name!r}, found two")
        found[name] = event.step
    for name, step in steps[LEAVE].items():
        if step < (joined := steps[JOIN].get(name, 0)):
            raise InputError(
                f"schedule: expected {name!r} to leave at step {joined} or later, found {step}"
            )
    joins = sorted(
        ((steps[JOIN].get(name, 0), request) for name, request in known.items()),
        key=lambda entry: entry[0],  # sorting is stable: the order of requests within a step
    )
    return Timeline(tuple(joins), steps[LEAVE])


def _check_types(name: str, values: Any, kind: type) -> None:
    if not isinstance(values, list | tuple):
        raise InputError(f"{name}: expected a list of {kind.__name__}, found {shown(values)}")
    for value in values:
        if not isinstance(value, kind):
            raise InputError(f"{name}: expected a {kind.__name__}, found {shown(value)}")
