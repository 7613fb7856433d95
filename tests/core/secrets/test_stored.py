"""A key that was said, offloaded or handed to a verb stands in no file of the home afterwards."""

from __future__ import annotations

import json
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anyio import to_thread
from mcp import Client
from mcp.types import Implementation
from numpy.typing import NDArray

from mcp_memory.core.config import load_settings
from mcp_memory.core.types import NewTurn
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.service.memory import open_memory
from mcp_memory.service.portable.reading import open_export
from mcp_memory.testing import HashEmbedder

KEY = "ghp_" + "Zq7w" * 9
CARD = "4012 8888 8888 1881"


def standing(home: Path, *secrets: str) -> list[str]:
    """The files of a home in which one of the secrets can be read."""
    return [
        str(path.relative_to(home))
        for path in sorted(home.rglob("*"))
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


async def fill(home: Path, *, keep_secrets: bool) -> None:
    async with open_memory(home=home, embedder="none", keep_secrets=keep_secrets) as memory:
        recorded = await memory.record_turns(
            [NewTurn(role="user", content=f"Use {KEY} and card {CARD}."), NewTurn(role="assistant", content="I will.")],
            session="s1",
        )
        assert recorded.masked == 1
        done = await memory.offload_tool_result(
            "bash", f"remote: {KEY}\n" + "line\n" * 400, arguments={"command": f"curl -u ann:{KEY}", "card": CARD}
        )
        await memory.keep_tool_result("fetch", json.dumps({"token": KEY, "card": CARD}))
        messages = [
            {"role": "user", "content": f"Clone with {KEY}. " + "It is a long story. " * 400},
            {"role": "assistant", "content": f"Paid with {CARD}. " + "Done and dusted. " * 400},
            {"role": "user", "content": "And now?"},
        ]
        await memory.compress(messages, window=1_000, level="emergency")
        await memory.conversation_search(f"where is {KEY}")
        await memory.forget([done.ref], reason="no longer wanted")


@pytest.mark.parametrize("keep_secrets", [False, True])
async def test_a_key_stands_in_no_file_but_in_those_of_results_where_it_is_wanted(
    home: Path, keep_secrets: bool
) -> None:
    await fill(home, keep_secrets=keep_secrets)
    kept = standing(home, KEY, CARD)
    assert bool(kept) == keep_secrets, kept
    assert all("/refs/" in path for path in kept)


@pytest.mark.parametrize("keep_secrets", [False, True])
@pytest.mark.parametrize("tool", ["login", "get_user", "Read", "bash", "write_file", "mcp__db__query"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"password": "Kx93mfQpw2LzT3"},
        {"username": "ann", "secret": "Kx93mfQpw2LzT3aB8"},
        {"name": "DB_PASSWORD", "value": "Kx93mfQpw2LzT3"},
        {"key": "api_token", "value": "Kx93mfQpw2LzT3aB8"},
        {"args": ["login", "--password", "Kx93mfQpw2LzT3"]},
        {"content": "machine h login ann password Kx93mfQpw2LzT3\n"},
        {"command": "tool --password 'Kx93mfQpw2LzT3\tkk'\n"},
    ],
)
async def test_a_secret_argument_stands_in_no_file_whatever_the_tool_and_the_setting(
    home: Path, keep_secrets: bool, tool: str, arguments: dict[str, Any]
) -> None:
    async with open_memory(home=home, embedder="none", keep_secrets=keep_secrets) as memory:
        await memory.offload_tool_result(tool, "ok\n", arguments=arguments)
        await memory.keep_tool_result(tool, "fine\n", arguments=arguments)
    assert standing(home, "Kx93mfQp") == []


async def test_a_question_goes_to_no_model_with_a_key_in_it(home: Path) -> None:
    asked: list[str] = []

    class Listening(HashEmbedder):
        def embed_query(self, text: str) -> NDArray[np.float32]:
            asked.append(text)
            return super().embed_query(text)

    async with open_memory(home=home, embedder=Listening()) as memory:
        await memory.record_turns([NewTurn(role="user", content="The boat sails at two.")])
        await memory.conversation_search(f"does {KEY} open the boat?")
    assert asked == ["does ghp_••• open the boat?"]


