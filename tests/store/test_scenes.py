"""Scenes in the store: edits that land together, versions, and files that follow the rows whatever happens to them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import Scene
from mcp_memory.store.citations import scene_without
from mcp_memory.store.protocol import EmbeddedStore, Store
from mcp_memory.store.sql import atom_rows, home_rows, job_rows, page_rows, stage_outputs, tombstone_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Conflict, NewAtom, SceneChanges, SceneEdit
from tests.store.embedded import problems

NOW = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=1)

MADE = SceneEdit(
    action="create",
    slug="hafenstraße",
    reason="a new theme",
    title="The flat in 海港街",
    summary='Maya\'s flat: "small",\u2028bright',
    body="## Now\n\n- She lives there (a1).",
    heat=1,
    atoms=("a1",),
    entities=("Otto", "海港街"),
)


def commit(store: Store, *edits: SceneEdit, now: datetime = NOW) -> None:
    store.write("s", stage_outputs.commit, None, SceneChanges(edits=edits, upto=0), outcome={}, now=now)


def edit(action: str, slug: str = MADE.slug, **changes: object) -> SceneEdit:
    return replace(MADE, action=action, slug=slug, **changes)  # pyright: ignore[reportArgumentType]


def file_of(store: EmbeddedStore, slug: str = MADE.slug) -> Path:
    return store.folder("s") / "scenes" / f"{slug}.md"


def names(store: EmbeddedStore) -> list[str]:
    return sorted(path.name for path in (store.folder("s") / "scenes").iterdir())


def test_a_scene_reads_back_as_it_was_made(store: Store) -> None:
    commit(store, MADE)
    made = Scene(
        slug="hafenstraße",
        title="The flat in 海港街",
        summary=MADE.summary,
        body=MADE.body,
        heat=1,
        atoms=("a1",),
        entities=("Otto", "海港街"),
        version=1,
        action="create",
        reason="a new theme",
        created=NOW,
        updated=NOW,
    )
    assert (store.read("s", page_rows.scenes), store.read("s", page_rows.scene_versions, made.slug)) == ([made], [made])
    assert (store.read("other", page_rows.scenes), store.read("other", page_rows.scene_versions, made.slug)) == ([], [])


def test_its_file_is_front_matter_that_yaml_reads_over_markdown(embedded: EmbeddedStore) -> None:
    commit(embedded, MADE)
    _, head, page = file_of(embedded).read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(head) == {
        "created": "2026-05-07T10:00:00.000+00:00",
        "updated": "2026-05-07T10:00:00.000+00:00",
        "summary": MADE.summary,
        "heat": 1,
        "entities": ["Otto", "海港街"],
        "atoms": ["a1"],
    }
    assert page == "\n# The flat in 海港街\n\n## Now\n\n- She lives there (a1).\n"


def test_the_hottest_stand_first_and_then_the_newest(store: Store) -> None:
    commit(store, edit("create", "b"), edit("create", "a"), edit("create", "hot", heat=7))
    commit(store, edit("create", "new"), now=LATER)
    assert [scene.slug for scene in store.read("s", page_rows.scenes)] == ["hot", "new", "a", "b"]


def test_versions_are_kept_and_the_newest_stands(store: Store) -> None:
    commit(store, MADE)
    commit(store, edit("update", body="- She moved (a2).", atoms=("a2",), heat=2, reason="moved"), now=LATER)
    (stands,) = store.read("s", page_rows.scenes)
    first, second = reversed(store.read("s", page_rows.scene_versions, MADE.slug))
    assert stands == second
    assert (first.body, second.body) == (MADE.body, "- She moved (a2).")
    assert (second.version, second.created, second.updated, second.heat) == (2, NOW, LATER, 2)
    assert problems(store) == []


def test_a_deleted_scene_is_gone_and_can_be_restored(store: Store) -> None:
    commit(store, MADE)
    commit(store, SceneEdit(action="delete", slug=MADE.slug, reason="told elsewhere"), now=LATER)
    assert store.read("s", page_rows.scenes) == []
    assert [(one.action, one.title) for one in store.read("s", page_rows.scene_versions, MADE.slug)] == [
        ("delete", MADE.title),
        ("create", MADE.title),
    ]
    commit(store, edit("restore"), now=LATER)
    (back,) = store.read("s", page_rows.scenes)
    assert (back.version, back.body, back.created) == (3, MADE.body, NOW)


def test_the_file_of_a_deleted_scene_is_gone_until_it_is_restored(embedded: EmbeddedStore) -> None:
    commit(embedded, MADE)
    commit(embedded, SceneEdit(action="delete", slug=MADE.slug, reason="told elsewhere"), now=LATER)
    assert names(embedded) == []
    commit(embedded, edit("restore"), now=LATER)
    assert names(embedded) == [f"{MADE.slug}.md"]


def test_a_name_that_was_deleted_can_be_given_to_a_new_scene(store: Store) -> None:
    commit(store, MADE)
    commit(store, SceneEdit(action="delete", slug=MADE.slug, reason="r"))
    commit(store, edit("create", body="- Another (a9)."), now=LATER)
    (scene,) = store.read("s", page_rows.scenes)
    assert (scene.version, scene.created, scene.body) == (3, LATER, "- Another (a9).")


def test_a_merge_makes_its_scene_or_takes_the_place_of_one(store: Store) -> None:
    commit(store, edit("create", "a"), edit("create", "b"))
    commit(store, edit("merge", "b", heat=3), edit("delete", "a"), edit("merge", "c"))
    assert [(scene.slug, scene.version) for scene in store.read("s", page_rows.scenes)] == [("b", 2), ("c", 1)]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (edit("create"), InvalidInput),
        (edit("update", "missing"), NotFound),
        (edit("delete", "missing"), NotFound),
        (edit("restore", "missing"), NotFound),
        (edit("create", "con"), InvalidInput),
        (edit("create", "../persona"), InvalidInput),
        (edit("create", "a/b"), InvalidInput),
        (edit("create", ""), InvalidInput),
        (edit("update", version=7), Conflict),
        (edit("restore", "missing", version=1), Conflict),
    ],
)
def test_one_edit_that_cannot_be_leaves_all_of_them_undone(
    store: Store, wrong: SceneEdit, error: type[Exception]
) -> None:
    commit(store, MADE)
    before = store.read("s", page_rows.scenes), store.read("s", home_rows.last_change)
    with pytest.raises(error):
        commit(store, edit("create", "fine"), edit("update", body="changed"), wrong)
    assert (store.read("s", page_rows.scenes), store.read("s", home_rows.last_change)) == before
    commit(store)
    assert (store.read("s", page_rows.scenes), problems(store)) == (before[0], [])


def test_an_edit_made_from_the_version_that_stands_lands(store: Store) -> None:
    commit(store, MADE)
    commit(store, edit("update", body="- New (a2).", version=1))
    assert [scene.body for scene in store.read("s", page_rows.scenes)] == ["- New (a2)."]


def test_who_watches_a_scene_or_the_page_above_is_told(store: Store) -> None:
    commit(store, MADE)
    before = store.read("s", home_rows.last_change)
    commit(store, edit("create", "other"), edit("update"))
    assert {change.topic for change in store.read("s", home_rows.changes, before)} == {
        "persona",
        f"scene:{MADE.slug}",
        "scene:other",
    }


def test_a_commit_of_a_work_moves_the_cursor_and_asks_for_the_persona(store: Store) -> None:
    def take() -> str:
        work = store.write("s", job_rows.lease, "scenes", None, "{}", holder="me", lease=timedelta(hours=1), now=NOW)
        assert work is not None
        return work.id

    work = take()
    store.write(
        "s",
        stage_outputs.commit,
        work,
        SceneChanges(edits=[MADE], upto=12, wanted="new name"),
        outcome={"created": 1},
        now=NOW,
    )
    states = store.read("s", job_rows.stage_states)
    assert (states["scenes"].position, states["scenes"].at, states["persona"].wanted) == (12, NOW, "new name")
    with pytest.raises(Conflict):
        store.write(
            "s",
            stage_outputs.commit,
            work,
            SceneChanges(edits=[edit("update", body="late")], upto=13),
            outcome={},
            now=NOW,
        )
    assert [scene.body for scene in store.read("s", page_rows.scenes)] == [MADE.body]
    store.write("s", stage_outputs.commit, take(), SceneChanges(edits=[], upto=13), outcome={}, now=LATER)
    assert [(done.stage, done.works, done.outcome) for done in store.read("s", job_rows.stage_totals)] == [
        ("scenes", 2, {"created": 1})
    ]


# --- files ------------------------------------------------------------------------------------------


def test_files_that_were_lost_or_changed_are_named_and_the_next_commit_writes_them(embedded: EmbeddedStore) -> None:
    commit(embedded, MADE, edit("create", "b"), edit("create", "c"))
    sound = {name: (embedded.folder("s") / "scenes" / name).read_bytes() for name in names(embedded)}
    file_of(embedded).unlink()
    file_of(embedded, "b").write_text("scribbled over")
    file_of(embedded, "notes").write_text("mine")
    mended = "`mcp-memory doctor --repair` writes it from the database."
    assert list(embedded.problems()) == [
        f"s: scenes/b.md is not what the database has; {mended}",
        f"s: scenes/{MADE.slug}.md is missing; {mended}",
    ]
    commit(embedded)
    assert (list(embedded.problems()), names(embedded)) == ([], sorted([*sound, "notes.md"]))
    assert {name: (embedded.folder("s") / "scenes" / name).read_bytes() for name in sound} == sound


def test_a_file_that_cannot_be_written_is_named_and_written_by_the_next_transaction(embedded: EmbeddedStore) -> None:
    commit(embedded, MADE)
    file_of(embedded, "blocked").mkdir()
    commit(embedded, edit("create", "blocked"), edit("update", body="changed"))
    assert {scene.body for scene in embedded.read("s", page_rows.scenes) if scene.slug == MADE.slug} == {"changed"}
    assert [problem.partition(";")[0] for problem in embedded.problems()] == ["s: scenes/blocked.md is not a file"]
    file_of(embedded, "blocked").rmdir()
    embedded.write("s", job_rows.flush, "c")
    assert list(embedded.problems()) == []


KILLED = """
import os, sys
from datetime import datetime, UTC
from pathlib import Path
from mcp_memory.store import files
from mcp_memory.store.sql import stage_outputs
from mcp_memory.store.values import SceneChanges, SceneEdit
from mcp_memory.store.sqlite.store import open_store

