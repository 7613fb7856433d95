"""The pages that README's pictures show: those of the memory of `scripts.two_weeks`, and digests of what they show.

`docs/pictures/pages.json` has the digests of the pages that `scripts.ui_pictures` has taken pictures of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import anyio

from mcp_memory import __version__
from mcp_memory.service.memory import Memory
from mcp_memory.ui import frame
from mcp_memory.ui.app import warm_up
from mcp_memory.ui.components import View
from mcp_memory.ui.pages import page_at
from mcp_memory.ui.times import in_zone
from scripts.two_weeks import two_weeks

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
STATIC = Path(frame.__file__).with_name("static")
DIGESTS = FOLDER / "pages.json"
STYLE = "page.css"
_POSITIONS = re.compile(r' (?:[cdr]?[xy][12]?|r|d|points|transform|viewBox|width|height)="[^"]*"')


@dataclass(frozen=True, slots=True)
class Pictured:
    """A page, and the height of its picture in pixels.

    In its address, `{}` is the id of the statement or task that begins with `text`.
    """

    address: str
    height: int
    text: str = ""


PAGES = {
    "today": Pictured("/", 1000),
    "statement": Pictured("/{}", 640, "Tomasz works on Wednesdays"),
    "map": Pictured("/map", 630),
    "task": Pictured("/{}", 760, "the-confirmation-mails"),
}


def pages_of_two_weeks(home: Path) -> dict[str, str]:
    """Make the memory in a new home, and return its pages as HTML, by the names of their pictures."""

    async def run() -> dict[str, str]:
        async with two_weeks(home) as memory:
            return await _pages(memory)

    with in_zone("UTC"):
        return anyio.run(run)


async def _pages(memory: Memory) -> dict[str, str]:
    await warm_up(memory)
    ids = {atom.text: atom.id for atom in await memory.atoms(limit=1_000)}
    ids |= {canvas.label: f"{canvas.number:03d}" for canvas in await memory.canvases(limit=100)}
    shown: dict[str, str] = {}
    for name, pictured in PAGES.items():
        [id, *_] = [id for text, id in ids.items() if text.startswith(pictured.text)]
        view = View(memory=memory, right="admin", form_token="token", is_owner=True)
        page = await page_at(pictured.address.format(id), view)
        body = frame.frame_page(page, space=memory.space, spaces=(), form_token="token")
        shown[name] = frame.document(page.title, body, base="", static="", script="page.js")
    return shown


def digests(shown: Mapping[str, str]) -> dict[str, str]:
    """Return a digest of the text and structure of each page, and one of the style sheet.

    The version of the program and the positions in drawings are left out: the map's depend on the machine's arithmetic.
    """
    files = {name: _POSITIONS.sub("", html.replace(__version__, "")).encode() for name, html in shown.items()}
    files[STYLE] = (STATIC / STYLE).read_bytes()
    return {name: sha256(data).hexdigest() for name, data in files.items()}


def noted_digests() -> dict[str, str]:
    """Return the digests of the pages in the pictures."""
    return json.loads(DIGESTS.read_text(encoding="utf-8"))


def note_digests(shown: Mapping[str, str]) -> None:
    DIGESTS.write_text(json.dumps(digests(shown), indent=2) + "\n", encoding="utf-8")
