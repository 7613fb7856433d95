"""The interface as a person starts it, pages in a browser, and what is asked of them.

What a page may not do is noted while it is open (`Watch`): dialogs, errors on the console, requests to other origins.
What it looks like is asked in a world of its own (`ask`), so that the page's Content Security Policy and Trusted Types
stay as they are.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import pytest

from mcp_memory.core.config import Settings
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.ui.pages import ADDRESSES
from scripts.install_peers import AXE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

READY_WITHIN = 60  # seconds from spawn to a printed address, on a busy machine
STOPPED_WITHIN = 10
WIDTHS = (360, 1280)
THEMES = ("light", "dark")
HEIGHT = 900
UNDRAWN = "[data-map]:not([data-live])"
"""The map until `map.js` has drawn it."""
PRINTED = re.compile(r"http://127\.0\.0\.1:\d+/\S*#\S+")
LINK = re.compile(r'<a [^>]*?href="([^"]*)"')


# --- the program ------------------------------------------------------------------------------------


@contextmanager
def program(home: Path, **settings: str) -> Iterator[str]:
    """Run `mcp-memory ui` on a home, with settings of the environment, and yield the address that it prints."""
    command = [sys.executable, "-m", "mcp_memory", "--home", str(home), "ui", "--no-browser"]
    running = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **settings},
    )  # fmt: skip
    assert running.stdout is not None
    said: list[str] = []
    address: SimpleQueue[str | None] = SimpleQueue()
    listener = Thread(target=_listen, args=(running.stdout, said, address))
    listener.start()
    try:
        yield _printed(address, said)
    finally:
        running.terminate()
        try:
            running.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        listener.join()
        running.stdout.close()


def _listen(output: IO[str], said: list[str], address: SimpleQueue[str | None]) -> None:
    for line in output:
        said.append(line)
        if found := PRINTED.search(line):
            address.put(found.group())
    address.put(None)


def _printed(address: SimpleQueue[str | None], said: Sequence[str]) -> str:
    try:
        url = address.get(timeout=READY_WITHIN)
    except Empty:
        url = None
    if url is None:
        pytest.fail(f"`mcp-memory ui` printed no address; it said:\n{''.join(said)}")
    return url


def with_memory(home: Path, act: Callable[[Memory], Any], **settings: Any) -> Any:
    """Run a coroutine function on a memory of this process, while the interface has the same home open."""

    async def run() -> Any:
        async with open_memory(Settings(home=home), llm="none", **settings) as memory:
            return await act(memory)

    with ThreadPoolExecutor(1) as other:  # Playwright's loop has this thread
        return other.submit(anyio.run, run).result()


# --- pages ------------------------------------------------------------------------------------------


@dataclass
class Watch:
    """What pages of one context did that no page may do, by the address where it happened."""

    origin: str
    alien: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        context.on("dialog", lambda dialog: (self._note("dialog", dialog.message), dialog.dismiss()))
        context.on("console", lambda said: self._note("console", said.text) if said.type == "error" else None)
        context.on("weberror", lambda error: self._note("error", str(error.error)))
        context.on("request", lambda asked: self._asked(asked.url))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.origin, "data:", "blob:", "about:")):
            self._note("request", url)

    def _note(self, what: str, text: str) -> None:
        self.alien.append(f"{what}: {text}")


@dataclass
class Interface:
    """A running interface with a browser that is logged in to it."""

    browser: Browser
    home: Path
    base: str
    state: Any

    @property
    def origin(self) -> str:
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.base))

    def url(self, address: str) -> str:
        return self.base + address

    def address(self, url: str) -> str:
        """Return the address within the interface that a URL leads to."""
        assert url.startswith(self.base), url
        return url.removeprefix(self.base).partition("#")[0] or "/"

    @contextmanager
    def context(self, *, theme: str = "light", width: int = 1280, javascript: bool = True, still: bool = False,
                refusals: int = 0) -> Iterator[BrowserContext]:  # fmt: skip
        """Yield a context of the browser whose pages do nothing that they may not; it says so when it ends.

        `refusals`: how many requests the server refuses in it; a browser notes each on the console.
        """
        context = self.browser.new_context(
            storage_state=self.state,
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce" if still else "no-preference",
            viewport={"width": width, "height": HEIGHT},
            java_script_enabled=javascript,
            base_url=self.base,
        )
        context.set_default_timeout(60_000)
        watch = Watch(self.origin)
        watch.over(context)
        try:
            yield context
        finally:
            context.close()
        noted = [one for one in watch.alien if one.startswith("console: Failed to load resource")][:refusals]
        assert watch.alien == noted

    @contextmanager
    def page(self, address: str = "/", **how: Any) -> Iterator[Page]:
        """Yield one page at an address, in a context of its own."""
        with self.context(**how) as context:
            page = context.new_page()
            page.goto(self.url(address))
            yield page


@contextmanager
def interface(browser: Browser, home: Path, **settings: str) -> Iterator[Interface]:
    """Start the interface on a home and log a page in by the address that it prints."""
    with program(home, **settings) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("header nav")
        base = page.url.rstrip("/")
        state = context.storage_state()
        context.close()
        yield Interface(browser, home, base, state)


def kind_of(address: str) -> str:
    """Return which page an address names, as `pages` calls it."""
    path = address.partition("?")[0] or "/"
    return next((name for pattern, name in ADDRESSES.items() if re.fullmatch(pattern, path)), "none")


@dataclass
class Crawl:
    """Pages as HTML by address, how many of each kind, and links that lead nowhere."""

    pages: dict[str, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    dead: dict[str, str] = field(default_factory=dict)


def crawled(ui: Interface, *, starts: Sequence[str] = ("/",), of_each: int = 8) -> Crawl:
    """Follow links from a few pages, breadth first, to some pages of each kind."""
    found, waiting = Crawl(), [(start, "") for start in starts]
    with ui.context() as context:
        while waiting:
            address, on = waiting.pop(0)
            kind = kind_of(address)
            if address in found.pages or address in found.dead or found.kinds[kind] >= of_each:
                continue
            found.kinds[kind] += 1
            answer = context.request.get(ui.url(address))
            if answer.status != 200:
                found.dead[address] = f"{answer.status}, linked on {on}"
            elif "text/html" in answer.headers.get("content-type", ""):
                found.pages[address] = answer.text()
                waiting += [(one, address) for one in _links(ui, found.pages[address])]
    return found


def _links(ui: Interface, html: str) -> Iterator[str]:
    path = urlsplit(ui.base).path
    for href in LINK.findall(html):
        address = href.replace("&amp;", "&").partition("#")[0]
        if address.startswith(path + "/"):
            yield address.removeprefix(path)


# --- what is asked of a page ------------------------------------------------------------------------


def ask(page: Page, expression: str, *, sources: Sequence[str] = ()) -> Any:
    """Evaluate an expression in a world of its own beside the page's, after `sources`."""
    session = page.context.new_cdp_session(page)
    try:
        frame = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "tests"})
        for source in (*sources, expression):
            answer = session.send(
                "Runtime.evaluate",
                {
                    "expression": source,
                    "contextId": world["executionContextId"],
                    "awaitPromise": source is expression,
                    "returnByValue": source is expression,
                },
            )
            assert "exceptionDetails" not in answer, json.dumps(answer["exceptionDetails"])[:2000]
        return answer["result"].get("value")
    finally:
        session.detach()


@cache
def _axe() -> str:
    assert AXE.installed, "axe-core is not installed: run `make ui`"
    return AXE.path.read_text(encoding="utf-8")


def violations(page: Page) -> list[str]:
    """Return what breaks WCAG 2.2 AA on a page, a line each."""
    options = {
        "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
        "rules": {"target-size": {"enabled": True}},
        "resultTypes": ["violations"],
    }
    run = f"""axe.run(document, {json.dumps(options)}).then(done => done.violations.flatMap(rule => rule.nodes.map(
        node => `${{rule.id}}: ${{node.target.join(" ")}}: ${{node.failureSummary.replace(/\\s+/g, " ")}}`)))"""
    return ask(page, run, sources=[_axe()])


GEOMETRY = (Path(__file__).parent / "geometry.js").read_text(encoding="utf-8")


def crooked(page: Page) -> list[str]:
    """Return what is out of its place on a page, a line each: see geometry.js."""
    return ask(page, f"{GEOMETRY}\ncrooked()")
