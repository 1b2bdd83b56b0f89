"""The pages in their order, as data, and the guard that each page calls first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.navigation.page import Page

ROOT = Path(__file__).resolve().parents[2]
FAVICON = ROOT / "assets" / "favicon.svg"

_ROUTED = "_routed"
_GUARDED = "_guarded"


@dataclass(frozen=True)
class PageInfo:
    """One page of the app.

    Attributes:
        title: in the navigation and as the page's heading.
        icon: a material symbol of Streamlit's own font.
        path: the script, from the top folder.
        url_path: where it stands in the URL; empty for Home.
        parameters: URL parameters that only this page binds (``key=`` of its own widgets).
        sampling: whether the panel of the sampling controls opens with the page.
    """

    title: str
    icon: str
    path: str
    url_path: str
    parameters: tuple[str, ...] = ()
    sampling: bool = False


#: In the order of the navigation. A page appears as soon as its script exists.
PAGES: tuple[PageInfo, ...] = (
    PageInfo("Home", "home", "pages/home.py", "home"),
    PageInfo("1 Generation loop", "cycle", "pages/generation_loop.py", "generation_loop"),
    PageInfo(
        "2 Decoding policy",
        "casino",
        "pages/decoding_policy.py",
        "decoding_policy",
        sampling=True,
    ),
    PageInfo("3 Prefill and decode", "splitscreen", "pages/prefill_decode.py", "prefill_decode"),
    PageInfo(
        "4 KV cache",
        "grid_on",
        "pages/kv_cache.py",
        "kv_cache",
        ("kv_amount", "kv_layer", "kv_head"),
    ),
    PageInfo(
        "5 One decode step",
        "account_tree",
        "pages/decode_step.py",
        "decode_step",
        ("tensor", "position", "head", "index"),
    ),
    PageInfo("6 Positions", "straighten", "pages/positions.py", "positions"),
    PageInfo(
        "7 Equivalence",
        "balance",
        "pages/equivalence.py",
        "equivalence",
        ("eq_view", "eq_run", "eq_cache", "eq_prefix", "eq_fault"),
    ),
    PageInfo(
        "8 Memory and cost",
        "memory",
        "pages/memory.py",
        "memory",
        (
            "mem_view",
            "mem_batch",
            "mem_model",
            "mem_tokens",
            "mem_gib",
            "mem_block",
            "mem_shape",
            "mem_prompt",
            "mem_new",
        ),
    ),
    PageInfo(
        "9 Batches and stopping",
        "view_stream",
        "pages/batches.py",
        "batches",
        ("faults", "layout", "neighbours", "joins", "leaves", "batch_step"),
    ),
    PageInfo("10 Audit", "fact_check", "pages/audit.py", "audit", ("faults", "second", "stage")),
    PageInfo(
        "Fault lab",
        "bug_report",
        "pages/fault_lab.py",
        "fault_lab",
        ("faults", "lab", "variant", "reveal", "symptom", "case"),
    ),
    PageInfo("Review and exercises", "school", "pages/review.py", "review", ("topic",)),
    PageInfo("Evidence", "inventory_2", "pages/evidence.py", "evidence", ("ev_view", "ev_table")),
)


@dataclass(frozen=True)
class Catalogue:
    """Pages in the order of the navigation, and the folder that their paths start from."""

    pages: tuple[PageInfo, ...]
    root: Path

    def existing(self) -> tuple[PageInfo, ...]:
        """Return the pages whose script exists, in order."""
        return tuple(info for info in self.pages if (self.root / info.path).is_file())

    def parameters(self) -> tuple[str, ...]:
        """Return every URL parameter that some page binds for itself."""
        return tuple(dict.fromkeys(name for info in self.pages for name in info.parameters))

    def elsewhere(self, info: PageInfo) -> dict[str, str]:
        """Return the parameters that only other pages bind, each with the titles of those."""
        return {
            name: " and ".join(other.title for other in self.pages if name in other.parameters)
            for name in self.parameters()
            if name not in info.parameters
        }

    def find(self, url_path: str) -> PageInfo:
        """Return the page at ``url_path``; the empty path is the first page.

        Raises:
            KeyError: no page has that path.
        """
        if not url_path:
            return self.existing()[0]
        for info in self.pages:
            if info.url_path == url_path:
                return info
        raise KeyError(url_path)


CATALOGUE = Catalogue(PAGES, ROOT)


def navigation(catalogue: Catalogue = CATALOGUE) -> Page:
    """Draw the flat list of pages and return the one to run.

    The configuration hides the list that Streamlit makes of the file names in ``pages/`` before
    any script of a cold server has run; the option would hide this one, too.
    """
    st.set_option("client.showSidebarNavigation", True)
    pages = [
        st.Page(
            catalogue.root / info.path,
            title=info.title,
            icon=f":material/{info.icon}:",
            url_path=info.url_path,
            default=index == 0,
        )
        for index, info in enumerate(catalogue.existing())
    ]
    return st.navigation(pages, expanded=True)


def mark_routed() -> None:
    """Tell the page's guard that ``app.py`` runs it."""
    st.session_state[_ROUTED] = True
    st.session_state.pop(_GUARDED, None)


def begin(catalogue: Catalogue = CATALOGUE) -> None:
    """Guard: the first call of every page.

    A cold server runs a deep-linked script of ``pages/`` without ``app.py``. Then this declares
    the navigation, which makes the server find ``app.py``, and runs again.
    """
    routed = st.session_state.get(_ROUTED, False)
    # Not deleted, as this happens in every run: one that is overtaken may be listing the keys.
    st.session_state[_ROUTED] = False
    if routed:
        return
    if st.session_state.pop(_GUARDED, False):
        st.error("This page is part of an app: start it with `streamlit run app.py`.")
        st.stop()
    st.session_state[_GUARDED] = True
    # Without an icon of our own the browser would fetch the page's symbol from another host.
    st.set_page_config(page_icon=str(FAVICON), layout="wide")
    navigation(catalogue)
    st.rerun()


def page_link(url_path: str, label: str | None = None) -> None:
    """Draw a link to another page of the app, if its script exists."""
    info = CATALOGUE.find(url_path)
    if info in CATALOGUE.existing():
        st.page_link(ROOT / info.path, label=label or info.title)
