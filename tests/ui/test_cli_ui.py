"""`mcp-memory ui`: what it prints, who is let in, how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
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


def run(home: Path, *options: str, space: str = "default", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "mcp_memory", "--home", str(home), "--space", space, "ui", "--no-browser", *options],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
        env={**os.environ, **environment},
    )


def parts_of(address: str) -> tuple[str, str, str]:
    """Return the origin, the path and the key of an address."""
    found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)(/[\w-]{22}/)[^/#]+/#([\w-]{72})", address)
    assert found is not None, address
    return found[1], found[2], found[3]


def own(origin: str) -> dict[str, str]:
    return {"Origin": origin, "Sec-Fetch-Site": "same-origin"}


def enter(browser: httpx2.Client, address: str) -> httpx2.Response:
    origin, path, key = parts_of(address)
    return browser.post(f"{origin}{path}.enter", data={"key": key}, headers=own(origin))


def form_of(browser: httpx2.Client, origin: str, path: str) -> dict[str, str]:
    page = browser.get(f"{origin}{path}default/review").text
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


@contextmanager
def listening(port: int = 0) -> Generator[int]:
    """Let another program listen at a port."""
    with socket.create_server(("127.0.0.1", port)) as server:
        yield server.getsockname()[1]


@pytest.mark.slow
@pytest.mark.files
def test_the_printed_address_opens_the_memory_once_and_ctrl_c_ends_it(filled: Path) -> None:
    with command(filled) as (process, address):
        origin, path, key = parts_of(address)
        with httpx2.Client(base_url=origin, follow_redirects=True, timeout=WAIT) as browser:
            assert browser.get("/").status_code == 404
            page = browser.post(f"{path}.enter", data={"key": key}, headers=own(origin))
            assert (page.status_code, page.url.path) == (200, f"{path}default/")
            assert "Tamsin lives in Bergen." in browser.get(f"{path}default/a1").text
            with browser.stream("GET", f"{path}default/events") as events:
                lines = events.iter_lines()
                assert next(lines) == "retry: 2000"
                process.send_signal(signal.SIGINT)
                assert not [line for line in lines if line.startswith("data")]
        assert process.wait(WAIT) == 0
        with httpx2.Client(base_url=origin) as other, pytest.raises(httpx2.ConnectError):
            other.post(f"{path}.enter", data={"key": key}, headers=own(origin))
        assert process.stderr is not None
        about = "The address signs you in once, within a minute, for a month. Ctrl-C ends the program.\n"
        assert process.stderr.read() == about


@pytest.mark.slow
@pytest.mark.files
def test_address_and_session_outlast_a_restart(filled: Path) -> None:
    with httpx2.Client(follow_redirects=True, timeout=WAIT) as browser:
        with command(filled) as (_, first):
            origin, path, key = parts_of(first)
            enter(browser, first)
        with command(filled) as (_, second):
            assert parts_of(second)[:2] == (origin, path)
            assert parts_of(second)[2] != key
            assert "Tamsin lives in Bergen." in browser.get(f"{origin}{path}default/a1").text
            browser.post(f"{origin}{path}default/do/leave", data=form_of(browser, origin, path), headers=own(origin))
        with command(filled):
            assert browser.get(f"{origin}{path}default/a1").status_code == 401


@pytest.mark.slow
@pytest.mark.files
def test_while_it_runs_the_same_command_opens_it_once_more(filled: Path) -> None:
    with command(filled) as (process, first):
        again = run(filled, space="work & play")
        assert again.returncode == 0
        origin, path, _ = parts_of(first)
        assert again.stdout.startswith(f"{origin}{path}work%20%26%20play/#")
        assert again.stderr == f"The pages are served already, by process {process.pid}; this opens them.\n"
        with httpx2.Client(follow_redirects=True, timeout=WAIT) as browser:
            for address in (again.stdout.strip(), first):
                assert enter(browser, address).status_code == 200
            assert enter(browser, again.stdout.strip()).status_code == 403
        other = run(filled, "--port", "1")
        assert (other.returncode, other.stdout) == (1, "")
        assert f"at port {origin.rpartition(':')[2]} by process {process.pid}" in other.stderr


@pytest.mark.slow
@pytest.mark.files
def test_a_port_that_is_taken_is_named_with_what_to_do(filled: Path) -> None:
    with listening() as port:
        for taken in (run(filled, "--port", str(port)), run(filled, MCP_MEMORY_UI_PORT=str(port))):
            assert (taken.returncode, taken.stdout) == (1, "")
            assert taken.stderr.startswith(f"Error: Port {port} of 127.0.0.1 cannot be used")
            assert "choose another port: --port, or the setting ui_port" in taken.stderr
    with command(filled, "--port", str(port)) as (_, address):
        assert parts_of(address)[0] == f"http://127.0.0.1:{port}"


@pytest.mark.slow
@pytest.mark.files
def test_everybody_is_signed_out_if_another_program_listens_where_the_pages_were(filled: Path) -> None:
    with httpx2.Client(follow_redirects=True, timeout=WAIT) as browser:
        with command(filled) as (_, first):
            enter(browser, first)
            origin, path, _ = parts_of(first)
        cookie = browser.cookies["mcp-memory-session"]
        with listening(int(origin.rpartition(":")[2])), command(filled) as (_, second):
            there, base, _ = parts_of(second)
            assert there != origin
            assert base != path
            with_cookie = {"Cookie": f"mcp-memory-session={cookie}"}
            assert browser.get(f"{there}{base}default/", headers=with_cookie).status_code == 401


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
