"""A database of one test alone, with a table `note` that takes a text twice; and a proxy before its server."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres.proxy import Proxy, proxied
from tests.postgres_server import PostgresServer


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    made = postgres.create_database("memory")
    with psycopg.connect(made, autocommit=True) as con:
        con.execute("CREATE TABLE note (text TEXT NOT NULL)")
        con.execute("INSERT INTO space (name) VALUES ('me')")
    yield made
    postgres.drop_database(made)


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with proxied(postgres.port) as made:
        yield made
