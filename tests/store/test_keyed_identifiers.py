"""Identifiers that are computed from the words of a turn are stored keyed, and recognise the turn all the same."""

from __future__ import annotations

import base64
import hashlib
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.core.keyed_hash import is_keyed, keyed_id
from mcp_memory.core.types import NewTurn
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.postgres.migrations import STEPS
from mcp_memory.store.protocol import Store
from mcp_memory.store.row_types import TurnRow
from mcp_memory.store.sql import exporting, importing, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import FollowedLog, Imported

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SECRET = "The wifi password is hunter2222."
PLAIN = f"import-{hashlib.sha256(SECRET.encode()).hexdigest()[:24]}"
MASKED = NewTurn(role="user", content="The wifi password is […].", said_at=NOW, client_id=PLAIN)
NATIVE = NewTurn(role="user", content="Call my brother Anselm.", said_at=NOW, client_id="msg-anselm-1")


def exported(store: Store, space: str = "me") -> list[Any]:
    rows: list[Any] = []
    store.export_rows([space], lambda _, row: rows.append(row))
    return rows


def client_ids(store: Store) -> list[str | None]:
    return [row.client_id for row in exported(store) if isinstance(row, TurnRow)]


def test_the_id_that_an_importer_derives_is_stored_keyed_and_recognised(store: Store) -> None:
    assert len(store.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED, NATIVE]), now=NOW).stored) == 2
    keyed, native = client_ids(store)
    assert keyed is not None
    assert keyed.startswith("import:")
    assert PLAIN.removeprefix("import-") not in keyed
    assert native == "msg-anselm-1"
    assert store.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED, NATIVE]), now=NOW).duplicates == 2
    assert store.read("me", turn_rows.known_client_ids, [PLAIN, "msg-anselm-1", "m9"]) == {
        PLAIN: False,
        "msg-anselm-1": False,
    }


HASH = hashlib.sha256(SECRET.encode())
GIVEN = (
    HASH.hexdigest(),
    hashlib.sha1(SECRET.encode()).hexdigest().upper(),
    hashlib.sha512(SECRET.encode()).hexdigest(),
    HASH.hexdigest()[:16],
    f"sha256:{HASH.hexdigest()}",
    f"md5:{hashlib.md5(SECRET.encode()).hexdigest()}",
    f"msg_{HASH.hexdigest()[:20]}-7",
    base64.b64encode(HASH.digest()).decode(),
    base64.urlsafe_b64encode(HASH.digest()).decode().rstrip("="),
    f"sha256-{base64.b64encode(HASH.digest()).decode()}",
)
LEFT = ("550e8400-e29b-41d4-a716-446655440000", "msg-anselm-1", "toolu_01A09q90qw90lq917835lq9", "1182934459012345678")


def test_ids_that_look_like_digests_are_stored_keyed_and_others_as_they_are(store: Store) -> None:
    turns = [NewTurn(role="user", content=f"turn {n}", client_id=id) for n, id in enumerate([*GIVEN, *LEFT])]
    store.write("me", turn_rows.append, "s", turn_rows.prepare(turns), now=NOW)
    stored = client_ids(store)
    keyed = stored[: len(GIVEN)]
    assert stored[len(GIVEN) :] == [*LEFT]
    assert all(one is not None and is_keyed(one) for one in keyed)
    assert len({*keyed}) == len(GIVEN)
    assert store.write("me", turn_rows.append, "s", turn_rows.prepare(turns), now=NOW).duplicates == len(turns)
    assert store.read("me", turn_rows.known_client_ids, [*GIVEN, *LEFT]) == dict.fromkeys([*GIVEN, *LEFT], False)


@pytest.mark.parametrize("id", GIVEN)
def test_a_keyed_id_is_not_keyed_again(id: str) -> None:
    assert keyed_id(b"k", keyed_id(b"other", id)) == keyed_id(b"other", id)


