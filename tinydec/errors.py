"""The one exception type that stands for wrong input."""


class InputError(ValueError):
    """Wrong input; its message is one line that says what was expected and what was found."""
