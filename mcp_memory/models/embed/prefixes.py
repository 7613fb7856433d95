"""What a model was trained to read before a text: one thing before a question, another before a passage.

Without them such a model works and finds less. They come from the settings; else from the model's own folder,
where it has one and says so (`config_sentence_transformers.json`); else from the table here, taken from the
model cards of widely used models. A model that is not in it gets none.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from mcp_memory.core.config import Settings

__all__ = ["NO_PREFIXES", "Prefixes", "is_folder", "prefixes_of"]

_SEARCHING = "Represent this sentence for searching relevant passages: "

# By a pattern in the last part of the name, the first that matches; instruct models want a task, not a prefix.
_KNOWN = (
    (r"e5-.*instruct", "", ""),
    (r"(^|-)e5-", "query: ", "passage: "),
    (r"nomic-embed-text", "search_query: ", "search_document: "),
    (r"bge-(small|base|large)-en", _SEARCHING, ""),
    (r"bge-(small|base|large)-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"mxbai-embed-large", _SEARCHING, ""),
    (r"snowflake-arctic-embed.*(v2|2\.0)|snowflake-arctic-embed2", "query: ", ""),
    (r"snowflake-arctic-embed", _SEARCHING, ""),
    (r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
)
_QUERY_KEYS, _PASSAGE_KEYS = ("query", "search_query"), ("document", "passage", "corpus", "search_document")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """What stands before a question and before a text that is to be found."""

    query: str = ""
    passage: str = ""

    @property
    def mark(self) -> str:
        """A short name of them, for the identity of the vectors they went into; nothing where there are none."""
        if not self.query and not self.passage:
            return ""
        return "+" + sha256(f"{self.query}\0{self.passage}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


NO_PREFIXES = Prefixes()


def prefixes_of(model: str, settings: Settings) -> Prefixes:
    """Return the prefixes for a model's name or folder; each of the two settings stands over what is known."""
    known = (_told_by(Path(model)) if is_folder(model) else None) or _known(model)
    query, passage = settings.embedder_query_prefix, settings.embedder_passage_prefix
    return Prefixes(
        query=known.query if query is None else query,
        passage=known.passage if passage is None else passage,
    )


def is_folder(model: str) -> bool:
    """Return whether a model is named by its folder. A name on the hub begins with none of these."""
    return model.startswith(("/", "./", "../", "~")) or model[1:3] in (":\\", ":/")


def _told_by(folder: Path) -> Prefixes | None:
    try:
        config: Any = json.loads(
            (folder.expanduser() / "config_sentence_transformers.json").read_text(encoding="utf-8")
        )
        prompts: dict[str, Any] = config["prompts"]
        query = next((str(prompts[key]) for key in _QUERY_KEYS if prompts.get(key)), "")
        passage = next((str(prompts[key]) for key in _PASSAGE_KEYS if prompts.get(key)), "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Prefixes(query=query, passage=passage) if query or passage else None


def _known(model: str) -> Prefixes:
    name = model.rpartition("/")[2].casefold()
    for pattern, query, passage in _KNOWN:
        if re.search(pattern, name):
            return Prefixes(query=query, passage=passage)
    return NO_PREFIXES
