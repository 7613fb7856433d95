"""Pictures of the interface: those of README, or all pages to look at.

    python -m scripts.ui_pictures                 two weeks of a user without a model, into docs/pictures/
    python -m scripts.ui_pictures --all FOLDER    some pages of each kind, light and dark, wide and narrow

Those of README show the pages of `scripts.pictured_pages`, on a fixed day and without JavaScript. The home of `--all`
is that of the demo, in a temporary folder; `--home` selects another. The browser is that of `make ui`
(`scripts.browser`).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, Route, ViewportSize

from scripts.browser import launched
from scripts.pictured_pages import FOLDER, PAGES, STATIC, note_digests, pages_of_two_weeks

ORIGIN = "http://localhost"
WIDTHS = {"wide": 1280, "narrow": 360}
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
OF_EACH_KIND = 2
COLOURS = 200
LINK = re.compile(r'<a [^>]*?href="([^"#]*)')
PRINTED = re.compile(r"http://127\.0\.0\.1:\d+/\S*#\S+")

Login = tuple[str, Browser, BrowserContext]


@contextmanager
def running(home: Path) -> Generator[tuple[str, int]]:
    """Run `mcp-memory ui` on a home and yield the address that it prints, and its process."""
    command = [sys.executable, "-m", "mcp_memory", "--home", str(home), "ui", "--no-browser"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            address = next(match.group() for line in program.stdout if (match := PRINTED.search(line)))
            yield address, program.pid
        except StopIteration:
            raise SystemExit("`mcp-memory ui` printed no address.") from None
        finally:
            program.terminate()


@contextmanager
def logged_in(home: Path) -> Generator[Login]:
    """Yield the address of the pages of a home, and a browser with a context that may see them."""
    with launched() as browser, running(home) as (address, _):
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("header nav")
        base = page.url.rstrip("/")
        page.close()
        yield base, browser, context


def visited(base: str, page: Page) -> list[str]:
    """Return addresses of pages that links lead to, a few of each kind, breadth first."""
    waiting, seen, kinds = ["/"], dict[str, None](), dict[str, int]()
    path = base.partition("//")[2].partition("/")[2]
    while waiting:
        address = waiting.pop(0)
        kind = re.sub(r"\d+|(?<=^/entity/).*|(?<=^/scene/).*|(?<=^/session/).*|r-[0-9a-f]+", "*", address)
        kind = re.sub(r"[^?]+\?.*", lambda one: one.group().partition("?")[0] + "?", kind)
        if address in seen or kinds.get(kind, 0) >= OF_EACH_KIND:
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        answer = page.request.get(base + address)
        if answer.ok and "text/html" in answer.headers.get("content-type", ""):
            seen[address] = None
            links = (match.replace("&amp;", "&") for match in LINK.findall(answer.text()))
            waiting += [match.removeprefix(f"/{path}") for match in links if match.startswith(f"/{path}/")]
    return list(seen)


def shoot(page: Page, url: str, target: Path, *, full: bool = False) -> None:
    """Write a picture of a page."""
    page.goto(url)
    page.wait_for_selector("main h1")
    target.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=target, full_page=full, animations="disabled")


def of_readme(folder: Path = FOLDER) -> Iterator[Path]:
    """Write the pictures of README and the digests of their pages, and yield the files of the pictures."""
    with TemporaryDirectory() as scratch:
        shown = pages_of_two_weeks(Path(scratch) / "home")
    with launched() as browser:
        for name, html in shown.items():
            size: ViewportSize = {"width": WIDTHS["wide"], "height": PAGES[name].height}
            context = browser.new_context(color_scheme="light", viewport=size, java_script_enabled=False)
            context.route("**/*", partial(_fulfil, html))
            target = folder / f"{name}.png"
            shoot(context.new_page(), f"{ORIGIN}/", target)
            context.close()
            _lighten(target)
            yield target
    note_digests(shown)


def _fulfil(html: str, route: Route) -> None:
    """Answer a request of the browser with the page, or with a file of the interface; nothing leaves this process."""
    file = STATIC / Path(route.request.url).name
    if route.request.url == f"{ORIGIN}/":
        route.fulfill(body=html, content_type="text/html; charset=utf-8")
    elif file.is_file():
        route.fulfill(path=file)
    else:
        route.abort()


def _lighten(picture: Path) -> None:
    """Give a picture a palette: text and lines of few colours become a third as large."""
    with Image.open(picture) as full:
        few = full.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE)  # red is rare, and stays
    few.save(picture, optimize=True)


def of_all(base: str, browser: Browser, context: BrowserContext, folder: Path) -> Iterator[Path]:
    """Write pictures of all kinds of pages into `folder`, and yield their files."""
    addresses = visited(base, context.new_page())
    for theme, (width, pixels) in product(THEMES, WIDTHS.items()):
        size = {"width": pixels, "height": 900}
        seen_by = browser.new_context(storage_state=context.storage_state(), color_scheme=theme, viewport=size)  # pyright: ignore[reportArgumentType]
        page = seen_by.new_page()
        for address in addresses:
            name = re.sub(r"\W+", "-", address).strip("-") or "memory"
            target = folder / f"{name}-{theme}-{width}.png"
            shoot(page, base + address, target, full=True)
            yield target
        seen_by.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.ui_pictures", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="write every page into this folder")
    parser.add_argument("--home", type=Path, help="with --all: the home to show instead of the demo's")
    options = parser.parse_args()
    if options.all is None:
        _tell(of_readme())
        return
    with TemporaryDirectory() as scratch:
        home = options.home or Path(scratch) / "demo"
        if options.home is None:
            demo = [sys.executable, "-m", "mcp_memory", "demo", "--full", "--home", str(home)]
            subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
        with logged_in(home) as (base, browser, context):
            _tell(of_all(base, browser, context, options.all))


def _tell(written: Iterable[Path]) -> None:
    for file in written:
        print(f"{file.stat().st_size // 1000:>5} kB  {file.name}", flush=True)


if __name__ == "__main__":
    main()
