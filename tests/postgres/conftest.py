"""A database of one test alone, with a table `note` that takes a text twice; and a proxy before its server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.notes import make_table, sql
from tests.postgres.proxy import Proxy, proxied
from tests.postgres_server import PostgresServer


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    made = postgres.create_memory()
    make_table(made)
    sql(made, "INSERT INTO space (name) VALUES ('me')")
    yield made
    postgres.drop_database(made)


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with proxied(postgres.port) as made:
        yield made
