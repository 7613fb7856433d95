"""Replaces names with erased words: of sessions, projects, imported files, followed logs, aliases and reasons.

A name is replaced if it contains an erased word that occurs in no retained row, or if all rows under it are purged.
Generated names are kept. Names that cannot be replaced, such as that of a space or the title of a task with other
steps, are reported by the purge verification.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from mcp_memory.language.words import base_terms, fold, function_words_of
from mcp_memory.store.sql import renaming
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import Layer

_WORD = re.compile(r"[^\W_]+")
_LEAST, _LEAST_DENSE = 4, 2
"""Minimum length of a word, in scripts with and without spaces."""
_MOST = 4 * 2**20
"""Maximum number of bytes of an erased text that are compared."""
_LAYERS: tuple[Layer, ...] = ("turn", "atom", "chunk")

Test = Callable[[str | None], bool]


@dataclass(kw_only=True)
class ErasedNames:
    """The result of `erase_names`.

    `texts` are the names that were replaced, `sessions` those of them that were names of sessions, and `paths` the line
    files that must be rewritten.
    """

    texts: list[str] = field(default_factory=list[str])
    paths: set[str] = field(default_factory=set[str])
    sessions: list[str] = field(default_factory=list[str])


def says_erased_words(tx: Transaction, texts: Iterable[bytes]) -> Test:
    """Return a function that tests whether a name contains an erased word.

    An erased word occurs in `texts`, but in no retained turn, atom or result. Short words and function words are not
    tested.
    """
    erased = "\n".join(fold(text[:_MOST].decode("utf-8", "replace")) for text in texts)
    erased_words = frozenset(_WORD.findall(erased))

    @cache
    def is_retained(word: str) -> bool:
        terms = base_terms(word)
        return not terms or any(tx.index.with_all_terms(layer, terms) for layer in _LAYERS)

    def is_erased(word: str) -> bool:
        if _is_dense(word):  # without spaces between words, a name may be part of a run
            return len(word) >= _LEAST_DENSE and word in erased
        return len(word) >= _LEAST and word in erased_words

    def says(name: str | None) -> bool:
        words = [word for word in set(_WORD.findall(fold(name or ""))) if is_erased(word)]
        common = function_words_of(words) if words else frozenset[str]()
        return any(word not in common and not is_retained(word) for word in words)

    return says


def _is_dense(word: str) -> bool:
    return word[0] >= "\u0e00"


def erase_names(tx: Transaction, tombstones: Sequence[int], sessions: Collection[int], says: Test) -> ErasedNames:
    """Replace the names that must not remain after the rows of these tombstones were erased.

    `sessions` are the numbers of the sessions that had some of these rows; `says` tests a name (see
    `says_erased_words`).
    """
    done = ErasedNames()
    _erase_sessions(tx, set(sessions), says, done)
    _erase_reasons(tx, set(tombstones), says, done)
    _erase_paths(tx, says, done)
    _erase_aliases(tx, says, done)
    return done


def _erase_sessions(tx: Transaction, touched: set[int], says: Test, done: ErasedNames) -> None:
    for number, name in tx.all("SELECT id, name FROM session WHERE space = :space ORDER BY id"):
        if renaming.is_generated(name) or not (says(name) or (number in touched and _is_empty(tx, number, name))):
            continue
        done.paths |= renaming.rename_session(tx, number, name)
        done.texts.append(name)
        done.sessions.append(name)
    for table in renaming.TABLES_WITH_SESSION:  # sessions without turns, such as those of recalls
        for (name,) in tx.all(f"SELECT DISTINCT session FROM {table} WHERE space = :space"):
            if not renaming.is_generated(name) and says(name):
                renaming.rename_in_logs(tx, name)
                done.texts.append(name)


def _is_empty(tx: Transaction, number: int, name: str) -> bool:
    """Return whether every turn and result of a session is purged."""
    left = tx.one(
        "SELECT 1 FROM turn WHERE space = :space AND session = ? AND purged_at IS NULL UNION ALL"
        " SELECT 1 FROM ref WHERE space = :space AND session = ? AND purged_at IS NULL LIMIT 1",
        *(number, name),
    )
    return left is None


def _erase_reasons(tx: Transaction, purged: set[int], says: Test, done: ErasedNames) -> None:
    for number, reason in tx.all("SELECT id, reason FROM tombstone WHERE space = :space AND reason <> ''"):
        if number in purged or says(reason):
            tx.run("UPDATE tombstone SET reason = '' WHERE space = :space AND id = ?", number)
            done.texts.append(reason)


def _erase_paths(tx: Transaction, says: Test, done: ErasedNames) -> None:
    """Erase paths of imported files and followed logs, projects and clients' names that contain erased words.

    If such a log is followed again, it is read from its start, and its stored turns are recognised.
    """
    for (path,) in tx.all("SELECT DISTINCT path FROM imported WHERE space = :space"):
        if says(path):
            tx.run("UPDATE imported SET path = '', modified = 0 WHERE space = :space AND path = ?", path)
            done.texts.append(path)
    for (path,) in tx.all("SELECT path FROM followed WHERE space = :space"):
        if says(path):
            tx.run("DELETE FROM followed WHERE space = :space AND path = ?", path)
            done.texts.append(path)
    for column in ("project", "client"):
        for name in tx.column(f"SELECT DISTINCT {column} FROM session WHERE space = :space AND {column} IS NOT NULL"):
            if says(name):
                tx.run(f"UPDATE session SET {column} = NULL WHERE space = :space AND {column} = ?", name)
                done.texts.append(name)


def _erase_aliases(tx: Transaction, says: Test, done: ErasedNames) -> None:
    for number, name in tx.all("SELECT id, name FROM entity_name WHERE space = :space AND id <> entity"):
        if says(name):
            tx.run("DELETE FROM entity_name WHERE space = :space AND id = ?", number)
            done.texts.append(name)
