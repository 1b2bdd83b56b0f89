from itertools import product

import pytest

from tinydec.generation.stopping import STOP_REASONS, stop_reason

APPLIES = (False, True)


def reason_when(eos: bool, stop_token: bool, context: bool, limit: bool) -> str | None:
    """Ask for the reason at a step where exactly the given causes apply."""
    return stop_reason(
        3,
        eos_id=3 if eos else 5,
        stop_token_ids=frozenset({3, 11} if stop_token else {11}),
        consumed=7 if context else 6,
        n_positions=7,
        returned=2,
        max_new_tokens=2 if limit else 13,
    )


@pytest.mark.parametrize(
    ("eos", "stop_token", "context", "limit", "expected"),
    [
        (0, 0, 0, 0, None),
        (0, 0, 0, 1, "max_new_tokens"),
        (0, 0, 1, 0, "context"),
        (0, 0, 1, 1, "context"),
        (0, 1, 0, 0, "stop_token"),
        (0, 1, 0, 1, "stop_token"),
        (0, 1, 1, 0, "stop_token"),
        (0, 1, 1, 1, "stop_token"),
        (1, 0, 0, 0, "eos"),
        (1, 0, 0, 1, "eos"),
        (1, 0, 1, 0, "eos"),
        (1, 0, 1, 1, "eos"),
        (1, 1, 0, 0, "eos"),
        (1, 1, 0, 1, "eos"),
        (1, 1, 1, 0, "eos"),
        (1, 1, 1, 1, "eos"),
    ],
)
def test_the_first_cause_that_applies_is_the_reason(
    eos: int, stop_token: int, context: int, limit: int, expected: str | None
) -> None:
    assert reason_when(bool(eos), bool(stop_token), bool(context), bool(limit)) == expected


def test_the_listed_order_is_the_order_of_precedence() -> None:
    for causes in product(APPLIES, repeat=4):
        applying = [reason for reason, on in zip(STOP_REASONS, causes, strict=True) if on]
        assert reason_when(*causes) == (applying[0] if applying else None)


def test_without_eos_and_limit_only_the_context_ends_a_run() -> None:
    def ask(consumed: int) -> str | None:
        return stop_reason(
            0,
            eos_id=None,
            stop_token_ids=frozenset(),
            consumed=consumed,
            n_positions=5,
            returned=10**9,
            max_new_tokens=None,
        )

    assert [ask(consumed) for consumed in (1, 4, 5, 6)] == [None, None, "context", "context"]
