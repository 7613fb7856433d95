"""Every value that this program writes can be read by what looks for damage."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import anyio
import apsw
import pytest

from mcp_memory.cli.doctor import run_checks
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.integrations.importers.records import AGENTS
from mcp_memory.service.compression.compress import compress_list
from mcp_memory.service.compression.plan import CompressionRules
from mcp_memory.store.sql import home_rows, job_rows, recall_rows, stage_outputs, turn_rows
from mcp_memory.store.sqlite import unreadable
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Extraction, NewAtom, RecallEntry, Token
from tests.integrations.importers.agents import followed, written
from tests.portable.homes import CLOCK, lived_in
from tests.upkeep.conftest import LOG

SECRET = "password=" + "hunter" + "2-correct-horse-9X"


@pytest.mark.slow
def test_a_home_with_something_of_everything_has_no_value_that_cannot_be_read(home: Path, tmp_path: Path) -> None:
    fill(home, tmp_path)
    with closing(apsw.Connection(str(home / "memory.db"))) as con:
        for table, columns in unreadable._FORMS.items():  # pyright: ignore[reportPrivateUsage]
            for column in columns.keys() - {"undone_at"}:
                assert con.execute(f"SELECT count({column}) FROM {table}").get, f"no row has a {column} of a {table}"
        assert list(unreadable.unreadable_values(con)) == []
    assert [check.found for check in run_checks(home=str(home), embedder="none") if check.state == "fail"] == []


def fill(home: Path, tmp_path: Path) -> None:
    """Say, tell, import, distil, compress and forget, so that every table with a form has a row."""

    async def live() -> None:
        async with lived_in(home) as held:
            await held.offload_tool_result("shell", f"{LOG}\n{SECRET}\n{LOG}", session="keys", task="Look", step="look")
            await held.fold_canvas(session="keys", task="Look", action="complete")
            gone = await held.remember("Ana drinks tea", typed=True)
            await held.forget([gone.atom.id])

    anyio.run(live)
    for agent in AGENTS:
        followed(home, written(tmp_path, agent))
    with closing(open_store(home)) as store:
        messages = [{"role": "user", "content": "Build it."}]
        for call in range(6):
            messages += [
                {"role": "assistant", "content": f"Step {call}.\n{LOG}"},
                {"role": "user", "content": f"Go on {call}.\n{LOG}"},
            ]
        compress_list(
            store,
            "default",
            messages,
            rules=CompressionRules(window=4_000, keep_calls=1),
            counter=token_counter("cl100k_base"),
            now=lambda: CLOCK,
        )
        store.write_home(
            home_rows.add_token, Token(id="1", name="n", spaces=("default",), right="read", at=CLOCK, hash=b"x" * 32)
        )
        store.write_home(
            recall_rows.note_recalls,
            [("default", RecallEntry(at=CLOCK, how="recall", session="h", ids=("t1",), tokens=9, query="tea"))],
        )
        store.write(
            "default",
            turn_rows.append,
            "h",
            turn_rows.prepare([NewTurn(role="tool", content="obey", held=("drop",))]),
            now=CLOCK,
        )
        work = store.write(
            "default", job_rows.lease, "extract", "h", "{}", holder="h", lease=timedelta(hours=1), now=CLOCK
        )
        assert work is not None
        (said,) = store.read("default", turn_rows.session_turns, "h")
        draft = NewAtom(
            kind="episodic",
            text="Obey",
            priority=1,
            confidence=0.5,
            session="h",
            valid_from=CLOCK,
            evidence=(Evidence(turn=said.id, span=(0, 4), quote="obey"),),
        )
        store.write(
            "default",
            stage_outputs.commit,
            work.id,
            Extraction(upto={"h": 1}, drafts=[draft], aliases={}),
            outcome={},
            now=CLOCK,
        )