left = int(sys.argv[2])
whole = files.write_whole

def dying(path, data, **options):
    global left
    if not left:
        os._exit(9)
    left -= 1
    whole(path, data, **options)

store = open_store(Path(sys.argv[1]))
files.write_whole = dying
make = lambda slug, action: SceneEdit(action=action, slug=slug, reason="r", title=slug, body="- Second (a2).")
edits = [make("kept", "update"), make("gone", "delete"), make("new", "create"), make("newer", "create")]
store.write("s", stage_outputs.commit, None, SceneChanges(edits=edits), outcome={}, now=datetime(2026, 5, 8, tzinfo=UTC))
os._exit(0)
"""


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_copies_that_a_killed_process_did_not_write_are_written_at_the_next_opening(
    embedded: EmbeddedStore, home: Path, writes: int
) -> None:
    commit(embedded, edit("create", "kept"), edit("create", "gone"))
    before = embedded.read("s", page_rows.scenes)
    died = subprocess.run([sys.executable, "-c", KILLED, str(home), str(writes)], check=False)
    assert (died.returncode == 0) == (writes == 3)
    assert embedded.read("s", page_rows.scenes) != before
    open_store(home).close()
    assert names(embedded) == ["kept.md", "new.md", "newer.md"]
    assert list(embedded.problems()) == []


# --- what is forgotten ------------------------------------------------------------------------------


def told(store: Store, *texts: str) -> list[str]:
    """Have the store hold these statements, and return their ids."""
    return [
        store.write(
            "s",
            atom_rows.add,
            NewAtom(kind="persona", text=text, priority=70, confidence=1, session="c", valid_from=NOW),
            now=NOW,
        ).atom.id
        for text in texts
    ]


def test_what_is_forgotten_leaves_the_file_at_once_and_comes_back_when_undone(embedded: EmbeddedStore) -> None:
    flat, illness = told(embedded, "Maya lives in Porto.", "Maya has asthma.")
    body = f"## Now\n- Maya lives in Porto ({flat}).\n\n## Illness\n- Maya has asthma ({illness})."
    made = edit(
        "create", "maya", title="Maya", summary="Maya lives in Porto with asthma.", body=body, atoms=(flat, illness)
    )
    commit(embedded, made)
    before = file_of(embedded, "maya").read_bytes()
    tombstone = embedded.write("s", tombstone_rows.forget, [illness], reason="private", now=LATER)
    text = file_of(embedded, "maya").read_text(encoding="utf-8")
    assert [word for word in ("sthma", "Illness", illness) if word in text] == []
    assert (embedded.read("s", page_rows.scenes)[0].body, list(embedded.problems())) == (body, [])
    embedded.write("s", tombstone_rows.undo, tombstone.id, now=LATER)
    assert file_of(embedded, "maya").read_bytes() == before


def test_a_scene_of_which_all_is_forgotten_is_gone_until_that_is_undone(store: Store) -> None:
    (illness,) = told(store, "Maya has asthma.")
    commit(store, edit("create", "asthma", body=f"- Maya has asthma ({illness}).", atoms=(illness,)))
    tombstone = store.write("s", tombstone_rows.forget, [illness], reason="private", now=LATER)
    assert (store.read("s", page_rows.scenes), problems(store)) == ([], [])
    store.write("s", tombstone_rows.undo, tombstone.id, now=LATER)
    assert ([scene.slug for scene in store.read("s", page_rows.scenes)], problems(store)) == (["asthma"], [])


def test_the_file_of_a_scene_of_which_all_is_forgotten_is_gone_until_that_is_undone(embedded: EmbeddedStore) -> None:
    (illness,) = told(embedded, "Maya has asthma.")
    commit(embedded, edit("create", "asthma", body=f"- Maya has asthma ({illness}).", atoms=(illness,)))
    tombstone = embedded.write("s", tombstone_rows.forget, [illness], reason="private", now=LATER)
    assert names(embedded) == []
    embedded.write("s", tombstone_rows.undo, tombstone.id, now=LATER)
    assert names(embedded) == ["asthma.md"]


def test_a_scene_can_be_made_in_place_of_one_that_was_forgotten(store: Store) -> None:
    illness, walks = told(store, "Maya has asthma.", "Maya walks.")
    commit(store, edit("create", "health", body=f"- Asthma ({illness}).", atoms=(illness,)))
    store.write("s", tombstone_rows.forget, [illness], reason="private", now=LATER)
    commit(store, edit("create", "health", body=f"- She walks ({walks}).", atoms=(walks,)))
    assert [(scene.version, scene.body) for scene in store.read("s", page_rows.scenes)] == [
        (2, f"- She walks ({walks}).")
    ]


def test_a_title_and_a_summary_stay_only_as_far_as_what_is_left_says_the_same(store: Store) -> None:
    scene = Scene(
        slug="maya",
        title="Maya's asthma",
        summary="Maya lives in Porto and has asthma.",
        body="- Maya lives in Porto with [[Otto]] (a1).\n- Dr Weiss treats her asthma (a2).",
        heat=1,
        atoms=("a1", "a2"),
        entities=("Otto", "Dr Weiss"),
        version=1,
        action="create",
        reason="r",
        created=NOW,
        updated=NOW,
    )
    assert scene_without(scene, ["a9"]) == scene
    assert scene_without(scene, ["a2"]) == replace(
        scene,
        title="Otto",
        summary="Maya lives in Porto with Otto.",
        body="- Maya lives in Porto with [[Otto]] (a1).",
        atoms=("a1",),
        entities=("Otto",),
    )
    assert scene_without(scene, ["a1", "a2"]) == replace(
        scene,
        title="Nothing is left of it.",
        summary="Nothing is left of it.",
        body="",
        atoms=(),
        entities=(),
    )
    kept = replace(scene, title="Living in Porto", summary="Otto and Maya live in Porto.")
    assert (scene_without(kept, ["a2"]).title, scene_without(kept, ["a2"]).summary) == (kept.title, kept.summary)
