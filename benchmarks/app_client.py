"""A visitor without a browser: Streamlit's websocket protocol, as its own front end speaks it.

A visit sends a ``BackMsg`` that asks for a run, with the widgets' values, and reads ``ForwardMsg``
until the script has finished. That span is what the server takes for a changed control.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.app_server import AppServer
from tinydec.ui.domains import NAMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PROMPTS = ("<bos>", "<bos> A", "<bos> A B", "<bos> X", "<bos> X Y", "<bos> Y X", "<bos> Y X Y")
_LONGEST_RUN = 60.0  # seconds after which a run counts as lost


@dataclass(frozen=True)
class Control:
    """A widget that the server drew: its id, its key, its kind and the element itself."""

    id: str
    key: str
    kind: str
    element: Any

    def states(self) -> list[WidgetState]:
        """Return different values that a visitor may give it, at most eight."""
        return [WidgetState(id=self.id, **value) for value in self._values()][:8]

    def _values(self) -> Iterator[dict[str, Any]]:
        found, kind = self.element, self.kind
        if kind == "text_input" and self.key == "prompt":
            yield from ({"string_value": prompt} for prompt in PROMPTS)
        elif kind == "number_input":
            low, high = int(found.min), int(min(found.max, found.min + 7))
            yield from ({"double_value": float(n)} for n in range(low, high + 1))
        elif kind == "slider" and found.options:  # one of a list of texts
            yield from ({"string_array_value": {"data": [text]}} for text in found.options)
        elif kind == "slider":
            count = round((found.max - found.min) / found.step)
            places = sorted({round(count * part / 7) for part in range(8)})
            for place in places:
                value = round(found.min + place * found.step, 9)
                yield {"double_array_value": {"data": [value]}}
        elif kind == "button_group":
            for option in found.options:
                yield {"string_array_value": {"data": [option.content]}}
        elif kind == "selectbox":
            yield from ({"string_value": option} for option in found.options)
        elif kind == "checkbox":
            yield from ({"bool_value": value} for value in (not found.default, found.default))


@dataclass
class Visit:
    """One visitor's connection.

    Attributes:
        controls: the current page's widgets by key.
        pages: each page's hash by its ``url_path``.
        exceptions: what the app showed in an exception box, ever.
        received: bytes of all messages so far.
        drawn: a checksum of everything that the last run drew, to tell whether it changed.
    """

    connection: ClientConnection
    controls: dict[str, Control] = field(default_factory=dict)
    pages: dict[str, str] = field(default_factory=dict)
    exceptions: list[str] = field(default_factory=list)
    received: int = 0
    drawn: int = 0
    _query: dict[str, str] = field(default_factory=dict)
    _page: str = ""

    async def open(self, url_path: str, query: dict[str, str]) -> float:
        """Open a page by its link, as the first thing or after another; return the seconds."""
        self._query = dict(query)
        self._page = self.pages.get(url_path, "")
        return await self._run([], url_path)

    async def go_to(self, url_path: str) -> float:
        """Follow the navigation to another page, the URL's parameters kept; return the seconds."""
        return await self.open(url_path, self._query)

    async def change(self, state: WidgetState) -> float:
        """Give one control another value; return the seconds until its run has finished.

        A shared control takes its value to the URL, as the browser does.
        """
        key = state.id.split("-", 2)[2]
        if key in NAMES:
            self._query[key] = _in_url(state)
        return await self._run([state], "")

    async def _run(self, states: list[WidgetState], page_name: str) -> float:
        message = BackMsg()
        request = message.rerun_script
        request.query_string = urlencode(self._query)
        request.page_script_hash = self._page
        request.page_name = page_name
        request.widget_states.widgets.extend(states)
        controls: dict[str, Control] = {}
        self.drawn = 0
        start = time.perf_counter()
        await self.connection.send(message.SerializeToString())
        while True:
            answer = await self.connection.recv()
            if isinstance(answer, str):
                continue
            self.received += len(answer)
            if self._read(ForwardMsg.FromString(answer), controls):
                self.controls = controls
                return time.perf_counter() - start

    def _read(self, message: ForwardMsg, controls: dict[str, Control]) -> bool:
        """Take in one message; return whether it ends the run."""
        kind = message.WhichOneof("type")
        if kind == "navigation":
            self.pages = {p.url_pathname: p.page_script_hash for p in message.navigation.app_pages}
            self._page = message.navigation.page_script_hash
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            self.drawn = zlib.crc32(element.SerializeToString(), self.drawn)
            self._element(element, controls)
        elif kind == "script_finished":
            # A run that asks for another one ends early, and the other one follows.
            return message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
        return False

    def _element(self, element: Any, controls: dict[str, Control]) -> None:
        kind = element.WhichOneof("type")
        found = getattr(element, kind)
        if kind == "exception":
            self.exceptions.append(f"{found.type}: {found.message}")
        identity = getattr(found, "id", "")
        parts = identity.split("-", 2)  # $$ID-<hash>-<key>
        if isinstance(identity, str) and len(parts) == 3:
            controls[parts[2]] = Control(identity, parts[2], kind, found)


def _in_url(state: WidgetState) -> str:
    """Return a control's value as the URL spells it."""
    value: Any = getattr(state, str(state.WhichOneof("value")))
    if hasattr(value, "data"):  # a list of one
        value = value.data[0]
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else f"{value:.15g}"


@asynccontextmanager
async def visiting(server: AppServer) -> AsyncIterator[Visit]:
    """Connect a new visitor to a server on this machine."""
    async with connect(
        server.stream,
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
        ping_timeout=_LONGEST_RUN,
        compression=None,
    ) as connection:
        yield Visit(connection)
