"""The index of tool results: what waits, what is found, and what is gone at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import apsw
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import Citation, Evidence, NewTurn
from mcp_memory.store.citations import NamedResult, address, find_results
from mcp_memory.store.protocol import EmbeddedStore, Store
from mcp_memory.store.sql import atom_rows, evidence_rows, ref_rows, tombstone_rows, turn_rows, word_index
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Filters, NewAtom, NewChunk, NewRef

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
RAW = b"alpha one\nbeta two\ngamma three\n"
PARTS = [
    NewChunk(lines=(1, 1), span=(0, 10), text="alpha one"),
    NewChunk(lines=(2, 2), span=(10, 19), text="beta two"),
    NewChunk(lines=(3, 3), span=(19, 31), text="gamma three"),
]


def kept(store: Store, data: bytes = RAW, *, space: str = "me", session: str = "s", at: datetime = NOW) -> str:
    new = NewRef(
        data=data,
        tool="shell",
        arguments={"command": "---\n"},
        tool_call_id=None,
        session=session,
        timestamp=at,
        content_type="text/plain",
    )
    return store.write(space, ref_rows.put, new).id


def indexed(store: Store, *, space: str = "me") -> str:
    ref = kept(store, space=space)
    assert store.write(
        space, word_index.put_chunks, ref, PARTS, word_index.terms_of_chunks(PARTS), start=0, complete=True
    )
    return ref


def found(store: Store, term: str, *, space: str = "me", filters: Filters | None = None) -> list[bytes]:
    rows = [row for one in store.postings(space, "chunk", [term], filters=filters or Filters()) for row in one.rows]
    return [data for _, data in store.read(space, word_index.chunks_by_id, [f"c{row}" for row in rows])]


def test_a_result_waits_until_its_last_lines_are_in_the_index(store: Store) -> None:
    ref = kept(store)
    assert store.write(
        "me", word_index.put_chunks, ref, PARTS[:2], word_index.terms_of_chunks(PARTS[:2]), start=0, complete=False
    )
    waiting = store.read("me", word_index.unindexed_ref)
    assert waiting is not None
    assert (waiting.ref, waiting.start, store.index_progress().unindexed_refs) == (ref, 19, 1)
    assert store.write(
        "me", word_index.put_chunks, ref, PARTS[2:], word_index.terms_of_chunks(PARTS[2:]), start=19, complete=True
    )
    assert (store.read("me", word_index.unindexed_ref), store.index_progress().unindexed_refs) == (None, 0)


def test_lines_are_found_by_their_words_in_their_space_alone(store: Store) -> None:
    indexed(store)
    indexed(store, space="you")
    assert found(store, "beta") == [b"beta two\n"]
    assert found(store, "beta", space="nobody") == []
    assert found(store, "delta") == []


def test_lines_pass_filters_of_session_and_time(store: Store) -> None:
    indexed(store)
    before, after = datetime(2026, 11, 19, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)
    for passing in (Filters(since=before), Filters(until=after), Filters(as_of=NOW)):
        assert found(store, "beta", filters=passing) == [b"beta two\n"]
    for keeping_out in (Filters(since=after), Filters(until=before), Filters(as_of=before), Filters(session="s")):
        assert found(store, "beta", filters=keeping_out) == []  # no record says that it was taken in this session


def test_lines_that_do_not_follow_what_is_there_are_refused(store: Store) -> None:
    ref = kept(store)
    assert not store.write(
        "me", word_index.put_chunks, ref, PARTS[1:], word_index.terms_of_chunks(PARTS[1:]), start=10, complete=True
    )
    assert store.write(
        "me", word_index.put_chunks, ref, PARTS[:1], word_index.terms_of_chunks(PARTS[:1]), start=0, complete=False
    )
    assert not store.write(
        "me", word_index.put_chunks, ref, PARTS[:1], word_index.terms_of_chunks(PARTS[:1]), start=0, complete=False
    )
    assert store.write(
        "me", word_index.put_chunks, ref, PARTS[1:], word_index.terms_of_chunks(PARTS[1:]), start=10, complete=True
    )
    assert not store.write(
        "me", word_index.put_chunks, ref, [], word_index.terms_of_chunks([]), start=31, complete=True
    )
    assert [data for term in ("one", "two", "three") for data in found(store, term)] == RAW.splitlines(keepends=True)


def test_a_forgotten_result_is_out_of_the_index_at_once_and_waits_again_when_it_comes_back(store: Store) -> None:
    ref = indexed(store)
    tombstone = store.write("me", tombstone_rows.forget, [ref], reason="", now=NOW).id
    assert (found(store, "beta"), store.index_progress().unindexed_refs) == ([], 0)
    assert not store.write(
        "me", word_index.put_chunks, ref, PARTS, word_index.terms_of_chunks(PARTS), start=0, complete=True
    )
    store.write("me", tombstone_rows.undo, tombstone, now=NOW)
    assert (found(store, "beta"), store.index_progress().unindexed_refs) == ([], 1)
    assert store.write(
        "me", word_index.put_chunks, ref, PARTS, word_index.terms_of_chunks(PARTS), start=0, complete=True
    )
    assert found(store, "beta") == [b"beta two\n"]


def test_lines_with_terms_of_an_earlier_version_are_indexed_anew(home: Path) -> None:
    store = open_store(home)
    ref = indexed(store)
    store.close()
    con = apsw.Connection(str(home / "memory.db"))
    con.execute("UPDATE ref SET indexed = 1")
    con.close()
    store = open_store(home)
    waiting = store.read("me", word_index.unindexed_ref)
    assert waiting is not None
    assert waiting.start == 0
    assert store.write(
        "me", word_index.put_chunks, ref, PARTS, word_index.terms_of_chunks(PARTS), start=0, complete=True
    )
    assert found(store, "beta") == [b"beta two\n"]
    store.close()


def test_lines_whose_file_is_lost_or_torn_are_left_out(embedded: EmbeddedStore) -> None:
    ref = indexed(embedded)
    path = embedded.folder("me") / embedded.read("me", ref_rows.by_id, ref).path
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert found(embedded, "beta") == []
    path.unlink()
    assert found(embedded, "beta") == []
    path.write_bytes(whole)
    assert found(embedded, "beta") == [b"beta two\n"]


def test_what_passes_is_left_for_another_time(store: Store) -> None:
    first, second = kept(store), kept(store, b"other")
    waiting = store.read("me", word_index.unindexed_ref, passing=[first])
    assert waiting is not None
    assert waiting.ref == second
    assert store.read("me", word_index.unindexed_ref, passing=[first, second]) is None


# --- who names a result -----------------------------------------------------------------------------


@given(
    st.from_regex(r"\Ar-[0-9a-f]{12}\Z"),
    st.none() | st.tuples(st.integers(1, 10**8), st.integers(0, 10**4)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    st.sampled_from(["{}", "see {}.", "({})", "from {}, line", "`{}`", "在{}里"]),
)
def test_an_address_is_read_out_of_a_text_as_it_was_written(ref: str, lines: tuple[int, int] | None, text: str) -> None:
    assert find_results(text.format(address(ref, lines))) == [NamedResult(ref, lines)]


@given(st.text())
def test_any_text_can_be_read_for_names(text: str) -> None:
    assert all(one.target for one in find_results(text))


def test_what_only_looks_like_a_name_is_none() -> None:
    assert find_results("user-9f2c1a7b3d4e over-N4 r-9f2c 12-N4 xr-9f2c1a7b3d4e r-9f2c1a7b3d4eg 003-N4x") == []


def said(store: Store, content: str) -> str:
    return (
        store.write(
            "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="assistant", content=content)]), now=NOW
        )
        .stored[0]
        .id
    )


def told(store: Store, text: str, **more: object) -> str:
    atom = NewAtom(kind="persona", text=text, priority=50, confidence=1.0, session="s", valid_from=NOW, **more)  # type: ignore[arg-type]
    return store.write("me", atom_rows.add, atom, now=NOW).atom.id


def test_a_turn_cites_the_results_that_it_names_and_that_are_there(store: Store) -> None:
    ref = kept(store)
    turn = said(store, f"As {ref}:2-3 and {ref} show; r-000000000000 is not there.")
    assert store.read("me", evidence_rows.citations, [turn]) == {
        turn: [Citation(source=turn, ref=ref, lines=None), Citation(source=turn, ref=ref, lines=(2, 3))]
    }
    assert store.read("you", evidence_rows.citations, [turn]) == {}


def test_an_atom_cites_what_it_was_told_to_and_what_its_turns_name(store: Store) -> None:
    ref = kept(store)
    turn = said(store, f"The build needs key 4, see {ref}:2.")
    words = Evidence(turn=turn, span=(0, 22), quote="The build needs key 4,")
    drawn = told(store, "The build needs key 4", evidence=(words,))
    by_hand = told(store, "Key 4 is set", cites=[f"{ref}:1"])
    assert store.read("me", evidence_rows.citations, [drawn, by_hand]) == {
        drawn: [Citation(source=turn, ref=ref, lines=(2, 2))],
        by_hand: [Citation(source=by_hand, ref=ref, lines=(1, 1))],
    }
    assert [(one.source, one.lines) for one in store.read("me", evidence_rows.cited_by, ref)] == [
        (by_hand, (1, 1)),
        (turn, (2, 2)),
        (drawn, (2, 2)),
    ]


def test_saying_the_same_again_adds_what_it_rests_on(store: Store) -> None:
    ref = kept(store)
    first = told(store, "Key 4 is set")
    assert told(store, "Key 4 is set", cites=[ref]) == first
    assert store.read("me", evidence_rows.citations, [first]) == {first: [Citation(source=first, ref=ref, lines=None)]}


def test_what_is_told_to_rest_on_is_kept_with_the_note(embedded: EmbeddedStore) -> None:
    ref = kept(embedded)
    told(embedded, "Key 4 is set", cites=[ref])
    (journal,) = (embedded.folder("me") / "conversations").glob("*.jsonl")
    assert json.loads(journal.read_text().splitlines()[-1])["told"]["cites"] == [ref]


def test_a_forgotten_result_or_turn_cites_nothing(store: Store) -> None:
    ref = kept(store)
    turn = said(store, f"See {ref}.")
    tombstone = store.write("me", tombstone_rows.forget, [ref], reason="", now=NOW).id
    assert store.read("me", evidence_rows.citations, [turn]) == {}
    store.write("me", tombstone_rows.undo, tombstone, now=NOW)
    assert list(store.read("me", evidence_rows.citations, [turn])) == [turn]
    store.write("me", tombstone_rows.forget, [turn], reason="", now=NOW)
    assert store.read("me", evidence_rows.cited_by, ref) == []