def test_a_purge_leaves_no_id_of_a_client_and_keeps_its_turn_out(store: Store) -> None:
    ids = [
        turn.id
        for turn in store.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED, NATIVE]), now=NOW).stored
    ]
    gone = store.write("me", tombstone_rows.forget, ids, reason="", now=NOW)
    store.purge("me", Purge(tombstones=[gone.id]), now=NOW)
    assert store.read("me", turn_rows.known_client_ids, [PLAIN, "msg-anselm-1"]) == {PLAIN: True, "msg-anselm-1": True}
    again = store.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED, NATIVE]), now=NOW)
    assert (again.stored, again.forgotten) == ([], 2)


def test_two_homes_key_the_same_id_differently(store: Store, tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "other")) as other:
        for each in (store, other):
            each.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED]), now=NOW)
        assert client_ids(store) != client_ids(other)


def test_a_history_is_recognised_where_its_export_was_imported(store: Store, tmp_path: Path) -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED, NATIVE]), now=NOW)
    with closing(open_store(tmp_path / "other")) as other:
        for stored in (2, 0):
            done = other.write("me", importing.import_rows, exported(store), of=store_origin(store), names={}, now=NOW)
            assert done.stored == stored
        again = other.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED, NATIVE]), now=NOW)
        assert (again.stored, again.duplicates) == ([], 2)


def store_origin(store: Store) -> Any:
    from mcp_memory.store.row_types import Origin

    return Origin(store.read_home(exporting.home_id), "me")


@pytest.mark.files
def test_a_home_of_an_earlier_version_is_keyed_with_its_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.store.sqlite.migrations.SCHEMA", SCHEMA[:4])
    with closing(open_store(home)) as old:
        old.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED, NATIVE]), now=NOW)
        old.write(
            "me", turn_rows.note_imported_file, Imported(path="/h.jsonl", sha256="ab" * 32, modified=1, turns=1, at=NOW)
        )
        old.write(
            "me",
            turn_rows.note_followed_log,
            FollowedLog(
                path="/l.jsonl", client="codex", session="s", offset=9, head="cd" * 12, tail="", state="{}", at=NOW
            ),
        )
    monkeypatch.undo()
    with closing(apsw.Connection(str(home / "memory.db"))) as con:
        keyed = con.execute("SELECT client_id FROM turn WHERE id = 1").get
    as_before(home, keyed)
    for _ in range(2):
        with closing(open_store(home)) as store:
            assert client_ids(store) == [keyed, "msg-anselm-1"]
            assert store.problems() == []
            assert (
                store.write("me", turn_rows.append, "s", turn_rows.prepare([MASKED, NATIVE]), now=NOW).duplicates == 2
            )
            assert store.read("me", turn_rows.imported_files)[0].sha256 != "ab" * 32
            (log,) = store.read("me", turn_rows.followed_logs)
            assert (log.head != "cd" * 12, len(log.head), log.tail) == (True, 24, "")
    digest = PLAIN.removeprefix("import-").encode()
    journals = [path.read_bytes() for path in (home / "spaces").rglob("*.jsonl")]
    assert not any(digest in journal for journal in journals)


def as_before(home: Path, keyed: str) -> None:
    """Give the first turn the id that earlier versions stored, in its row and its line."""
    (journal,) = (home / "spaces/me/conversations").iterdir()
    journal.write_bytes(journal.read_bytes().replace(keyed.encode(), PLAIN.encode()))
    with closing(apsw.Connection(str(home / "memory.db"))) as con:
        con.execute("UPDATE turn SET client_id = ? WHERE id = 1", (PLAIN,))
        con.execute("UPDATE file SET bytes = ? WHERE path LIKE 'conversations/%'", (journal.stat().st_size,))


def test_a_released_step_stays_as_it_is() -> None:
    assert [name for name, _ in SCHEMA][:8] == [
        *("0001-baseline", "0002-recalls", "0003-notes", "0004-cached-tokens", "0005-keyed-identifiers"),
        *("0006-labels", "0007-vector-blocks", "0008-projects"),
    ]
    assert [step.name for step in STEPS][:4] == [
        *("0001-baseline", "0002-keyed-identifiers", "0003-labels", "0004-projects"),
    ]
