"""The frame around every page: heading, shared controls bound to the URL, notes.

Only ``app.py`` calls this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from tinydec.errors import InputError
from tinydec.runspec import DTYPES, FROZEN, POLICY_KINDS
from tinydec.ui import domains, page_switch, parameters, show
from tinydec.ui.checkpoints import session_checkpoint, upload_control
from tinydec.ui.compute import settle_memory
from tinydec.ui.copy_link import copy_link
from tinydec.ui.current import current_run, set_controls
from tinydec.ui.domains import Limits
from tinydec.ui.html import code, prose
from tinydec.ui.page_domains import page_domains
from tinydec.ui.pages import CATALOGUE, Catalogue, PageInfo, mark_routed
from tinydec.ui.style import APP_CSS

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator
    from streamlit.navigation.page import Page

    from tinydec.model.checkpoint import Checkpoint

_URL_NOTES = "_url_notes"
_BIND: Literal["query-params"] = "query-params"
_EXAMPLES = "_examples"
_LIMITS = "_limits"


def frame(page: Page, catalogue: Catalogue = CATALOGUE) -> None:
    """Draw heading, shared controls and notes, then run the page."""
    mark_routed()
    info = catalogue.find(page.url_path)
    st.set_page_config(page_title=f"{info.title} · tinydec")
    identity, checkpoint = session_checkpoint()
    limits = Limits.of(checkpoint)
    _read_url(limits, info, catalogue, (identity, checkpoint))
    restored = page_switch.restore_lost(info.url_path, parameters.defaults(limits))
    _carry_controls(limits, info)
    st.html(f"<style>{APP_CSS}</style>")
    st.title(info.title, anchor=False)
    with st.container(key="controls", horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        _draw(info, limits)
    if restored:
        st.rerun()  # a control reaches the URL in the run after the one that first draws it
    page_switch.remember(info.url_path, st.session_state, parameters.defaults(limits))
    _show_notes(info)
    try:
        page.run()
    except InputError as error:
        st.error(prose(str(error)), icon=":material/error:")
    settle_memory(info.path)


def _read_url(
    limits: Limits, info: PageInfo, catalogue: Catalogue, checkpoints: tuple[str, Checkpoint]
) -> None:
    """Note what the URL brought that cannot run; at a visit's first run also clean the URL.

    Widgets that are bound already refuse such values by themselves, without a word. Before
    that, some would fail on them (an integer control on ``1e400``).
    """
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    identity, checkpoint = checkpoints
    bound = "_drawn" in st.session_state
    theirs = catalogue.elsewhere(info)
    if bound:  # the pages' own widgets keep their part of the URL in order
        pages = {*info.parameters, *theirs}
        query = {name: texts for name, texts in query.items() if name not in pages}
    reading = parameters.read_query(
        query,
        limits,
        domains={} if bound else page_domains(info.url_path, checkpoint, info.parameters),
        elsewhere=theirs,
        checkpoints=(FROZEN, identity),
    )
    # What a visitor types stands in the URL too; the controls' own notes speak of that.
    found = [note for note in reading.notes if not (bound and note.name in parameters.TYPED)]
    if found:
        ran = [(note, reading.values.get(note.name)) for note in found]
        st.session_state[_URL_NOTES] = (info.url_path, ran)
    if not bound:
        arrived = {name: value for name, value in reading.values.items() if name in reading.clean}
        page_switch.remember(info.url_path, arrived, parameters.defaults(limits))
    st.session_state["_drawn"] = True
    respelled = any(query.get(name, [text]) != [text] for name, text in reading.clean.items())
    if not bound and (reading.notes or respelled):
        st.query_params.from_dict(reading.clean)
        st.rerun()


def _carry_controls(limits: Limits, info: PageInfo) -> None:
    """Bring every control within the limits of the checkpoint that runs, before it is drawn.

    Streamlit fails on a slider whose value in the session lies above its new end.
    """
    before = st.session_state.get(_LIMITS, limits)
    st.session_state[_LIMITS] = limits
    held = {name: st.session_state[name] for name in domains.NAMES if name in st.session_state}
    carried, notes = parameters.carry(held, before, limits)
    for name, value in carried.items():
        # With another checkpoint a control has other ends, and keeps a value only when told to.
        if before != limits or value != held[name]:
            st.session_state[name] = value
    if notes:
        where, kept = st.session_state.get(_URL_NOTES, ("", []))
        others = [pair for pair in kept if pair[0].name not in carried] if where else []
        ran = [(note, carried[note.name]) for note in notes]
        st.session_state[_URL_NOTES] = (info.url_path, others + ran)


def _show_notes(info: PageInfo) -> None:
    """Show what was replaced: by the URL as long as it stands, and by the controls themselves."""
    notes = {note.name: note for note in current_run().notes}
    where, kept = st.session_state.get(_URL_NOTES, ("", []))
    if where == info.url_path:
        for note, ran in kept:
            if note.name not in domains.NAMES or st.session_state.get(note.name) == ran:
                notes.setdefault(note.name, note)
    else:
        st.session_state.pop(_URL_NOTES, None)
    show.notes(note.text for note in notes.values())


# The controls -------------------------------------------------------------------------------------


def _draw(info: PageInfo, limits: Limits) -> None:
    # A selectbox that takes new options will not do: it drops a typed text's beginning when that
    # is the chosen option, and every prompt begins with `<bos>`.
    st.text_input(
        "Prompt",
        limits.first_token,
        key="prompt",
        bind=_BIND,
        **_kept("prompt"),
        help=f"Tokens separated by spaces: {code(' '.join(limits.vocabulary.tokens[:32]))}",
        width=170,
    )
    st.menu_button(
        "Try",
        parameters.default_prompts(limits),
        key=_EXAMPLES,
        format_func=code,
        on_click=_take_example,
    )
    st.segmented_control(
        "Policy",
        POLICY_KINDS,
        default=POLICY_KINDS[0],
        key="policy",
        bind=_BIND,
        required=True,
        **_kept("policy"),
    )
    _integer("Step", "step", 0, limits.n_positions - 1, 0, width=140)
    with _panel("Sampling", "casino", opened=info.sampling):
        _sampling(limits, width=150)
    with _panel("Run", "tune"):
        _run(limits)
    with st.popover("Link", icon=":material/link:"):
        copy_link(key="_link")


def _panel(label: str, icon: str, *, opened: bool = False) -> DeltaGenerator:
    """Return a row for more controls that opens below the others.

    Not a popover: that drops its controls from the page when it closes, and with them their
    values from the URL on the next page switch, Back or Forward. For the same reason every page
    draws the same controls in the same places: a control that moves is mounted anew before the
    old one goes, and the browser then forgets that it is bound to the URL.
    """
    key = f"_panel-{label.lower()}"
    panel = st.expander(label, opened, icon=f":material/{icon}:", key=key)
    return panel.container(horizontal=True, vertical_alignment="bottom", gap="small")


def _take_example() -> None:
    prompt = st.session_state.get(_EXAMPLES)
    if prompt is not None:
        set_controls(prompt=prompt)


def _sampling(limits: Limits, width: int) -> None:
    low, high = domains.TEMPERATURE
    bound: dict[str, Any] = {"bind": _BIND, "width": width}
    st.slider(
        "Temperature", low, high, 1.0, 0.05, key="temperature", **bound, **_kept("temperature")
    )
    size = len(limits.vocabulary)
    if size > 1:
        st.slider("Top-k", 1, size, size, 1, key="top_k", **bound, **_kept("top_k"))
    low, high = domains.TOP_P
    st.slider("Top-p", low, high, 1.0, 0.05, key="top_p", **bound, **_kept("top_p"))
    _integer("Seed", "seed", 0, domains.LARGEST_SEED, 41, width=140)


def _run(limits: Limits) -> None:
    _integer(
        "Most new tokens",
        "max_new_tokens",
        1,
        limits.n_positions,
        None,
        placeholder="no limit",
        width=170,
    )
    st.text_input(
        "Stop tokens",
        key="stop_tokens",
        bind=_BIND,
        **_kept("stop_tokens"),
        placeholder="none",
        help="Further tokens that end the run, separated by spaces.",
        width=170,
    )
    st.segmented_control(
        "Number format",
        DTYPES,
        default="float32",
        key="dtype",
        bind=_BIND,
        required=True,
        **_kept("dtype"),
    )
    low, high = domains.TOLERANCE
    st.number_input(
        "Tolerance",
        low,
        high,
        None,
        1e-6,
        format="%.3g",
        key="tolerance",
        bind=_BIND,
        **_kept("tolerance"),
        placeholder="the declared one",
        width=230,
    )
    st.toggle("Keep a KV cache", True, key="cache", bind=_BIND, **_kept("cache"))
    upload_control()


def _kept(name: str) -> dict[str, Any]:
    """Return the options by which a control tells what a visitor set, before any run ends."""
    return {"on_change": page_switch.changed, "args": (name,)}


def _integer(label: str, key: str, low: int, high: int, value: int | None, **options: Any) -> None:
    """Draw an integer control.

    Streamlit fails on a number too large for a float in the URL (Back to such an address); then
    the control is left out of this one run, which clears the URL.
    """
    draw: Callable[..., Any] = st.number_input
    try:
        draw(label, low, high, value, 1, key=key, bind=_BIND, **options, **_kept(key))
    except OverflowError:
        st.session_state.pop(key, None)
