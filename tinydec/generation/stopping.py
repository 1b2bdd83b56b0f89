"""Why a run stops."""

from __future__ import annotations

EOS = "eos"
STOP_TOKEN = "stop_token"  # noqa: S105 - a reason, no secret
CONTEXT = "context"
MAX_NEW_TOKENS = "max_new_tokens"

#: All stop reasons; where several apply at one step, the first of them is recorded.
STOP_REASONS = (EOS, STOP_TOKEN, CONTEXT, MAX_NEW_TOKENS)


def stop_reason(
    token_id: int,
    *,
    eos_id: int | None,
    stop_token_ids: frozenset[int],
    consumed: int,
    n_positions: int,
    returned: int,
    max_new_tokens: int | None,
) -> str | None:
    """Return why a run stops after it selected ``token_id``, or None when it goes on.

    Args:
        token_id: the token just selected.
        eos_id: the token that ends a sequence, if the vocabulary has one.
        stop_token_ids: further tokens that end the run.
        consumed: inputs consumed so far; at ``n_positions`` the selected token cannot be fed
            back, so the run stops with ``context``.
        n_positions: the context.
        returned: tokens selected so far, this one included.
        max_new_tokens: most tokens to return, or None.
    """
    if token_id == eos_id:
        return EOS
    if token_id in stop_token_ids:
        return STOP_TOKEN
    if consumed >= n_positions:
        return CONTEXT
    if max_new_tokens is not None and returned >= max_new_tokens:
        return MAX_NEW_TOKENS
    return None
