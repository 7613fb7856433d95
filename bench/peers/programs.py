"""Servers that are compared: how each is started, stores a message and is searched, according to its documentation.

Texts are stored unchanged, with the key of the message if a server requires a title. Each search asks for ten hits.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bench.peers.story import Message
from bench.peers.wire import Wire, text_of
from bench.words import FUNCTION_WORDS

HITS = 10
MINILM = "all-MiniLM-L6-v2/onnx"


@dataclass(frozen=True, slots=True)
class Program:
    """A server. Subclasses define how it stores and searches."""

    name: str
    licence: str
    package: str
    """`npm:NAME`, `pypi:NAME`, `ours:` or empty."""
    version: str
    script: str = ""
    """The command in the folder of the package, or a file of an npm package."""
    arguments: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment; `{home}` is replaced by the home."""
    model: str = ""
    """The place in a home where it looks for the weights of MiniLM."""
    python: str = "3.11"

    stores: ClassVar[bool] = True
    batch: ClassVar[bool] = False
    """Whether `store` sends several messages in one call."""

    def store(self, wire: Wire, messages: Sequence[Message]) -> None:
        raise NotImplementedError

    def search(self, wire: Wire, query: str) -> str:
        """Return the answer as a model reads it."""
        raise NotImplementedError

    def hits(self, answer: str) -> str:
        """Return the first ten hits of an answer, without the text around them."""
        return answer

    def kept(self, wire: Wire, messages: Sequence[Message]) -> set[str]:
        """Return the keys of the messages that the server finds."""
        return {one.key for one in messages if self.found(self.search(wire, one.text), one.text)}

    def found(self, answer: str, text: str, key: str = "") -> bool:
        hits = " ".join(self.hits(answer).split())
        return text in hits or bool(key and key in hits)


class Ours(Program):
    batch = True

    def store(self, wire: Wire, messages: Sequence[Message]) -> None:
        wire.call("record_turns", {"turns": [{"role": "user", "content": one.text} for one in messages]})

    def search(self, wire: Wire, query: str) -> str:
        return text_of(wire.call("conversation_search", {"query": query, "limit": HITS, "neighbours": 0}))

    def hits(self, answer: str) -> str:
        said = "\n".join(re.findall(r"^\* .*?> (.*)", answer, re.MULTILINE)[:HITS])
        return re.sub(r" \[[^\]]*\]", "", said)  # the dates that it puts beside days and months


class Bare(Program):
    stores = False

    def search(self, wire: Wire, query: str) -> str:
        return text_of(wire.call("conversation_search", {"query": query}))


class Fts5(Program):
    batch = True

    def store(self, wire: Wire, messages: Sequence[Message]) -> None:
        wire.call("store", {"messages": [one.text for one in messages]})

    def search(self, wire: Wire, query: str) -> str:
        return text_of(wire.call("search", {"query": query}))


class Reference(Program):
    """It finds only entities that contain the whole query, so it gets the longest word of a question."""

    batch = True

    def store(self, wire: Wire, messages: Sequence[Message]) -> None:
        entities = [{"name": one.key, "entityType": "message", "observations": [one.text]} for one in messages]
        wire.call("create_entities", {"entities": entities})

    def search(self, wire: Wire, query: str) -> str:
        words = [word for word in re.findall(r"\w+", query) if word.lower() not in FUNCTION_WORDS]
        return text_of(wire.call("search_nodes", {"query": max(words, key=len)}))

    def hits(self, answer: str) -> str:
        entities: list[dict[str, Any]] = json.loads(answer)["entities"]
        return "\n".join(text for one in entities[:HITS] for text in one["observations"])

    def kept(self, wire: Wire, messages: Sequence[Message]) -> set[str]:
        graph = text_of(wire.call("read_graph", {}))
        return {one.key for one in messages if f'"{one.key}"' in graph}


class ContextMode(Program):
    def store(self, wire: Wire, messages: Sequence[Message]) -> None:
        for one in messages:
            wire.call("ctx_index", {"content": one.text, "source": one.key})

    def search(self, wire: Wire, query: str) -> str:
        return text_of(wire.call("ctx_search", {"queries": [query], "limit": HITS}))

    def hits(self, answer: str) -> str:
        return "".join(f"--- [{part}" for part in answer.split("--- [")[1 : HITS + 1])  # the query stands before them


class MemoryService(Program):
    def store(self, wire: Wire, messages: Sequence[Message]) -> None:
        for one in messages:
            wire.call("memory_store", {"content": one.text, "conversation_id": "bench"})

    def search(self, wire: Wire, query: str, mode: str = "semantic") -> str:
        return text_of(wire.call("memory_search", {"query": query, "limit": HITS, "mode": mode}))

    def hits(self, answer: str) -> str:
        return answer.partition("\n")[2]  # the query stands in the first line

    def kept(self, wire: Wire, messages: Sequence[Message]) -> set[str]:
        return {one.key for one in messages if self.found(self.search(wire, one.text, "exact"), one.text)}


