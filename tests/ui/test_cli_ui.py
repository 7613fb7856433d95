"""`mcp-memory ui`: what it prints, who is let in, how it ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from mcp_memory.cli import serving
from mcp_memory.cli.main import program
from tests.in_memory import in_memory

WAIT = 30


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ui") / "home"

    in_memory(home, lambda memory: memory.remember("Tamsin lives in Bergen.", typed=True), llm="none")
    return home


@contextmanager
def command(home: Path, *options: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Yield the running command and the address that it printed."""
    run = [sys.executable, "-m", "mcp_memory", "--home", str(home), "ui", "--no-browser", *options]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.files
def test_the_printed_address_opens_the_memory_once_and_ctrl_c_ends_it(filled: Path) -> None:
    with command(filled) as (process, address):
        found = re.fullmatch(r"(http://(127\.0\.0\.1:\d+))(/[\w-]{22}/)#([\w-]{43})", address)
        assert found is not None
        origin, _, path, key = found.groups()
        own = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
        with httpx2.Client(base_url=origin, follow_redirects=True, timeout=WAIT) as browser:
            assert browser.get("/").status_code == 404
            page = browser.post(f"{path}.enter", data={"key": key}, headers=own)
            assert (page.status_code, page.url.path) == (200, f"{path}default/")
            assert "Tamsin lives in Bergen." in browser.get(f"{path}default/a1").text
            with browser.stream("GET", f"{path}default/events") as events:
                lines = events.iter_lines()
                assert next(lines) == "retry: 2000"
                process.send_signal(signal.SIGINT)
                assert not [line for line in lines if line.startswith("data")]
        assert process.wait(WAIT) == 0
        with httpx2.Client(base_url=origin) as other, pytest.raises(httpx2.ConnectError):
            other.post(f"{path}.enter", data={"key": key}, headers=own)
        assert process.stderr is not None
        assert process.stderr.read() == "The address works once, within a minute. Ctrl-C ends the program.\n"


@pytest.mark.slow
@pytest.mark.files
def test_a_key_is_new_with_each_start_and_the_port_may_be_chosen(filled: Path) -> None:
    with command(filled) as (_, first):
        port = first.split("/")[2].partition(":")[2]
        taken = subprocess.run(
            [sys.executable, "-m", "mcp_memory", "--home", str(filled), "ui", "--no-browser", "--port", port],
            capture_output=True,
            text=True,
            timeout=WAIT,
            check=False,
        )
        assert (taken.returncode, taken.stdout) == (1, "")
        assert taken.stderr.startswith(f"Error: Cannot listen on 127.0.0.1 port {port}")
    with command(filled, "--port", port) as (_, second):
        assert second.split("/")[:3] == first.split("/")[:3]
        assert second.split("/")[3:] != first.split("/")[3:]


def test_a_home_that_is_not_there_is_told_and_not_made(home: Path) -> None:
    result = CliRunner().invoke(program, ["--home", str(home), "ui", "--no-browser"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Nothing is stored yet in")
    assert not home.exists()


def test_a_browser_is_opened_only_where_there_are_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert serving.open_browser("http://127.0.0.1:1/") is None
    monkeypatch.setenv("DISPLAY", ":0")
    thread = serving.open_browser("http://127.0.0.1:2/")
    assert thread is not None
    thread.join(WAIT)
    assert opened == ["http://127.0.0.1:2/"]
