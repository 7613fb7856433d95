"""What only the store on PostgreSQL can meet: names that no index takes, and rows that another program changed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import psycopg
import pytest

from mcp_memory.core.errors import Damaged, InvalidInput
from mcp_memory.store.postgres.store import PostgresStore, open_store
from mcp_memory.store.sql import atom_rows, home_rows, ref_rows, turn_rows
from tests.postgres.notes import as_administrator
from tests.store.test_contract import NOW, append, atom, new_ref, user

pytestmark = pytest.mark.postgres

LONG = "".join(Random(7).choices([chr(code) for code in range(0x4E00, 0x9FFF)], k=3_000))


@pytest.fixture
def opened(url: str) -> Iterator[PostgresStore]:
    store = open_store(url)
    yield store
    store.close()


def test_an_id_or_a_name_that_is_too_long_is_invalid_and_nothing_is_stored(opened: PostgresStore) -> None:
    with pytest.raises(InvalidInput, match="too long"):
        append(opened, user("x", client_id=LONG))
    with pytest.raises(InvalidInput, match="too long"):
        opened.write("me", atom_rows.add, atom("x", entity=LONG, relation="is", value="x"), now=NOW)
    assert (
        opened.read("me", turn_rows.session_turns, "s"),
        opened.read("me", atom_rows.by_ids, ["a1"]),
        opened.read_home(home_rows.spaces),
    ) == ([], [], [])


@pytest.mark.parametrize(
    "harm", ["UPDATE object SET data = overlay(data PLACING 'X' FROM octet_length(data))", "DELETE FROM object"]
)
def test_a_result_whose_bytes_changed_is_damaged_until_it_comes_again(
    opened: PostgresStore, url: str, harm: str
) -> None:
    ref = opened.write("me", ref_rows.put, new_ref(b"important words"))
    with psycopg.connect(as_administrator(url), autocommit=True) as con:  # who sees the rows of all spaces
        assert con.execute(harm.encode()).rowcount == 1
    with pytest.raises(Damaged, match=ref.id):
        opened.read("me", ref_rows.read_bytes, ref.id)
    assert opened.write("me", ref_rows.put, new_ref(b"important words")).id == ref.id
    assert opened.read("me", ref_rows.read_bytes, ref.id) == b"important words"
