"""The sentence reader on a real store, with the bundled models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import Atom, NewTurn
from mcp_memory.longterm import reader
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, sentence_rows, turn_rows
from mcp_memory.store.values import Filters, Vectors
from tests.longterm.by_hand import search_context, statement, vectors_of

NOW = datetime(2026, 5, 7, 12, 0, tzinfo=UTC)
WEEK = timedelta(days=7)
SURGERY = "The cataract operation on my left eye is on the 19th of May in Hereford."
MOVED = "The operation on my left eye is moved to the 9th of June, the surgeon is on leave."


@pytest.fixture
def context(store: Store, home: Path) -> SearchContext:
    def of_rows(texts: Sequence[str]) -> Vectors | None:
        return vectors_of(*texts) if texts else None

    return search_context(store, Search(store, lambda: NOW), now=NOW, settings=Settings(home=home), of_rows=of_rows)


def say(store: Store, *said: str, session: str = "s", at: datetime = NOW, **fields: Any) -> None:
    turns = [NewTurn(role="user", content=text, said_at=at, **fields) for text in said]
    store.write("me", turn_rows.append, session, turn_rows.prepare(turns), now=at)


def read(context: SearchContext, *, going_on: Callable[[], bool] = lambda: True) -> bool:
    turns = context.store.read(context.space, sentence_rows.unread_turns, limit=20)
    return bool(turns) and reader.read(context, turns, going_on=going_on)


def statements(store: Store) -> list[Atom]:
    found = store.read("me", atom_rows.list_atoms, filters=Filters(ended=True), limit=100)
    return sorted(found, key=lambda atom: int(atom.id[1:]))


def test_lasting_sentences_become_statements_and_small_talk_does_not(store: Store, context: SearchContext) -> None:
    trait = "I am a geography teacher and live in Oslo with my two cats."
    say(store, "haha thanks!", f"{trait} what do you think?", "Never use emoji in mails.")
    assert read(context)
    assert not read(context)
    assert [(one.text, one.label, one.is_sentence) for one in statements(store)] == [
        (trait, "trait", True),
        ("Never use emoji in mails.", "rule", True),
    ]


def test_a_batch_that_ended_before_its_commit_is_read_again_without_doubles(
    store: Store, context: SearchContext
) -> None:
    say(store, "I am a geography teacher and live in Oslo with my two cats.")
    assert not read(context, going_on=lambda: False)
    assert statements(store) == []
    assert read(context)
    say(store, "I am a geography teacher and live in Oslo with my two cats.", session="again")
    assert read(context)
    assert [one.text for one in statements(store)] == ["I am a geography teacher and live in Oslo with my two cats."]


def test_a_newer_sentence_ends_the_older_one_in_one_batch_and_in_two(store: Store, context: SearchContext) -> None:
    say(store, SURGERY)
    say(store, MOVED, session="later", at=NOW + WEEK)
    assert read(context)
    old, new = statements(store)
    assert (old.superseded_by, old.valid_to, new.valid_to) == (new.id, NOW + WEEK, None)
    say(store, "The left eye operation is now on the 16th of June instead.", session="last", at=NOW + 2 * WEEK)
    assert read(context)
    assert [one.valid_to is None for one in statements(store)] == [False, False, True]


def test_a_sentence_ends_nothing_that_was_stored_on_purpose(store: Store, context: SearchContext) -> None:
    store.write(
        "me", atom_rows.add, statement(SURGERY, kind="episodic", valid_from=NOW), now=NOW, vectors=vectors_of(SURGERY)
    )
    say(store, MOVED, session="later", at=NOW + WEEK)
    assert read(context)
    assert [one.valid_to for one in statements(store)] == [None, None]


def test_what_others_say_in_a_group_is_not_the_users(store: Store, context: SearchContext) -> None:
    say(store, "I live in Oslo and I am allergic to nuts.")
    say(store, "I live in Bergen and I am allergic to milk.", name="Bruno")
    assert read(context)
    assert [one.text for one in statements(store)] == ["I live in Oslo and I am allergic to nuts."]


def test_the_first_speaker_of_a_group_is_not_taken_for_the_user(store: Store, context: SearchContext) -> None:
    say(store, "I live in Bergen and I am allergic to milk.", name="Bruno")
    assert read(context)
    say(store, "I live in Oslo and I am allergic to nuts.", name="Lena")
    assert read(context)
    assert statements(store) == []


def test_a_turn_under_a_name_that_the_user_has_given_is_theirs(store: Store, context: SearchContext) -> None:
    say(store, "Hello! My name is Lena and I live in Leeds with my two cats.", session="private")
    assert read(context)
    say(store, "I am a nurse and I am allergic to nuts.", name="Lena")
    say(store, "I live in Bergen and I am allergic to milk.", name="Bruno")
    assert read(context)
    assert [one.text for one in statements(store)][1:] == ["I am a nurse and I am allergic to nuts."]


def test_a_question_of_a_quarantined_turn_is_not_quoted(store: Store, context: SearchContext) -> None:
    question = NewTurn(role="assistant", content="Where do you live?", said_at=NOW, held=("order",))
    store.write("me", turn_rows.append, "s", turn_rows.prepare([question]), now=NOW)
    say(store, "In Oslo harbour, I live there with my two cats.")
    assert read(context)
    assert [one.text for one in statements(store)] == ["In Oslo harbour, I live there with my two cats."]


def test_a_known_entity_that_a_sentence_names_is_its_entity(store: Store, context: SearchContext) -> None:
    say(store, "My daughter Fiona works as a nurse in Leeds.")
    assert read(context)
    say(store, "Fiona is allergic to nuts and hates the sea.", session="later")
    assert read(context)
    assert [one.entities for one in statements(store)] == [("Fiona", "Leeds", "user"), ("Fiona",)]


def test_a_part_of_a_known_name_is_the_same_entity_and_lower_case_counts(store: Store, context: SearchContext) -> None:
    say(store, "Our designer is Wouter Coussement, he works from Ledeberg on Mondays.")
    assert read(context)
    say(store, "Wouter needs the new logo until friday.", session="later")
    say(store, "I moved to ledeberg last year with my two cats.", session="last")
    assert read(context)
    entities = [atom.entities for atom in statements(store)]
    assert entities == [("Wouter Coussement", "Ledeberg"), ("Wouter Coussement",), ("Ledeberg",)]


def test_the_users_own_name_and_languages_are_no_entities(store: Store, context: SearchContext) -> None:
    say(store, "My name is Anna Petkova and I teach English in Leeds.", "My students call me Anna at school in Leeds.")
    assert read(context)
    assert {name for atom in statements(store) for name in atom.entities} == {"user", "Leeds"}


def test_reading_goes_on_without_vectors(store: Store, context: SearchContext) -> None:
    say(store, SURGERY, MOVED)

    def no_vectors(texts: Sequence[str]) -> None:
        return None

    assert read(replace(context, of_rows=no_vectors))
    assert [one.valid_to for one in statements(store)] == [None, None]


def test_a_turn_that_cannot_be_read_is_skipped_and_those_around_it_are_read(
    store: Store, context: SearchContext, caplog: pytest.LogCaptureFixture
) -> None:
    say(store, "I am a geography teacher and live in Oslo.", "Never use emoji in mails.", "I sing in a choir in Leeds.")

    def failing(texts: Sequence[str]) -> Vectors | None:
        if any("emoji" in text for text in texts):
            raise ValueError(texts)
        return context.of_rows(texts)

    failing_once = replace(context, of_rows=failing)
    assert read(failing_once)
    assert not read(failing_once)
    assert [one.text for one in statements(store)] == [
        "I am a geography teacher and live in Oslo.", "I sing in a choir in Leeds.",
    ]  # fmt: skip
    assert [record.getMessage() for record in caplog.records] == ["the sentence reader skips turn t2: ValueError"]


def test_a_turn_waits_while_the_store_cannot_be_used(store: Store, context: SearchContext) -> None:
    say(store, "I am a geography teacher and live in Oslo.")

    def locked(texts: Sequence[str]) -> Vectors | None:
        raise StoreUnavailable("The database is locked.")

    with pytest.raises(StoreUnavailable):
        read(replace(context, of_rows=locked))
    assert read(context)
    assert len(statements(store)) == 1
