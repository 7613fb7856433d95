"""A transaction of SQLite: the connection, the files of the space, and its word and vector indexes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import apsw

from mcp_memory.core.regular_files import open_own
from mcp_memory.store import files
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.sqlite.index import terms, vectors
from mcp_memory.store.values import Layer, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


P = ParamSpec("P")
T = TypeVar("T")

_FENCE = b"---\n"


Copy = tuple[str, str]
"""A readable copy of rows: the name of its space, and its path in the folder of the space."""


@dataclass(slots=True)
class CopyChanges:
    """The files that a transaction changes.

    `appended` has new lines for line files whose earlier lines are unchanged, `outdated` the copies to rewrite or
    delete, and `whole` the content of files that is not derived from rows. `results` are new files of results, which
    are written before the commit and deleted if it fails.
    """

    appended: dict[Copy, list[bytes]] = field(default_factory=dict[Copy, list[bytes]])
    outdated: dict[Copy, None] = field(default_factory=dict[Copy, None])
    whole: dict[Copy, bytes] = field(default_factory=dict[Copy, bytes])
    results: list[Path] = field(default_factory=list[Path])


class WritingConnection(apsw.Connection):
    """The connection that writes to a home; `copy_changes` are the changed copies of its current transaction."""

    copy_changes: CopyChanges


class SqliteTransaction(Transaction):
    """A transaction on a space. `con` is for operations that only SQLite has; `home` is the folder of the store."""

    def __init__(self, con: apsw.Connection, home: Path, space: str) -> None:
        super().__init__(con, space)
        self.changes = con.copy_changes if isinstance(con, WritingConnection) else CopyChanges()
        self.con = con
        self.home = home
        self.folder = home / "spaces" / space
        self.files = SpaceFiles(self)
        self.index = SpaceIndex(self)


def in_space(
    con: apsw.Connection,
    home: Path,
    space: str,
    work: Callable[Concatenate[SqliteTransaction, P], T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run `work` on a space, in the transaction of a connection."""
    return work(SqliteTransaction(con, home, space), *args, **kwargs)


class SpaceFiles:
    """`sql.Files` in the folder of a space."""

    def __init__(self, tx: SqliteTransaction) -> None:
        self._tx = tx

    def read(self, path: str) -> bytes | None:
        return files.content_of(self._tx.folder / path)

    def display_path(self, path: str) -> str:
        return str(self._tx.folder / path)

    def read_results(self, spans: Sequence[tuple[str, int, tuple[int, int]]]) -> list[bytes | None]:
        return [self._read_result(*span) for span in spans]

    def _read_result(self, path: str, size: int, span: tuple[int, int]) -> bytes | None:
        try:
            with open_own(self._tx.folder / path) as file:
                head = file.seek(0, os.SEEK_END) - size
                file.seek(max(0, head - len(_FENCE)))
                fence = file.read(len(_FENCE))
                file.seek(span[0], os.SEEK_CUR)
                data = file.read(span[1] - span[0])
        except OSError:
            return None
        return data if fence == _FENCE and len(data) == span[1] - span[0] else None

    def write(self, path: str, data: bytes) -> None:
        if not path.startswith("refs/"):
            self._tx.changes.whole[self._tx.name, path] = data
            return
        target = self._tx.folder / path
        if not files.is_there(target):
            self._tx.changes.results.append(target)
        files.write_whole(target, data, root=self._tx.folder.parent)

    def remove(self, path: str) -> None:
        self.outdate(path)

    def append(self, path: str, lines: Iterable[bytes]) -> None:
        self._tx.changes.appended.setdefault((self._tx.name, path), []).extend(lines)

    def outdate(self, *paths: str) -> None:
        self._tx.changes.outdated |= dict.fromkeys((self._tx.name, path) for path in paths)


class SpaceIndex:
    """`sql.Index` over FTS5 and blocks of vectors."""

    def __init__(self, tx: SqliteTransaction) -> None:
        self._tx = tx

    def put_terms(self, layer: Layer, rows: terms.Rows) -> None:
        if layer == "chunk":
            terms.insert(self._tx.con, layer, self._tx.space, rows)
        else:
            terms.put(self._tx.con, layer, self._tx.space, rows)

    def put_vectors(
        self, layer: Layer, numbers: Sequence[int], new: Vectors, *, rows: Sequence[int] | None = None
    ) -> None:
        vectors.put(self._tx.con, layer, self._tx.space, numbers, new, rows=rows)

    def put_stored(self, layer: Layer, numbers: Sequence[int], identity: str, data: NDArray[np.int8]) -> None:
        vectors.put_stored(self._tx.con, layer, self._tx.space, numbers, identity, data)

    def stored_vectors(self, layer: Layer, numbers: Sequence[int], identity: str) -> dict[int, NDArray[np.int8]]:
        return vectors.read_stored(self._tx.con, layer, self._tx.space, numbers, identity)

    def with_all_terms(self, layer: Layer, query_terms: Sequence[str]) -> list[int]:
        return terms.with_all(self._tx.con, layer, self._tx.space, query_terms)

    def remove(self, layer: Layer, numbers: Sequence[int]) -> None:
        terms.delete(self._tx.con, layer, self._tx.space, numbers)
        if layer != "chunk":
            vectors.delete(self._tx.con, layer, self._tx.space, numbers)