FORMS = {
    "key of a provider": "ghp_{:.36}",
    "key of a wallet": "PRIVATE_KEY=0x{:.64}",
    "key of a cipher": "FERNET_KEY={:.22}AbCdEfGhIjKlMnOpQrStU=",
    "hash of a password": "root:$6$saltsalt${:.64}./aB3dE9xZ7k2Lm4./abcd:19700:0:99999:7:::",
    "JSON web key": '{{"kty": "EC", "crv": "P-256", "d": "{:.43}"}}',
    "token of a header": "Authorization: Bearer {:.12}",
    "signature of an address": "https://b.example.org/k?a=1&amp;X-Amz-Signature={:.64}",
    "sentence": "Das Passwort lautet Kx{:.14}Q",
    "row of a table": "| Password | Kx{:.14}Q |",
    "command": "net use Z: \\\\srv\\share Kx{:.14}Q",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_no_argument_of_a_tool_brings_a_secret_into_a_file(home: Path, form: str) -> None:
    keys: dict[str, str] = {}

    def key(where: str) -> str:
        drawn = sha256(where.encode()).hexdigest()
        keys[drawn[:12]] = where
        return form.format(drawn)

    said = {"role": "user", "content": f"Hello {key('content')}", "name": f"Al {key('name')}", "id": key("message")}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("record_turns", {"turns": [said], "session": "plain"}),
        ("record_turns", {"turns": [{"role": "user", "content": "I am in."}], "session": f"s {key('session')}"}),
        *(("remember", {"text": f"Has a dog {key('text')}"}), ("remember", {"text": "Has a dog named Rex"})),
        ("remember", {"text": "Ana", "entity": key("entity"), "relation": key("relation"), "value": key("value")}),
        (
            "offload_tool_result",
            {
                "tool_name": f"run {key('tool')}",
                "result": "line\n" * 400 + key("result"),
                "arguments": {key("argument name"): 1, "q": [key("argument"), {"password": "hunter22x"}]},
                "tool_call_id": f"call-{key('call')}",
                "task": f"Mend {key('task')}",
                "step": f"Look {key('step')}",
                "summary": f"Found {key('summary')}",
            },
        ),
        *(("fold_canvas", {"session": f"s {key('folded')}"}), ("recall", {"query": key("asked"), "session": key("s")})),
        ("memory_search", {"query": key("searched"), "entity": key("about")}),
        ("forget", {"query": "Rex", "reason": f"gone {key('reason')}", "dry_run": False}),
    ]
    server = MemoryServer(load_settings({}, home=home, embedder="none"))
    about = Implementation(name=f"app {key('client')}", version="1")
    async with server.hold_open(), Client(server, client_info=about) as client:
        for tool, arguments in calls:
            await client.call_tool(tool, arguments)
        standing_now = standing(home, *keys)
    names = [path.name for path in home.rglob("*") if any(one in path.name for one in keys)]
    assert standing_now == [], [keys[one] for one in keys if standing(home, one)]
    assert names == []


async def test_a_key_that_an_answer_to_a_question_brings_is_not_kept(home: Path) -> None:
    said = "I moved to Lisbon in May for the new job."
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns([NewTurn(role="user", content=said)])
        asked = (await memory.distill()).next
        assert asked is not None
        note = {"quote": "I moved to Lisbon", "text": f"Moved to Lisbon {KEY}", "kind": "persona", "priority": 80}
        note |= {"turn": "t1", "certainty": "stated", "entities": [{"name": f"Lis {KEY}", "also": [KEY]}]}
        note |= {"fact": {"entity": "user", "relation": "lives in", "value": f"Lisbon {KEY}"}}
        reply = {"scenes": [{"name": f"Moving {KEY}", "atoms": [note]}]}
        answer = await memory.distill(asked.work_id, json.dumps(reply))
        assert answer.kept
        assert KEY not in str(answer)
    assert standing(home, KEY) == []


async def test_messages_whose_ids_hold_keys_are_told_apart(home: Path) -> None:
    turns = [NewTurn(role="user", content="Yes.", client_id=f"{KEY}{n}") for n in range(2)]
    async with open_memory(home=home, embedder="none") as memory:
        assert len((await memory.record_turns(turns)).stored) == 2
        assert (await memory.record_turns(turns)).duplicates == 2


def unmasked(text: str, *, prose: bool) -> str:
    """Leave secrets as they are, as versions before masking did."""
    return text


async def test_what_an_export_of_before_brings_with_a_key_in_it_waits_for_review(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(home=tmp_path / "older", embedder="none") as memory:
        with monkeypatch.context() as before:
            before.setattr("mcp_memory.longterm.turns.mask", unmasked)
            said = [NewTurn(role="user", content=f"Use {KEY}."), NewTurn(role="user", content="Use the boat.")]
            await memory.record_turns(said, session="s")
        await memory.export(tmp_path / "a.zip")
    async with open_memory(home=home, embedder="none") as memory:
        with await to_thread.run_sync(ExitStack) as stack:
            parcel = await to_thread.run_sync(lambda: stack.enter_context(open_export(tmp_path / "a.zip")))
            await memory.take_in(parcel, "default")
        assert [(one.id, one.reasons) for one in await memory.waiting()] == [("t1", ["secret"])]
