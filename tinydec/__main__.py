"""The command line: ``python -m tinydec audit|replay|faults|generate|train|memory``.

Exit codes: 0 pass, 1 fail, 2 bad input. Bad input gets one line on standard error and nothing is
written. When a command has written its files and then its text cannot be printed, one line on
standard error says so, and the exit code is the command's own.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TextIO

from tinydec import __version__
from tinydec.errors import InputError

BAD_INPUT = 2

try:
    import numpy as np

    from tinydec.cli import evidence, faults, generation, memory, training
    from tinydec.cli.parser import HelpRequestedError, read_options
    from tinydec.cli.text import Outcome, one_line
except ImportError as missing:
    if __name__ != "__main__" or missing.name not in ("numpy", "safetensors"):
        raise
    sys.stderr.write(
        "tinydec: numpy and safetensors are not installed here: "
        'run "make run" once, then ". .venv/bin/activate"\n'
    )
    sys.exit(BAD_INPUT)

INTERRUPTED = 130

_COMMANDS: dict[str, Callable[[Namespace], Outcome]] = {
    "audit": evidence.audit,
    "replay": evidence.replay,
    "faults": faults.run,
    "generate": generation.run,
    "train": training.run,
    "memory": memory.run,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: without the program's name; those of the process unless given.
    """
    try:
        return _run(arguments)
    except InputError as error:
        return _refuse(str(error))
    except OSError as error:
        _abandon(sys.stdout)
        return _refuse(_unwritten(error))
    except MemoryError:
        return _refuse("memory: expected enough for this input, found too little")
    except KeyboardInterrupt:
        _refuse("interrupted")
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = read_options(arguments)
    except HelpRequestedError as help_text:
        _write(str(help_text))
        return 0
    if options.version:
        _write(f"tinydec {__version__}\n")
        return 0
    if options.command is None:
        names = ", ".join(_COMMANDS)
        raise InputError(f"command: expected one of {names}, found none (try --help)")
    _check_output()  # before anything is computed or written
    # A checkpoint may overflow; what comes of it is in the verdict, not in a warning.
    with np.errstate(all="ignore"):
        outcome = _COMMANDS[options.command](options)
    try:
        _write(outcome.text + "\n")
    except OSError as error:
        if not outcome.written:
            raise
        _abandon(sys.stdout)
        _say(f"{_unwritten(error)}; {outcome.written.rstrip('.')}; exit code {outcome.code}")
    return outcome.code


def _check_output() -> None:
    if sys.stdout is None or sys.stdout.closed:
        raise InputError("output: expected an open standard output, found none")


def _write(text: str) -> None:
    """Write to standard output and flush, so that a failure shows here."""
    _check_output()
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # a terminal that cannot show every token
    sys.stdout.write(text)
    sys.stdout.flush()


def _unwritten(error: OSError) -> str:
    return f"output: expected one that can be written, found: {error.strerror}"


def _refuse(message: str) -> int:
    _say(message)
    return BAD_INPUT


def _say(message: str) -> None:
    """Write one line to standard error, where there is one that takes it."""
    try:
        if sys.stderr is not None:
            print(f"tinydec: {one_line(message)}", file=sys.stderr, flush=True)
    except (OSError, ValueError):  # full or closed: the exit code must do
        _abandon(sys.stderr)


def _abandon(stream: TextIO) -> None:
    """Keep the interpreter from flushing once more, into the same error, when it leaves."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError, AttributeError):
        return


if __name__ == "__main__":
    sys.exit(main())
