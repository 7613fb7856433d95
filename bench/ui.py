"""Measures the web interface: `python -m bench.ui [--turns N] [--home DIR] [--rounds N] [--json FILE]`

Runs the real `mcp-memory ui` on the demo's home, or on a home of N invented turns (`bench.corpus`), with a real browser
(`scripts.browser`; run `make ui` once). Figures, over a page of each kind that links lead to:

* `paint`: from the start of a navigation to the first contentful paint, as the browser reports it; floor: the login
  page, which has a style sheet and a script too but no content of the memory.
* `server`: from a request to the last byte of its answer, over one connection; floor: the style sheet.
* `search`: the same for searches; the first one, which loads the model, is separate.
* `memory`: resident memory of the process afterwards.
* `bytes`: the largest page of each kind, the style sheet, the scripts, the file of the MCP App.

Other work on the machine changes all times: compare them with their floor.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
from playwright.sync_api import BrowserContext, Page

from bench.bed import Bed, filled
from bench.corpus import queries
from bench.servers import memory_of
from bench.stats import timings_ms
from scripts.browser import launched
from scripts.ui_pictures import running, visited

ROUNDS = 5
SEARCHES = 20
DEMO_QUERIES = ("night boat", "why was the race called off?", "hazelnuts", "TRF-90457", "who leads the data team")
PAINTED = """() => new Promise(resolve => new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (one.name === "first-contentful-paint") resolve(one.startTime);
}).observe({type: "paint", buffered: true}))"""
Fetch = Callable[[str], tuple[float, int]]


def measure(home: Path, asked: Sequence[str], *, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return all figures of a home; `asked` are the queries of its searches."""
    with launched() as browser, running(home) as (address, pid):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("header nav")
        base = page.url.rstrip("/")
        fetch, entry = _fetching(base, context), address.partition("#")[0]
        searches = [fetch(f"/search?q={quote(query)}")[0] for query in [*asked]]
        addresses = [one for one in visited(base, page) if not one.startswith(("/search", "/forget", "/home?"))]
        served = {one: [fetch(one) for _ in range(rounds)] for one in addresses}
        stranger = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        found: dict[str, Any] = {
            "pages": len(addresses),
            "paint": {
                "ours": timings_ms([seconds for one in addresses for seconds in _paints(page, base + one, rounds)]),
                "floor": timings_ms(list(_paints(stranger, entry, rounds * 3))),
            },
            "server": {
                "ours": timings_ms([seconds for answers in served.values() for seconds, _ in answers]),
                "slowest": _slowest(served),
                "floor": timings_ms([fetch("../.static/page.css")[0] for _ in range(rounds * 5)]),
            },
            "search": {"first_ms": round(1000 * searches[0], 1), "ours": timings_ms(searches[1:])},
            "memory": memory_of(pid),
            "bytes": {"page": max(size for answers in served.values() for _, size in answers), **_files()},
        }
        return found


def _fetching(base: str, context: BrowserContext) -> Fetch:
    """Return a function that requests an address over one connection, and returns the seconds and the byte count."""
    split = urlsplit(base)
    connection = HTTPConnection(split.netloc)
    cookie = "; ".join(f"{one.get('name')}={one.get('value')}" for one in context.cookies(base))

    def fetch(address: str) -> tuple[float, int]:
        path = f"{split.path.rpartition('/')[0]}{address[2:]}" if address.startswith("../") else split.path + address
        began = perf_counter()
        connection.request("GET", path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        size = len(answer.read())
        if answer.status != 200:
            raise SystemExit(f"{address} answers {answer.status}")
        return perf_counter() - began, size

    return fetch


def _paints(page: Page, url: str, rounds: int) -> Iterator[float]:
    for _ in range(rounds):
        page.goto(url)
        yield page.evaluate(PAINTED) / 1000


def _slowest(served: dict[str, list[tuple[float, int]]]) -> dict[str, float]:
    medians = {one: sorted(seconds for seconds, _ in answers)[len(answers) // 2] for one, answers in served.items()}
    worst = sorted(medians, key=lambda one: -medians[one])[:3]
    return {one: round(1000 * medians[one], 1) for one in worst}


def _files() -> dict[str, int]:
    """Return the sizes of the interface's static files."""
    from mcp_memory.ui import mcp_app

    folder = Path(mcp_app.__file__).parent / "static"
    sizes = {name: (folder / name).stat().st_size for name in ("page.css", "page.js", "build.js", "map.js", "enter.js")}
    return {
        "css": sizes.pop("page.css"),
        "js": sum(sizes.values()),
        "app": len(mcp_app.app_file().encode()),
    }


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that are printed."""
    paint, server, search, size = found["paint"], found["server"], found["search"], found["bytes"]
    slow = ", ".join(f"{one} {ms:g} ms" for one, ms in server["slowest"].items())
    yield f"{found['pages']} pages, times as median and 95th percentile, beside the floor of the same run"
    yield f"first paint    {_ms(paint['ours'])}    floor {_ms(paint['floor'])}"
    yield f"server         {_ms(server['ours'])}    floor {_ms(server['floor'])}    slowest {slow}"
    yield f"warm search    {_ms(search['ours'])}    the first {search['first_ms']:g} ms"
    yield f"resident       {found['memory'].get('VmRSS', 0):g} MB"
    yield (
        f"largest page   {size['page'] / 1000:.1f} kB    CSS {size['css'] / 1000:.1f}    JS {size['js'] / 1000:.1f}"
        + (f"    App {size['app'] / 1000:.1f}")
    )


def _ms(figure: dict[str, float]) -> str:
    return f"{figure['p50']:g} / {figure['p95']:g} ms"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ui", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, help="measure a home of so many invented turns instead of the demo's")
    parser.add_argument("--home", type=Path, help="where that home is kept, and used again")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folder = given.home or Path(scratch)
        if given.turns:
            bed = Bed(folder=folder, turns=given.turns)
            anyio.run(filled, bed)
            home, asked = bed.home, [query.text for query in queries(SEARCHES, turns=given.turns)]
        else:
            home, asked = folder / "demo", [*DEMO_QUERIES] * (SEARCHES // len(DEMO_QUERIES))
            demo = [sys.executable, "-m", "mcp_memory", "demo", "--full", "--home", str(home)]
            subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
        found = measure(home, asked, rounds=given.rounds)
    print("\n".join(table(found)))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
