"""The interface in this process, and a browser that has no scripts: it keeps cookies and sends what browsers send."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.ui.app import Interface, ui_app
from mcp_memory.ui.sessions import Authenticator, OneTimeKeys, Reader

HOST = "127.0.0.1:4321"
BASE = "/a-path-that-nobody-guesses"
OWN = {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
OWNER = Reader(space="default", is_owner=True)


class Browser(httpx2.AsyncClient):
    """A client of one interface. Paths are below the space `default`."""

    def __init__(self, interface: Interface, memory: Memory, keys: Authenticator) -> None:
        super().__init__(transport=httpx2.ASGITransport(ui_app(interface)), base_url=f"http://{HOST}")
        self.interface, self.memory, self.keys = interface, memory, keys

    async def enter(self, key: str) -> httpx2.Response:
        return await self.post(f"{BASE}/.enter", data={"key": key}, headers=OWN)

    async def open(self, path: str, space: str = "default", **headers: str) -> httpx2.Response:
        return await self.get(f"{BASE}/{space}{path}", headers=headers)

    async def token(self) -> str:
        """Return the token of the forms of this session."""
        return form_of((await self.open("/review")).text)["form_token"]

    async def do(self, action: str, /, **fields: str) -> httpx2.Response:
        form = {"form_token": await self.token(), **fields}
        return await self.post(f"{BASE}/default/do/{action}", data=form, headers=OWN)


@asynccontextmanager
async def browsing(
    home: Path, reader: Reader | None = OWNER, door: Authenticator | None = None
) -> AsyncGenerator[Browser]:
    """Yield a browser; with a `reader`, in a session of his."""
    async with open_memory(home=home, embedder="none", llm="none") as memory:
        keys = OneTimeKeys(reader or OWNER)

        async def get() -> Memory:
            return memory

        interface = Interface(get, door or keys, base=BASE, host=HOST)
        async with Browser(interface, memory, keys) as browser:
            if reader is not None:
                assert (await browser.enter(keys.new())).status_code == 303
            yield browser


def form_of(page: str) -> dict[str, str]:
    """Return the hidden fields of a page."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
