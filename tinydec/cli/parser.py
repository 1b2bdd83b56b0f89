"""The options of every command, with an example each."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Any, NoReturn

from tinydec.errors import InputError

_EXIT_CODES = (
    "Exit codes: 0 pass, 1 fail, 2 bad input. Where files were written and this text could not\n"
    "be, one line on standard error says so, and the code is that of the command."
)
_COMMANDS = {
    "audit": "compare both paths on every prefix and write the evidence bundle",
    "replay": "recompute a bundle and compare every cell",
    "faults": "switch on every fault in turn and write the kill matrix",
    "generate": "generate tokens and print every step",
    "train": "train the 368-parameter checkpoint from a seed",
    "memory": "print the cache payload of a model",
}
_EXAMPLES = {
    "audit": "python -m tinydec audit --out evidence\n"
    "  python -m tinydec audit --out broken --fault F19",
    "replay": "python -m tinydec replay evidence",
    "faults": "python -m tinydec faults --out lab",
    "generate": "python -m tinydec generate --prompt '<bos>' --policy sample --temperature 1 "
    "--top-k 3 --seed 41",
    "train": "python -m tinydec train --seed 355 --out trained.safetensors",
    "memory": "python -m tinydec memory --model Llama-2-7B --tokens 4096 --batch 1 --dtype float16",
}


class HelpRequestedError(Exception):
    """Raised for ``--help``; its message is the text to print."""


class Parser(ArgumentParser):
    """An argument parser that raises instead of printing and leaving."""

    def print_help(self, file: Any = None) -> NoReturn:  # noqa: ARG002 - as in argparse
        """Hand the help text to the caller, who knows what to do when it cannot be printed.

        Raises:
            HelpRequestedError: always.
        """
        raise HelpRequestedError(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            InputError: always, with the parser's message.
        """
        raise InputError(message)


def read_options(arguments: Sequence[str] | None) -> Namespace:
    """Return the options, each a text, a flag, or None where it was not given.

    Raises:
        InputError: the command line is none of this program's.
        HelpRequestedError: help was asked for.
    """
    options = build_parser().parse_args(arguments)
    for name, value in vars(options).items():
        values = value if name == _REPEATED and value is not None else [value]
        # Where the value is `--`, argparse drops it and leaves an empty list.
        if any(isinstance(one, list) for one in values):
            shown = _ARGUMENTS.get(name, "--" + name.replace("_", "-"))
            raise InputError(f"argument {shown}: expected a value, found '--'")
    return options


#: The option that may come several times, and what is not written as its name says.
_REPEATED = "faults"
_ARGUMENTS = {"directory": "DIR", "faults": "--fault"}


def build_parser() -> Parser:
    """Return the parser; ``command`` holds the chosen command's name."""
    lines = [f"  {name:<10}{text}" for name, text in _COMMANDS.items()]
    lines += ["", "examples:", *(f"  {example}" for example in _EXAMPLES.values())]
    parser = _parser(
        "python -m tinydec",
        "See, break and prove autoregressive generation with a KV cache.",
        "\n".join(["commands:", *lines]),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="command", help="one of those below"
    )
    added = {
        name: commands.add_parser(
            name,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"Example:\n  {_EXAMPLES[name]}\n\n{_EXIT_CODES}",
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for name, text in _COMMANDS.items()
    }
    _audit(added["audit"])
    _replay(added["replay"])
    _faults(added["faults"])
    _generate(added["generate"])
    _train(added["train"])
    _memory(added["memory"])
    return parser


def _parser(prog: str, description: str, epilog: str, **options: Any) -> Parser:
    return Parser(
        prog=prog,
        description=description,
        epilog=f"{epilog}\n\n{_EXIT_CODES}",
        formatter_class=RawDescriptionHelpFormatter,
        **options,
    )


def _checkpoint(parser: ArgumentParser, text: str) -> None:
    parser.add_argument("--checkpoint", metavar="FILE", help=text)


_NEW_DIRECTORY = "a new directory, or an empty one to replace"
_DTYPE = "float16, float32 (default) or float64"
_DECODER = "safetensors file of the decoder (default: the shipped one)"


def _policy_numbers(parser: ArgumentParser, temperature: str, top_k: str) -> None:
    parser.add_argument(
        "--temperature", metavar="T", help=f"finite, above 0 (default: {temperature})"
    )
    parser.add_argument("--top-k", metavar="K", help=f"1 to the vocabulary (default: {top_k})")
    parser.add_argument("--top-p", metavar="P", help="above 0, at most 1 (default: all)")
    parser.add_argument("--seed", metavar="N", help="an integer of at least 0 (default: 41)")


def _audit(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", required=True, help=_NEW_DIRECTORY)
    parser.add_argument(
        "--prompt", metavar="TEXT", help="of the greedy and the sampled run (default: <bos>)"
    )
    _policy_numbers(parser, "1", "3")
    parser.add_argument("--dtype", metavar="D", help=_DTYPE)
    _tolerance(parser)
    parser.add_argument(
        "--fault",
        metavar="ID",
        dest="faults",
        action="append",
        help="judge a session with this fault on, F01 to F42 or its name; may come several times; "
        "exit code 1 when it is caught, 0 where it cannot act",
    )
    _checkpoint(parser, _DECODER)


def _faults(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", required=True, help=_NEW_DIRECTORY)
    parser.add_argument("--dtype", metavar="D", help=_DTYPE)
    _tolerance(parser)
    _checkpoint(parser, _DECODER)


def _tolerance(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tolerance", metavar="X", help="largest accepted difference (default: by dtype)"
    )


def _replay(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="a bundle that audit or faults wrote")
    _checkpoint(parser, "recompute with this file instead of the bundle's copy")


def _generate(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--prompt", metavar="TEXT", help="tokens separated by blanks (default: <bos>)"
    )
    parser.add_argument("--policy", metavar="NAME", help="greedy (default) or sample")
    _policy_numbers(parser, "1", "all")
    parser.add_argument("--max-new-tokens", metavar="N", help="most tokens to return")
    parser.add_argument("--stop-tokens", metavar="TEXT", help="further tokens that end the run")
    parser.add_argument(
        "--no-cache", action="store_true", help="run the whole prefix again at every step"
    )
    parser.add_argument("--dtype", metavar="D", help=_DTYPE)
    parser.add_argument("--json", action="store_true", help="print every recorded value as JSON")
    _checkpoint(parser, _DECODER)


def _train(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--seed", metavar="N", help="of the initial tensors (default: the shipped checkpoint's)"
    )
    parser.add_argument("--out", metavar="FILE", required=True, help="safetensors file to write")
    _checkpoint(parser, "checkpoint to compare the result with (default: the shipped one)")


def _memory(parser: ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="a preset (default: the checkpoint)")
    parser.add_argument("--tokens", metavar="T", help="tokens per request (default: the context)")
    parser.add_argument("--batch", metavar="B", help="requests side by side (default: 1)")
    parser.add_argument(
        "--dtype", metavar="D", help="of a cached number (default: the model's own)"
    )
    _checkpoint(parser, f"{_DECODER}, when no model is named")
