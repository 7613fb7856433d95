"""Home: the numbers of the status, what can be undone, and what only the owner of the machine sees."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock
from mcp_memory.ui.components import Page
from tests.ui.holding import at
from tests.ui.shown import Form, forms, links, send, text


@pytest.fixture
async def memory(memory: Memory) -> Memory:
    await memory.record_turns([NewTurn(role="user", content="I keep bees in Porto.")], session="s")
    await memory.remember("Keeps bees", session="s", entity="user", relation="keeps", value="bees", typed=True)
    return memory


async def home_page(memory: Memory, address: str = "/home", **more: Any) -> Page:
    return await at(memory, address, **{"is_owner": True, **more})


def actions(page: Page) -> list[str]:
    return [one.action for one in forms(page)]


def form_of(page: Page, action: str) -> Form:
    return next(one for one in forms(page) if one.action == action)


async def test_the_number_of_statements_that_ended_is_that_of_the_list_to_which_it_leads(memory: Memory) -> None:
    await memory.end_statement((await memory.remember("Maya rows.", valid_from="2019", typed=True)).atom.id)
    page = await home_page(memory)
    assert "1 no longer true" in text(page)
    listed = next(link for link in links(page) if "ended=only" in link)
    assert "1 statement" in text(await at(memory, listed))


async def test_the_numbers_are_those_of_the_status(memory: Memory) -> None:
    await memory.offload_tool_result("bash", "line\n" * 2_000, arguments={"command": "make"}, session="s")
    status, shown = await memory.status(), text(await home_page(memory))
    counts = status["counts"]
    assert (counts["turns"], counts["current"], counts["facts"], counts["records"]) == (1, 1, 1, 1)
    assert "1 message in 1 conversation" in shown
    assert "1 is true now" in shown
    assert "1 on 1 task · 10.0 kB" in shown
    for many in status["disk"]["kinds"].values():
        assert f"{many:,}" in shown
    assert f"{sum(status['disk']['kinds'].values()):,}" in shown
    assert status["version"] in shown
    assert status["schema"] in shown


async def test_what_was_forgotten_can_be_undone_and_erased(memory: Memory) -> None:
    await memory.forget(["t1"], reason="moved away")
    shown = await home_page(memory)
    assert "ForgottenI keep bees in Porto.20 Nov 2026moved away" in text(shown)
    undo = next(one for one in forms(shown) if one.action == "/do/undo")
    assert undo.values == {"form_token": ["t"], "tombstone": ["x1"], "back": ["/home"]}
    purge = next(one for one in forms(shown) if one.action == "/do/purge")
    assert (purge.values["tombstones"], purge.values["word"]) == (["x1"], [""])
    assert "Type PURGE to go on" in purge.words


async def test_forgotten_words_are_for_those_who_may_bring_them_back(memory: Memory) -> None:
    told = await memory.remember("The safe is behind the stove.", typed=True)
    await memory.forget([told.atom.id])
    assert "The safe is behind the stove." in text(await home_page(memory))
    assert "stove" not in text(await home_page(memory, right="read"))


async def test_what_was_brought_back_has_no_forms(memory: Memory) -> None:
    await memory.forget(["t1"])
    await memory.forget(undo="x1")
    shown = await home_page(memory)
    assert "brought back" in text(shown)
    assert not {"/do/undo", "/do/purge"} & set(actions(shown))


@pytest.mark.files
async def test_only_the_owner_sees_the_machine(memory: Memory, home: Path) -> None:
    await memory.create_token("laptop", right="read")
    other = memory.in_space("elsewhere")
    await other.record_turns([NewTurn(role="user", content="Hello.")], session="s")
    await memory.forget(["t1"])
    mine, theirs = await home_page(memory), await home_page(memory, is_owner=False)
    for words in ("laptop", "elsewhere", str(home), "On disk", "Backups"):
        assert words in text(mine), words
        assert words not in text(theirs), words
    assert set(actions(mine)) == {
        "/do/undo", "/do/purge", "/do/backup", "/do/create_token", "/do/revoke_token",
    }  # fmt: skip
    assert actions(theirs) == ["/do/undo"]


async def test_there_are_links_to_other_spaces(memory: Memory) -> None:
    await memory.in_space("work & play").record_turns([NewTurn(role="user", content="Hello.")], session="s")
    assert "/go?space=work+%26+play" in links(await home_page(memory))
    assert not [link for link in links(await home_page(memory, is_owner=False)) if link.startswith("/go")]


async def test_what_is_empty_is_left_out(memory: Memory) -> None:
    shown = text(await home_page(memory))
    for words in ("Other spaces", "Forgotten", "Connected", "Topics", "What needs you", "Signed in"):
        assert words not in shown, words


async def test_tokens_are_listed_made_and_revoked(memory: Memory) -> None:
    token, secret = await memory.create_token("laptop", right="read", expires=timedelta(days=9))
    gone, _ = await memory.create_token("old")
    await memory.revoke_token(gone.id)
    shown = await home_page(memory)
    assert "laptopdefaultreadnever29 Nov 2026" in text(shown)
    assert "olddefaultwriteneverrevoked 20 Nov 2026" in text(shown)
    assert secret.split("_", 2)[2] not in text(shown)
    assert [one.values["which"] for one in forms(shown) if one.action == "/do/revoke_token"] == [[token.id]]
    assert set(next(one for one in forms(shown) if one.action == "/do/create_token").values) == {
        "form_token", "name", "right", "days",
    }  # fmt: skip


@pytest.mark.files
async def test_backups_are_listed(memory: Memory) -> None:
    assert "A backup is a copy" in text(await home_page(memory))
    made = await memory.back_up()
    shown = text(await home_page(memory))
    assert made.path.name in shown
    assert "1 message · 1 statement · 0 results · 1 space" in shown


async def test_policies_say_what_they_will_take(memory: Memory) -> None:
    assert "Everything is kept until" in text(await home_page(memory))
    await memory.set_retention({"turns": 365})
    assert "Turns365 days00not yet" in text(await home_page(memory))


async def test_the_checks_run_where_they_are_asked_for(memory: Memory) -> None:
    assert "/home?check=1#checks" in links(await home_page(memory))
    shown = text(await home_page(memory, "/home?check=1"))
    assert "Compared with the words that were said: 1 statement · 1 quote · 1 message" in shown
    assert "Everything is in order." in shown


@pytest.mark.files
async def test_damage_is_named_by_the_checks(memory: Memory, home: Path) -> None:
    done = await memory.offload_tool_result("bash", "line\n" * 2_000, arguments={}, session="s")
    (path,) = (home / "spaces/default/refs").glob("*")
    path.chmod(0o600)
    path.write_bytes(b"other bytes")
    shown = text(await home_page(memory, "/home?check=1"))
    assert "These rows or files are damaged" in shown
    assert done.ref in shown
    assert "Everything is in order." not in shown


async def test_a_pause_is_told(memory: Memory) -> None:
    await memory.pause("saving tokens")
    assert "No model is asked now: saving tokens" in text(await home_page(memory))


@pytest.mark.files
async def test_the_forms_about_forgetting_do_what_they_say(memory: Memory) -> None:
    await memory.forget(["t1"])
    shown = await home_page(memory)
    with pytest.raises(InvalidInput, match="PURGE"):
        await send(memory, form_of(shown, "/do/purge"), word="purge")
    assert await send(memory, form_of(shown, "/do/undo")) == "/home"
    assert [turn.id for turn in await memory.turns(["t1"])] == ["t1"]
    await memory.forget(["t1"])
    assert await send(memory, form_of(await home_page(memory), "/do/purge"), word="PURGE") == "/home"
    assert "erased" in text(await home_page(memory))


async def test_the_forms_about_tokens_do_what_they_say(memory: Memory) -> None:
    made = await send(
        memory, form_of(await home_page(memory), "/do/create_token"), name="laptop", right="read", days=""
    )
    assert isinstance(made, Page)
    assert "mcm_" in text(made)
    await send(memory, form_of(await home_page(memory), "/do/revoke_token"))
    assert [(one.name, one.right, one.revoked_at is None) for one in await memory.tokens()] == [
        ("laptop", "read", False)
    ]


@pytest.mark.files
async def test_the_form_about_backups_makes_one(memory: Memory) -> None:
    assert await send(memory, form_of(await home_page(memory), "/do/backup")) == "/home"
    assert len(await memory.backups()) == 1


@pytest.mark.postgres
async def test_of_a_memory_in_postgresql_nothing_is_said_about_files(home: Path, url: str) -> None:
    async with open_memory(Settings(home=home, store=url), now=FixedClock(), embedder="none", llm="none") as memory:
        await memory.record_turns([NewTurn(role="user", content="I keep bees in Porto.")], session="s")
        shown = await home_page(memory, "/home?check=1")
    assert "1 message in 1 conversation" in text(shown)
    assert "Everything is in order." in text(shown)
    for words in ("Backups\n", "Make a backup", "On disk", str(home)):
        assert words not in text(shown), words
