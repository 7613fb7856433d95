"""`<private>` passages are kept out of everything that is stored, logged or searched for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private_passages import without_private, without_private_parts
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory
from mcp_memory.testing import HashEmbedder


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("My pin is <private>1234</private>.", "My pin is [private]."),
        ("<private>all of it</private>", ""),
        ("a <PRIVATE >b</ private> c", "a [private] c"),
        ("a <private>b <private>c</private> d</private> e", "a [private] e"),
        ("a <private>b <private>c</private> d", "a [private]"),
        ("a <private>b\n\nc", "a [private]"),
        ("```\n<private>\nkey\n</private>\n```\nz", "```\n[private]\n```\nz"),
        ("Does `<private>` hide it? <private>x</private>", "Does `<private>` hide it? [private]"),
        ("Write `<private>` and `</private>` around it", "Write `<private>` and `</private>` around it"),
        ("<private> a `</private>` b </private> c", "[private] c"),
        ("a private matter, <privateer>, </private>", "a private matter, <privateer>, </private>"),
        ("a </private> b <private>c</private> d", "a </private> b [private] d"),
    ],
)
def test_a_private_passage_is_replaced(text: str, kept: str) -> None:
    assert without_private(text) == kept


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        (["open <private>", "secret", "</private> end"], ["open [private]", "", " end"]),
        (["open <private>secret", "more", "even more"], ["open [private]", "", ""]),
        (["<private>a", "b</private> c <private>d", "e</private>", "f"], ["", " c [private]", "", "f"]),
        (["<private>a <private>b", "c</private> d", "e</private> f"], ["", "", " f"]),
        (["Does `<private>` hide it?", "yes"], ["Does `<private>` hide it?", "yes"]),
        (["``` <private>", "secret ```"], ["``` [private]", ""]),
    ],
)
def test_a_private_passage_may_span_the_parts_of_a_message(parts: list[str], kept: list[str]) -> None:
    assert without_private_parts(parts) == kept


@given(
    st.lists(st.lists(st.sampled_from(["<private>", "</private>", "\n", "word "]), max_size=6).map("".join), max_size=5)
)
def test_a_message_keeps_the_same_words_however_it_is_split(parts: list[str]) -> None:
    together, apart = without_private("\n".join(parts)), without_private_parts(parts)
    assert "\n".join(apart).replace("[private]", " ").split() == together.replace("[private]", " ").split()


@given(st.lists(st.sampled_from(["<private>", "</private>", "`", "\n", "word "]), max_size=12).map("".join))
def test_what_is_kept_has_nothing_more_to_keep_out(text: str) -> None:
    assert without_private(without_private(text)) == without_private(text)


async def test_no_file_of_the_home_and_no_embedding_has_a_private_passage(home: Path) -> None:
    embedder = HashEmbedder()
    async with open_memory(home=home, embedder=embedder, log_contents=True) as memory:
        turns = [
            NewTurn(role="user", content="I live in Bergen. <private>My pin is kittiwake-77.</private>"),
            NewTurn(role="assistant", content="Noted. <private>kittiwake-77</private>", name="<private>kittiwake-77"),
            NewTurn(role="user", content="<private>kittiwake-77"),
        ]
        done = await memory.record_turns(turns, session="s")
        assert (done.stored, done.emptied) == (["t1", "t2"], 1)
        await memory.remember("The user lives in Bergen. <private>kittiwake-77</private>")
        with pytest.raises(InvalidInput, match="nothing to remember"):
            await memory.remember("<private>kittiwake-77</private>")
        await memory.recall("Where do I live? <private>kittiwake-77</private>", session="s")
        await memory.recall_beyond("Where do I live? <private>kittiwake-77</private>", known="", session="t")
        await memory.conversation_search("Bergen <private>kittiwake-77</private>")
        hidden = "<private>kittiwake-77</private>"
        first = await memory.offload_tool_result(
            "bash", "a\n" * 400, task=f"Open it {hidden}", step=f"Ask {hidden}", summary=f"Asked {hidden}"
        )
        assert (first.task, first.summary) == ("open-it-private", "Asked [private]")
        after, only = [f"{first.node} if {hidden}"], "<private>kittiwake-77"
        await memory.offload_tool_result("bash", "b\n" * 400, after=after, task=only, step=only, summary=only)
        await memory.forget(["t1"], reason=f"moved {hidden}")
        await memory.pause(f"tired {hidden}")
    stored = [path for path in home.rglob("*") if path.is_file() and b"kittiwake" in path.read_bytes()]
    assert stored == []
