"""A browser, the demo's home with something in every corner, and the interface on it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.harness import Crawl, Interface, crawled, interface
from tests.browser.homes import furnish

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser that `make ui` found or fetched."""
    from scripts.browser import launched

    with launched() as running:
        yield running


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the demo, and what it lacks: items under review, forgotten ones, a large task. Not to be changed."""
    home = tmp_path_factory.mktemp("demo") / "home"
    command = [sys.executable, "-m", "mcp_memory", "demo", "--full", "--home", str(home)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=300)
    furnish(home)
    return home


@pytest.fixture(scope="session")
def ui(browser: Browser, demo_home: Path) -> Iterator[Interface]:
    """The interface on that home, for tests that change nothing."""
    with interface(browser, demo_home) as running:
        yield running


@pytest.fixture(scope="session")
def crawl(ui: Interface) -> Crawl:
    """The pages that links lead to."""
    return crawled(ui)


@pytest.fixture(scope="session")
def pages(crawl: Crawl) -> dict[str, str]:
    """The pages that links lead to, as HTML by address."""
    return crawl.pages


@pytest.fixture
def own_home(demo_home: Path, tmp_path: Path) -> Path:
    """A copy of that home, for one test that changes it."""
    home = tmp_path / "home"
    shutil.copytree(demo_home, home)
    return home


@pytest.fixture
def own_ui(browser: Browser, own_home: Path) -> Iterator[Interface]:
    """The interface on a copy of that home, for one test that changes it."""
    with ExitStack() as running:
        yield running.enter_context(interface(browser, own_home))
