"""`/metrics`: behind its own token, in Prometheus' format, with few labels, whatever the store does."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from mcp_memory.core import metrics
from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.metrics import Counter, Gauge, Histogram, Sample
from mcp_memory.server import scrapes
from tests.postgres.proxy import proxied
from tests.postgres_server import PostgresServer
from tests.server.answers import WAIT
from tests.server.served import bearer, served

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each scrape read the store."""
    monkeypatch.setattr(scrapes, "_CACHE_SECONDS", -1.0)


CANARY = "quetzalcoatlus"
TOKEN = "scrape-me-" + 20 * "x"


def settings_of(home: Path, **more: Any) -> Settings:
    return load_settings({}, home=home, embedder="none", metrics_token=TOKEN, token="owner-token", **more)


async def scrape(url: str) -> str:
    async with bearer(TOKEN) as http:
        answer = await http.get(f"{url}/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    return answer.text


def value(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert found, name
    return float(found[1])


async def call(url: str, name: str, **arguments: Any) -> None:
    async with bearer("owner-token") as http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
        await client.call_tool(name, arguments)


async def test_only_the_token_of_the_metrics_opens_them_and_it_opens_nothing_else(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path / "home")) as (url, _):
        for token in (None, "owner-token", "mcm_1_2"):
            async with bearer(token) as http:
                assert (await http.get(f"{url}/metrics")).status_code == 401
        async with bearer(TOKEN) as http:
            assert (await http.post(f"{url}/mcp", json={})).status_code == 401
        assert "mcp_memory_store_up 1" in await scrape(url)


async def test_without_their_token_there_are_no_metrics(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home").model_copy(update={"metrics_token": None})
    async with served(settings) as (url, _), bearer("owner-token") as owner, bearer(None) as nobody:
        assert (await owner.get(f"{url}/metrics")).status_code == 404
        assert (await nobody.get(f"{url}/metrics")).status_code == 401


async def test_calls_are_counted_by_verb_and_outcome(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path / "home")) as (url, _):
        before = await scrape(url)
        await call(url, "remember", text="The ferry leaves at nine.")
        await call(url, "expand_node", ref="r-000000000000")
        after = await scrape(url)
        counted = 'mcp_memory_request_seconds_count{verb="%s",outcome="%s"}'
        assert value(after, counted % ("remember", "ok")) == _before(before, counted % ("remember", "ok")) + 1
        missing = counted % ("expand_node", "NotFound")
        assert value(after, missing) == _before(before, missing) + 1
        assert value(after, "mcp_memory_spaces") == 1
        assert value(after, "mcp_memory_requests_in_progress") == 0


def _before(text: str, name: str) -> float:
    return value(text, name) if name in text else 0.0


async def test_no_name_that_a_client_invents_becomes_a_label(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path / "home")) as (url, _):
        async with (
            bearer("owner-token", **{"mcp-memory-space": "default"}) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            await client.call_tool(CANARY, {})
            for ask in (client.get_prompt(CANARY), client.read_resource(f"memory://{CANARY}/1")):
                with pytest.raises(MCPError):
                    await ask
        text = await scrape(url)
    assert CANARY not in text
    verbs = set(re.findall(r'verb="([^"]*)"', text))
    assert {"tools/call", "prompts/get", "resource unknown"} <= verbs
    assert 'verb="tools/call",outcome="NotFound"' in text


@pytest.mark.postgres
async def test_a_scrape_is_answered_while_the_database_is_silent_or_away(
    tmp_path: Path, postgres: PostgresServer, url: str
) -> None:
    released = threading.Event()
    with proxied(postgres.port) as proxy:
        async with served(settings_of(tmp_path / "home", store=proxy.url(url))) as (address, _):
            first = await _until_up(address)
            assert value(first, "mcp_memory_pool_size") == 10
            assert value(first, "mcp_memory_standbys") == 0
            assert 'mcp_memory_commits_unconfirmed_total{by="standby"} ' in first  # before there was any
            proxy.cut_before(b"FROM queue", released.wait)
            text = await scrape(address)
            assert value(text, "mcp_memory_store_up") == 0
            assert value(text, "mcp_memory_pool_in_use") == 1
            assert "mcp_memory_spaces" not in text
            proxy.refuse()
            released.set()
            proxy.cut()
            assert value(await scrape(address), "mcp_memory_store_up") == 0
            proxy.accept()
            assert "mcp_memory_spaces" in await _until_up(address)


async def _until_up(address: str) -> str:
    """Return the first scrape that the store answered: opening it takes longer than a scrape on a busy machine."""
    with anyio.fail_after(WAIT):
        while value(text := await scrape(address), "mcp_memory_store_up") == 0:  # noqa: ASYNC110
            await anyio.sleep(0.1)
    return text


# --- the format -------------------------------------------------------------------------------------


@pytest.fixture
def own() -> Iterator[list[metrics.Metric]]:
    made: list[metrics.Metric] = [
        Counter("tried_total", "Tries.", "what"),
        Gauge("level", "A level."),
        Histogram("took_seconds", "Durations.", "verb"),
    ]
    yield made
    for metric in made:
        metrics._METRICS.remove(metric)


def test_the_text_is_what_prometheus_parses(own: list[Any]) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    tried, level, took = own
    tried.add(2, 'a "quoted" \\ word\nand a line')
    level.set(-0.5)
    for seconds in (0.001, 0.3, 999.0):
        took.observe(seconds, "recall")
    families = {
        family.name: family
        for family in parser.text_string_to_metric_families(metrics.text([Sample("up", "Up.", 1.0, {"queue": "x"})]))
    }
    (sample,) = families["tried"].samples
    assert (sample.labels, sample.value) == ({"what": 'a "quoted" \\ word\nand a line'}, 2.0)
    assert families["level"].samples[0].value == -0.5
    assert families["up"].samples[0].labels == {"queue": "x"}
    assert families["took_seconds"].type == "histogram"
    buckets = {
        sample.labels["le"]: sample.value
        for sample in families["took_seconds"].samples
        if sample.name == "took_seconds_bucket"
    }
    assert buckets["0.005"] == 1
    assert buckets["0.5"] == 2
    assert buckets["+Inf"] == 3
    assert {"process_cpu_seconds", "mcp_memory_info", "mcp_memory_request_seconds"} <= families.keys()
