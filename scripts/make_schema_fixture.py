"""Write `fixtures/schemas/<schema>.db`, a small database of the present schema. Run once for each release.

A released fixture is never made again: it stands for the databases that people have.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import apsw
import numpy as np

from mcp_memory.store.protocol import NewAtom, Spend, Vectors
from mcp_memory.store.sqlite import open_store
from mcp_memory.types import NewTurn

FOLDER = Path(__file__).parent.parent / "fixtures" / "schemas"


def main() -> None:
    now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        turns = [
            NewTurn(role="user", content="I moved to Lisbon in May."),
            NewTurn(role="assistant", content="Noted."),
        ]
        vectors = Vectors(identity="fixture/8", data=np.eye(2, 8, dtype=np.float32))
        store.append_turns("default", "first", turns, now=now, vectors=vectors)
        told = NewAtom(
            kind="persona",
            text="Lives in Lisbon",
            priority=80,
            confidence=1.0,
            session="first",
            valid_from=now,
            entity="user",
            relation="lives_in",
            value="Lisbon",
            single_valued=True,
        )
        store.add_atom("default", told, now=now)
        store.add_spend(Spend(at=now, purpose="rerank", model="openai/m", prompt_tokens=900, completion_tokens=20))
        schema = store.schema()
        store.close()
        target = FOLDER / f"{schema}.db"
        if target.exists():
            raise SystemExit(f"{target} is released: it is never made again.")
        FOLDER.mkdir(parents=True, exist_ok=True)
        connection = apsw.Connection(str(Path(folder) / "memory.db"))
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        connection.execute("VACUUM INTO ?", (str(target),))
        connection.close()
        print(f"{target.name}: {target.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
