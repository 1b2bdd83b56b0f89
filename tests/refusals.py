"""What every refusal of wrong input has in common."""

from typing import Any

import pytest

from tinydec.errors import InputError


def refusal(call, *arguments: Any, **keywords: Any) -> str:
    """Return the message of the InputError that a call raises; it must be one line."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **keywords)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert ": expected " in message
    assert ", found " in message
    return message
