"""A server behind TLS, certificates and proxies: what works, and what a laptop says of the rest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from bench.fleet import CONFIGURATION, haproxy, has_haproxy
from mcp_memory.core.errors import ServerAway, ServerRefused
from mcp_memory.core.types import NewTurn
from tests.certificates import make_certificate
from tests.remote.team_server import answering, on_laptop, team_server

SAID = NewTurn(role="user", content="The harbour master of Torvik is Odd Berge.")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)


def ask(home: Path, url: str) -> None:
    on_laptop(home, url, "token", lambda memory: memory.undistilled())


@pytest.mark.slow
@pytest.mark.skipif(not has_haproxy(), reason="haproxy is not installed")
def test_a_laptop_uses_a_server_behind_the_shipped_balancer_with_tls(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, pem = make_certificate(tmp_path)
    (tls,) = re.findall(r"^# +(bind :443 .*)$", CONFIGURATION.read_text(), re.MULTILINE)
    configuration = tmp_path / "tls.cfg"
    configuration.write_text(CONFIGURATION.read_text().replace("bind :8765", tls.replace(":443", ":8765")))
    log = tmp_path / "audit.jsonl"
    monkeypatch.setenv("MCP_MEMORY_AUDIT_LOG", str(log))
    monkeypatch.setenv("MCP_MEMORY_ALLOWED_HOSTS", "localhost")
    with team_server(tmp_path / "server") as server:
        token, places = server.token("laptop"), {"/etc/haproxy/memory.pem": str(pem)}
        with haproxy([server.url.removesuffix("/mcp")], tmp_path, configuration, places, scheme="https") as address:
            url = f"{address.replace('127.0.0.1', 'localhost')}/mcp"
            with pytest.raises(ServerRefused, match=r"not trusted: self-signed certificate\. .* set SSL_CERT_FILE"):
                on_laptop(home, url, token, lambda memory: memory.undistilled())
            monkeypatch.setenv("SSL_CERT_FILE", str(authority))
            stored = on_laptop(home, url, token, lambda memory: memory.record_turns([SAID]))
            with pytest.raises(ServerRefused, match=r"certificate is not valid for '127\.0\.0\.1'\. If"):
                on_laptop(home, f"{address}/mcp", token, lambda memory: memory.undistilled())
            transport = httpx2.HTTPTransport(verify=False, local_address="127.0.0.5")
            with httpx2.Client(transport=transport, headers={"Authorization": "Bearer mcm_0_wrong"}) as client:
                assert client.post(url.replace("localhost", "127.0.0.1"), json={}).status_code == 401
            with pytest.raises(ServerRefused, match="'other' is not a space"):
                on_laptop(home, url, token, lambda memory: memory.undistilled(), space="other")
    assert len(stored.stored) == 1
    rejected = [line["who"] for line in map(json.loads, log.read_text().splitlines()) if line["verb"] == "enter"]
    assert rejected[0] == "address 127.0.0.5"
    assert re.fullmatch(r"token [0-9a-f]{8} laptop", rejected[1])


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_wrong_certificate_file_is_an_error(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    file = tmp_path / "corp.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    says = "which cannot be read: No such file" if content is None else "which has no certificates in PEM form"
    with pytest.raises(ServerRefused, match=f"SSL_CERT_FILE names {re.escape(str(file))}, {says}"):
        ask(home, "https://localhost:1")


def test_an_address_without_tls_is_told(home: Path) -> None:
    with answering((200, b"", {})) as url, pytest.raises(ServerAway, match="does not speak TLS; is it an address with"):
        ask(home, url.replace("http:", "https:"))


@pytest.mark.parametrize(
    ("proxy", "says"),
    [
        ("http://127.0.0.1:1", "through the proxy 127.0.0.1:1 of HTTPS_PROXY: Connection refused"),
        ("socks5://127.0.0.1:1080", "https:// and socks5:// are not supported"),
        ("https://127.0.0.1:1", "put memory.example.com into NO_PROXY"),
        ("http://127.0.0.1:port", "does not name a proxy over HTTP"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, proxy: str, says: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises((ServerAway, ServerRefused), match=re.escape(says)):
        ask(home, "https://memory.example.com")


@pytest.mark.parametrize(
    ("name", "value"), [("SSL_CERT_FILE", "/nowhere/corp.pem"), ("HTTPS_PROXY", "socks5://proxy:1")]
)
@pytest.mark.slow
def test_the_bridge_of_a_client_says_what_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("MCP_MEMORY_SERVER_TOKEN", "token")
    command = [sys.executable, "-m", "mcp_memory", "--home", str(tmp_path), "--server", "https://localhost:1", "serve"]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode != 0
    assert "SSL_CERT_FILE or a variable such as HTTPS_PROXY cannot be used" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "    at " not in ran.stderr
