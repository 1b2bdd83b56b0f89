"""The command line that writes the same bundle as a page."""

from __future__ import annotations

import shlex

from tinydec.evidence.audit import default_spec
from tinydec.model.checkpoint import Checkpoint
from tinydec.runspec import FROZEN, RunSpec


def audit_command(checkpoint: Checkpoint, spec: RunSpec, directory: str, file: str = "") -> str:
    """Return the command that writes the bundle of an audit.

    Args:
        checkpoint: the decoder.
        spec: the audit's RunSpec, with a ``top_k``; see ``spec_of_run``.
        directory: where the bundle goes.
        file: the checkpoint's file, named unless it is the shipped one.

    Returns:
        A line for a POSIX shell; options that are at their defaults are left out.
    """
    usual = default_spec(checkpoint)
    options = {
        "--prompt": (" ".join(spec.prompt), " ".join(usual.prompt)),
        "--temperature": (repr(spec.policy.temperature), repr(usual.policy.temperature)),
        "--top-k": (str(spec.policy.top_k), str(usual.policy.top_k)),
        "--top-p": (repr(spec.policy.top_p), repr(usual.policy.top_p)),
        "--seed": (str(spec.seed), str(usual.seed)),
        "--dtype": (spec.dtype, usual.dtype),
        "--tolerance": (repr(spec.tolerance), repr(usual.tolerance)),
    }
    words = ["python", "-m", "tinydec", "audit", "--out", directory]
    if usual.checkpoint != FROZEN:
        words += ["--checkpoint", file]
    for option, (value, default) in options.items():
        if value != default:
            words += [option, value]
    return shlex.join(words)
