"""What only the store on PostgreSQL can meet: names that no index takes, and rows that another program changed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import psycopg
import pytest

from mcp_memory.core.errors import Damaged, InvalidInput
from mcp_memory.store.postgres.store import PostgresStore, open_store
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
        opened.add_atom("me", atom("x", entity=LONG, relation="is", value="x"), now=NOW)
    assert (opened.session_turns("me", "s"), opened.atoms("me", ["a1"]), opened.spaces()) == ([], [], [])


@pytest.mark.parametrize(
    "harm", ["UPDATE object SET data = overlay(data PLACING 'X' FROM octet_length(data))", "DELETE FROM object"]
)
def test_a_result_whose_bytes_changed_is_damaged_until_it_comes_again(
    opened: PostgresStore, url: str, harm: str
) -> None:
    ref = opened.put_ref("me", new_ref(b"important words"))
    with psycopg.connect(as_administrator(url), autocommit=True) as con:  # who sees the rows of all spaces
        assert con.execute(harm.encode()).rowcount == 1
    with pytest.raises(Damaged, match=ref.id):
        opened.read_ref("me", ref.id)
    assert opened.put_ref("me", new_ref(b"important words")).id == ref.id
    assert opened.read_ref("me", ref.id) == b"important words"
