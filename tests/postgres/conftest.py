"""A database of one test alone, with a table `note` that takes a text twice; and a proxy before its server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.notes import make_table, sql
from tests.postgres.proxy import Proxy, proxied
from tests.postgres_server import PostgresServer


@pytest.fixture
def url(url: str) -> str:
    make_table(url)
    sql(url, "INSERT INTO space (name) VALUES ('me')")
    return url


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with proxied(postgres.port) as made:
        yield made
