"""The checkpoint that a visit runs: the frozen one, or one that the visitor uploaded.

An upload stays in the visitor's session as bytes. What is loaded from it is read-only and kept
in a bounded cache under the digest of those bytes.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from tinydec.errors import InputError
from tinydec.model.checkpoint import Checkpoint
from tinydec.model.storage import FROZEN_PATH, load_checkpoint
from tinydec.runspec import FROZEN
from tinydec.ui.html import code, prose

_KEY = "_upload"

#: Largest checkpoint that the pages show: a public demo computes for every visitor.
LARGEST = {"n_positions": 64, "vocab_size": 256, "n_embd": 64, "n_layer": 8, "n_inner": 512}


@dataclass(frozen=True)
class Upload:
    """A file that the visitor chose, held in the session alone."""

    name: str
    data: bytes
    sha256: str


@st.cache_resource(max_entries=1, show_spinner=False)
def frozen_checkpoint() -> Checkpoint:
    """Return the shipped checkpoint, read-only and shared by all visitors."""
    return load_checkpoint(FROZEN_PATH)


def checkpoint_from_bytes(name: str, data: bytes) -> Checkpoint:
    """Return the checkpoint in a file's bytes.

    Raises:
        InputError: the core's refusal of the file (its name in place of any path), or a model
            larger than :data:`LARGEST`.
    """
    with tempfile.TemporaryDirectory(prefix="tinydec-") as folder:
        path = Path(folder) / "upload.safetensors"
        path.write_bytes(data)
        try:
            checkpoint = load_checkpoint(path)
        except InputError as error:
            line = " ".join(str(error).split()).replace(str(path), name).replace(folder, "")
            raise InputError(line) from None
    for field, largest in LARGEST.items():
        found = getattr(checkpoint.config, field)
        if found > largest:
            raise InputError(
                f"checkpoint {name}: expected {field} <= {largest} on these pages, found {found}"
            )
    return checkpoint


@st.cache_resource(max_entries=8, show_spinner=False)
def _uploaded(sha256: str, _upload: Upload) -> Checkpoint:  # noqa: ARG001 - the cache key
    return checkpoint_from_bytes(_upload.name, _upload.data)


# Streamlit draws the drop area as presentational and yet labelled and focusable: a group is meant.
_NAMED_GROUP = """
export default function () {
  const mend = () => document
    .querySelectorAll('[data-testid="stFileUploaderDropzone"][role="presentation"]')
    .forEach((area) => area.setAttribute('role', 'group'));
  mend();  // now, or as soon as the chooser is loaded
  const timer = window.setInterval(mend, 100);
  return () => window.clearInterval(timer);
}
"""
_named_group = st.components.v2.component("tinydec.named_group", js=_NAMED_GROUP)


def session_checkpoint() -> tuple[str, Checkpoint]:
    """Return the id for the RunSpec and the checkpoint that this session runs."""
    upload = st.session_state.get(_KEY)
    if isinstance(upload, Upload):
        try:
            checkpoint = _uploaded(upload.sha256, upload)
        except InputError:
            return FROZEN, frozen_checkpoint()
        return checkpoint.digest, checkpoint
    return FROZEN, frozen_checkpoint()


def upload_control() -> None:
    """Draw the upload control: the file chooser, the core's refusal, and the way back."""
    chosen = st.file_uploader(
        "Run your own checkpoint",
        type=["safetensors"],
        key="_file",
        on_change=_take_file,
        max_upload_size=1,
        help="GPT-2 architecture, written by `tinydec train`; it stays in this visit.",
    )
    _named_group(key="_named_group", height=1)
    refusal = st.session_state.get("_refusal")
    if refusal and chosen is not None:
        st.error(f"{prose(refusal)}. Still running: {_running()}.")
    upload = st.session_state.get(_KEY)
    if isinstance(upload, Upload):
        identity, checkpoint = session_checkpoint()
        st.caption(
            f"Running {code(upload.name)}: {checkpoint.config.parameter_count()} parameters, "
            f"digest {identity[:12]}. A copied link does not carry it."
        )
        st.button("Back to the frozen checkpoint", on_click=_drop_upload, key="_drop")


def _running() -> str:
    upload = st.session_state.get(_KEY)
    return code(upload.name) if isinstance(upload, Upload) else "the frozen checkpoint"


def _take_file() -> None:
    """Check a newly chosen file; it replaces what runs only when the core accepts it.

    An empty chooser changes nothing: the browser empties it for a moment when a visitor chooses
    the next file. The way back has a button of its own.
    """
    st.session_state.pop("_refusal", None)
    chosen = st.session_state.get("_file")
    if chosen is None:
        return
    data = chosen.getvalue()
    upload = Upload(chosen.name, data, hashlib.sha256(data).hexdigest())
    try:
        _uploaded(upload.sha256, upload)
    except InputError as error:
        st.session_state["_refusal"] = str(error).rstrip(".")
    else:
        st.session_state[_KEY] = upload


def _drop_upload() -> None:
    st.session_state.pop(_KEY, None)
