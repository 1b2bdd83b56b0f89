"""The command line: ``python -m tinydec audit|replay|faults|generate|train|memory``.

Exit codes: 0 pass, 1 fail, 2 bad input. Bad input gets one line on standard error and nothing is
written.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence

import numpy as np

from tinydec import __version__
from tinydec.cli import evidence, faults, generation, memory, training
from tinydec.cli.parser import HelpRequestedError, build_parser
from tinydec.cli.text import Outcome, one_line
from tinydec.errors import InputError

BAD_INPUT = 2
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
        _abandon_output()
        return _refuse(f"output: expected one that can be written, found: {error.strerror}")
    except MemoryError:
        return _refuse("memory: expected enough for this input, found too little")
    except KeyboardInterrupt:
        _refuse("interrupted")
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = build_parser().parse_args(arguments)
    except HelpRequestedError as help_text:
        _write(str(help_text))
        return 0
    if options.version:
        _write(f"tinydec {__version__}\n")
        return 0
    if options.command is None:
        raise InputError(f"command: expected one of {', '.join(_COMMANDS)}, found none")
    # A checkpoint may overflow; what comes of it is in the verdict, not in a warning.
    with np.errstate(all="ignore"):
        outcome = _COMMANDS[options.command](options)
    _write(outcome.text + "\n")
    return outcome.code


def _write(text: str) -> None:
    """Write to standard output and flush, so that a failure shows here."""
    if sys.stdout is None:
        raise InputError("output: expected an open standard output, found none")
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # a terminal that cannot show every token
    sys.stdout.write(text)
    sys.stdout.flush()


def _refuse(message: str) -> int:
    if sys.stderr is not None:
        print(f"tinydec: {one_line(message)}", file=sys.stderr)
    return BAD_INPUT


def _abandon_output() -> None:
    """Keep the interpreter from flushing once more, into the same error, when it leaves."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return


if __name__ == "__main__":
    sys.exit(main())
