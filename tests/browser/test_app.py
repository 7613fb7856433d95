"""The MCP App in a host: the Inspector's web page connects to the real server, opens the App, and the App asks on.

The host renders the App in a frame inside of a frame of another origin; what happens there is watched like any page.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio.to_thread
import pytest

from mcp_memory.service.memory import Memory
from mcp_memory.ui.frame import PLACES
from mcp_memory.ui.mcp_app import app_file, app_view
from scripts.install_peers import INSPECTOR, node_environment
from tests.browser.harness import with_memory
from tests.browser.test_hostile import ALIEN, ALLOWED, shown
from tests.peers.processes import serving
from tests.ui.hostile import PAYLOADS, fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Frame, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PATIENCE = 60_000  # milliseconds, on a busy machine


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def inspector(folder: Path) -> Generator[tuple[str, str]]:
    """Run the Inspector's web server; the address of its page and the token that opens it."""
    assert INSPECTOR.installed, "the inspector is not installed: run `make ui`"
    token, port = secrets.token_hex(16), free_port()
    settings = {
        "HOST": "127.0.0.1",
        "CLIENT_PORT": str(port),
        "MCP_SANDBOX_PORT": "0",
        "MCP_AUTO_OPEN_ENABLED": "false",
        "MCP_INSPECTOR_API_TOKEN": token,
    }
    running = subprocess.Popen(
        [*INSPECTOR.command, "--web"], cwd=folder, env={**node_environment(), "HOME": str(folder), **settings},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    assert running.stdout is not None
    said: list[str] = []
    for line in running.stdout:
        said.append(line)
        if f":{port}" in line:
            break
    else:
        pytest.fail(f"the inspector does not listen; it said:\n{''.join(said)}")
    rest = Thread(target=running.stdout.read)
    rest.start()
    try:
        yield f"http://127.0.0.1:{port}", token
    finally:
        os.killpg(running.pid, 15)
        running.wait(30)
        rest.join()
        running.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real server over HTTP, on a hostile memory."""
    folder = tmp_path_factory.mktemp("app")
    with_memory(folder / "home", partial(fill, tokens=False), log_contents=True)
    with serving(
        [sys.executable, "-m", "mcp_memory", "serve", "--transport", "http", "--port", "0", "--no-token"], folder
    ) as url:
        yield url


@pytest.fixture(scope="module")
def host(browser: Browser, server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The Inspector's page, connected to the server, with the App opened on the memory."""
    with inspector(tmp_path_factory.mktemp("inspector")) as (address, token):
        given = base64.urlsafe_b64encode(json.dumps({"what": "memory"}).encode()).decode().rstrip("=")
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        page.set_default_timeout(PATIENCE)
        page.goto(
            f"{address}/?serverUrl={quote(server, safe='')}&transport=http&autoConnect={token}"
            f"&openApp=show_memory&appArgs={given}"
        )
        page.click('[data-testid="open-app"]')
        yield page
        page.close()


def app_of(page: Page) -> Frame:
    """Wait until the App shows a page, and return its frame."""
    for _ in range(PATIENCE // 250):
        for frame in page.frames[1:]:
            if frame.url == "about:srcdoc" and frame.locator("#view h1").count():
                return frame
        page.wait_for_timeout(250)
    pytest.fail(f"the App shows nothing; frames: {[frame.url for frame in page.frames]}")


def test_the_app_is_opened_shows_the_memory_and_asks_on(host: Page) -> None:
    app = app_of(host)
    assert app.locator("#view h1").inner_text() == "Today"
    app.locator("#view a[href^='/a']").first.click()
    app.locator("#view h1", has_not_text="Today").wait_for()
    assert app.locator("form[method=post]").count() == 0


HOST = """<!doctype html><html><body style="margin:0; background:rgb(1, 2, 3)">
<iframe sandbox="allow-scripts" style="border:0; width:100%; height:600px"></iframe>"""
ANSWERS = """([file, page]) => {
  const frame = document.querySelector("iframe");
  window.handed = [];
  addEventListener("message", ({ data }) => {
    const say = (more) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...more }, "*");
    if (data.method === "ui/initialize")
      say({ id: data.id, result: { hostCapabilities: { serverTools: {}, message: { text: {} } }, hostContext: {} } });
    else if (data.method === "ui/notifications/initialized")
      say({ method: "ui/notifications/tool-result", params: { structuredContent: { path: page.path } } });
    else if (data.method === "tools/call") say({ id: data.id, result: { structuredContent: page } });
    else if (data.method === "ui/message") window.handed.push(data.params) && say({ id: data.id, result: {} });
  });
  frame.srcdoc = file;
}"""


@pytest.fixture(scope="module")
def file_and_page(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The file of the App, and the page of a statement."""

    async def parts(memory: Memory) -> list[Any]:
        stored = await memory.remember("The night boat leaves from quay 3.", typed=True)
        page = await app_view(memory, f"/{stored.atom.id}", right="read", is_owner=False)
        return [await anyio.to_thread.run_sync(app_file), asdict(page)]

    return with_memory(tmp_path_factory.mktemp("statement") / "home", parts)


@pytest.mark.parametrize("width", [320, 480, 640, 800])
def test_inline_the_app_shows_all_entries_on_the_surface_of_its_host(
    browser: Browser, file_and_page: list[Any], width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 700})
    page.set_content(HOST)
    page.evaluate(ANSWERS, file_and_page)
    app = app_of(page)
    entries = app.locator("nav a")
    boxes = [entries.nth(place).bounding_box() for place in range(entries.count())]
    assert len(boxes) == len(PLACES) - 1
    assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert app.evaluate("document.documentElement.scrollWidth") <= width
    surfaces = app.evaluate("['html', 'body', 'header', 'main'].map((one) => "
                            "getComputedStyle(document.querySelector(one)).backgroundColor)")  # fmt: skip
    assert set(surfaces) == {"rgba(0, 0, 0, 0)"}
    page.close()


def test_a_correction_is_handed_to_the_conversation(browser: Browser, file_and_page: list[Any]) -> None:
    page = browser.new_page(viewport={"width": 640, "height": 700})
    page.set_content(HOST)
    page.evaluate(ANSWERS, file_and_page)
    app = app_of(page)
    app.get_by_label("What it should say").fill("The night boat leaves from quay 4.")
    app.get_by_role("button", name="Correct this").click()
    app.get_by_role("status").get_by_text("handed to the conversation").wait_for()
    said = "statement a1 says “The night boat leaves from quay 3.”. It should say: The night boat leaves from quay 4."
    text = f"Please correct my memory: {said}"
    assert page.evaluate("window.handed") == [{"role": "user", "content": [{"type": "text", "text": text}]}]
    page.close()


def test_a_hostile_memory_is_text_in_the_app_too(host: Page) -> None:
    seen: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        seen.append(dialog.message)
        dialog.dismiss()

    host.on("dialog", dismiss)
    host.on("request", lambda asked: seen.append(asked.url) if "127.0.0.1" not in asked.url else None)
    host.on("console", lambda said: seen.append(said.text) if said.type == "error" else None)
    app = app_of(host)
    for entry in ("Memory", "People", "Conversations", "Tasks", "Review"):
        app.locator("nav a, header a", has_text=entry).first.click()
        app.locator("#view h1", has_text=entry).wait_for()
        assert app.evaluate(f"{ALIEN}({json.dumps(ALLOWED)}, '#view')") == [], entry
    texts = app.locator("#view").evaluate("view => view.textContent")
    assert [name for name, payload in PAYLOADS.items() if shown(payload) not in texts] == []
    assert [one for one in seen if not one.startswith(("data:", "blob:", "about:"))] == []