class BasicMemory(Program):
    """Each message is a note. A search returns titles; reading a note takes another call."""

    def store(self, wire: Wire, messages: Sequence[Message]) -> None:
        for one in messages:
            wire.call("write_note", {"title": one.key, "content": one.text, "directory": "talk"})

    def search(self, wire: Wire, query: str) -> str:
        return text_of(wire.call("search_notes", {"query": query, "page_size": HITS}))

    def kept(self, wire: Wire, messages: Sequence[Message]) -> set[str]:
        kept: set[str] = set()
        for one in messages:
            asked = {"query": one.key, "search_type": "title", "page_size": HITS}
            if f"### {one.key}" in text_of(wire.call("search_notes", asked)):
                kept.add(one.key)
        return kept


class MemPalace(Program):
    batch = True

    def store(self, wire: Wire, messages: Sequence[Message]) -> None:
        if len(messages) == 1:
            wire.call("mempalace_add_drawer", {"wing": "bench", "room": "talk", "content": messages[0].text})
            return
        items = [{"wing": "bench", "room": "talk", "content": one.text} for one in messages]
        wire.call("mempalace_checkpoint", {"items": items, "dedup_threshold": 1.0})  # or similar ones would be dropped

    def search(self, wire: Wire, query: str) -> str:
        return text_of(wire.call("mempalace_search", {"query": query, "limit": HITS}))

    def hits(self, answer: str) -> str:
        return "\n".join(str(one["text"]) for one in json.loads(answer)["results"][:HITS])

    def kept(self, wire: Wire, messages: Sequence[Message]) -> set[str]:
        pages = "".join(
            text_of(wire.call("mempalace_list_drawers", {"limit": 100, "offset": offset}))
            for offset in range(0, len(messages) + 100, 100)
        )
        return {one.key for one in messages if one.text in pages}


PROGRAMS: tuple[Program, ...] = (
    Ours("mcp-memory", "MIT", "ours:mcp-memory", "", "mcp-memory", ("serve",), {"MCP_MEMORY_HOME": "{home}/memory"}),
    Reference(
        "reference memory server",
        "MIT",
        "npm:@modelcontextprotocol/server-memory",
        "2026.8.31",
        "dist/index.js",
        env={"MEMORY_FILE_PATH": "{home}/memory.jsonl"},  # by default it is in the folder of the package
    ),
    ContextMode(
        "context-mode",
        "Elastic-2.0",
        "npm:context-mode",
        "1.0.169",
        "cli.bundle.mjs",
        # it refuses more than eight searches a minute otherwise
        env={"CONTEXT_MODE_SEARCH_MAX_RESULTS_AFTER": "100000", "CONTEXT_MODE_SEARCH_BLOCK_AFTER": "100000"},
    ),
    MemoryService(
        "mcp-memory-service",
        "Apache-2.0",
        "pypi:mcp-memory-service-lite",
        "12.4.0",
        "memory",
        ("server",),
        model=f".cache/mcp_memory/onnx_models/{MINILM}",
    ),
    BasicMemory("basic-memory", "AGPL-3.0", "pypi:basic-memory", "0.24.1", "basic-memory", ("mcp",), python="3.12"),
    MemPalace(
        "MemPalace", "MIT", "pypi:mempalace", "3.11.0", "mempalace-mcp", model=f".cache/chroma/onnx_models/{MINILM}"
    ),
    Bare(
        "a bare SDK server",
        "MIT",
        "pypi:mcp",
        "",
        "python",
        ("-P", str(Path(__file__).parent.with_name("bare_server.py"))),
    ),
    Fts5("FTS5 alone", "", "", "", sys.executable, (str(Path(__file__).with_name("fts5_server.py")), "{home}/said.db")),
)

CANNOT_RUN: dict[str, str] = {
    "context-mode 2.2.3, mcp-memory-service 12.6.0, MemPalace 3.12.0": "newer than the registries of this run have",
    "memsearch 0.4.23": "no MCP server: a command and a plugin; downloads the weights of its model",
    "claude-mem 13.25.3": "a session of Claude must read each tool call",
    "agentmemory 0.9.29": "its server needs the iii engine, which npm does not have; alone it runs 7 of its 54 tools",
    "mem0 (mcp)": "needs the key of its platform, or of a model for each message",
    "Graphiti": "needs a graph database and the key of a model",
    "Hindsight, cognee, Letta": "storing needs the key of a model",
    "TencentDB Agent Memory": "storing needs a model",
}
