"""Ids of the personal memory are marked, and nothing else is changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.personal_ids import by_memory, mark_answer, mark_block, mark_id, mark_ids, marked_ids, unmarked
from mcp_memory.core.types import Forgotten
from mcp_memory.longterm.recall.line import RecallLine
from mcp_memory.longterm.recall.personal import mark_line

ids = st.from_regex(r"[at][1-9]\d{0,5}|r-[0-9a-f]{12}", fullmatch=True)


@given(st.lists(ids))
def test_a_marked_id_is_read_back(some: list[str]) -> None:
    text = " and ".join(some)
    assert marked_ids(mark_ids(text)) == some
    assert mark_ids(mark_ids(text)) == mark_ids(text)
    assert unmarked(map(mark_id, some)) == some
    assert unmarked(some) == []
    assert [id for part in by_memory([*map(mark_id, some), *some]) for id in part] == [*some, *map(mark_id, some)]


@given(st.text())
def test_only_marks_are_added(text: str) -> None:
    assert mark_ids(text).replace("personal:", "") == text.replace("personal:", "")


def test_the_head_of_a_line_is_marked_and_its_words_are_not() -> None:
    line = RecallLine(
        group="maybe", id="t9", text="[t9 Anna · changed 2026-05-07, see t12] the t3 instance [a5]", session="s",
        newer="t12", former="[t9 3 March] the t3 instance",
    )  # fmt: skip
    marked = mark_line(line)
    assert marked.text == "[personal:t9 Anna · changed 2026-05-07, see personal:t12] the t3 instance [a5]"
    assert marked.former == "[personal:t9 3 March] the t3 instance"
    assert (marked.id, marked.newer, marked.beside, marked.session) == (
        "personal:t9",
        "personal:t12",
        None,
        "personal:s",
    )
    scene = mark_line(RecallLine(group="scene", id="boats", text="[scene boats 2026-05-07] Boats: all about boats"))
    assert scene.text == "[scene personal:boats 2026-05-07] Boats: all about boats"


def test_a_block_names_its_memory_in_the_tag() -> None:
    block = '<mcp-memory-recall part="stable">\nAlways:\n- greet (a1, a2)\n[t7] a > b (a lot)\n</mcp-memory-recall>'
    assert mark_block(block) == (
        '<mcp-memory-recall part="stable" memory="personal">\nAlways:\n- greet (personal:a1, personal:a2)\n'
        "[personal:t7] a > b (a lot)\n</mcp-memory-recall>"
    )
    assert mark_block("") == ""


def test_an_answer_has_marked_ids_and_its_own_words() -> None:
    answer = Forgotten(
        ids=["a1", "r-9f2c1a7b3d4e"], tombstone="x1", dry_run=False, undone=False, previews=["a1: the t3 instance"]
    )
    assert mark_answer(answer) == Forgotten(
        ids=["personal:a1", "personal:r-9f2c1a7b3d4e"],
        tombstone="personal:x1",
        dry_run=False,
        undone=False,
        previews=["a1: the t3 instance"],
    )
