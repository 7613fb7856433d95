"""`purge` and `retention` as people use them."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from click.testing import Result

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.verbs import forgetting as forgetting_verbs
from tests.cli.conftest import unwrapped
from tests.in_memory import in_memory

Run = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    async def fill(memory: Memory) -> None:
        await memory.remember("Ines keeps bees near Porto.", typed=True)
        said = [NewTurn(role="user", content=f"The night boat has cabin {n}.") for n in range(14)]
        await memory.record_turns(said, session="boats")

    in_memory(tmp_path / "home", fill)
    return tmp_path / "home"


def test_what_sessions_and_times_name_is_shown_first_and_taken_with_yes(run: Run, home: Path) -> None:
    seen = run("forget", "--session", "boats", home=home).stdout
    assert seen.startswith("Nothing was changed. To forget these: repeat the command with --yes\n")
    assert run("forget", "--since", "yesterday", "--query", "cabin 3", home=home).stdout.startswith(
        "Nothing was changed."
    )
    gone = run("forget", "--session", "boats", "--yes", home=home).stdout
    assert gone.startswith("Forgot 14 of them. To restore them: mcp-memory forget --undo x1\n")
    assert "cabin" not in run("search", "cabin", home=home).stdout
    assert run("forget", "--session", "nowhere", home=home).exit_code == 1


def test_a_purge_that_was_killed_is_told_until_another_ends_it(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("forget", "a1", home=home)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(forgetting_verbs, "prove", killed)
        assert run("purge", "--all", "--yes", home=home).exit_code != 0
    assert "A purge is not finished" in run("purge", home=home).stdout
    assert "An earlier, interrupted purge is finished." in run("purge", "--all", home=home).stdout
    assert "not finished" not in run("purge", home=home).stdout


def test_a_purge_is_asked_for_twice_and_proven(run: Run, home: Path) -> None:
    assert run("purge", home=home).stdout.startswith("There is nothing to purge")
    run("forget", "a1", "--reason", "moved away", home=home)
    assert run("purge", home=home).stdout.split()[0:1] == ["x1"]
    assert run("purge", "x1", home=home).exit_code == 1  # nobody said yes
    done = run("purge", "x1", "--yes", home=home)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Erased 1 turn, 1 statement and 0 results (x1).\nSearched ")
    assert "none found." in done.stdout
    assert not [path for path in home.rglob("*") if path.is_file() and b"keeps bees" in path.read_bytes()]
    assert run("forget", "--undo", "x1", home=home).exit_code == 1


def test_a_purge_is_not_done_while_a_backup_has_the_words(run: Run, home: Path) -> None:
    run("backup", home=home)
    run("forget", "a1", home=home)
    done = run("purge", "x1", "--yes", home=home)
    assert done.exit_code == 1
    assert re.search(r"mcp-memory-.*\.zip still contains it\. Delete it yourself", unwrapped(done.stdout))

    run("backup", home=home)
    run("forget", "a2", home=home)
    assert run("purge", "--all", "--backups", "--yes", home=home).exit_code == 0


def test_a_backup_that_an_earlier_purge_left_is_named_and_deleted(run: Run, home: Path) -> None:
    run("backup", home=home)
    run("forget", "a1", home=home)
    run("purge", "x1", "--yes", home=home)
    named = run("purge", "--all", "--yes", home=home)
    assert (named.exit_code, "contains purged rows" in unwrapped(named.stdout)) == (1, True)
    run("backup", home=home)  # of the time after the purge
    done = run("purge", "--all", "--backups", "--yes", home=home)
    assert (done.exit_code, done.stdout.count("Deleted backups/")) == (0, 1)
    assert len(list((home / "backups").glob("*.zip"))) == 1
    assert run("purge", "--all", "--yes", home=home).exit_code == 0


def _backed_up(run: Run, home: Path) -> Path:
    run("backup", home=home)
    return next((home / "backups").glob("*.zip"))


def _rebuilt(run: Run, home: Path) -> Path:
    with closing(sqlite3.connect(home / "memory.db")) as con, con:
        con.execute("DELETE FROM session")  # which the journals have
    run("rebuild", home=home)
    return next((home / "backups").glob("aside-*-rebuild"))


def _restored(run: Run, home: Path) -> Path:
    backup = _backed_up(run, home).rename(home.parent / "backup.zip")
    run("restore", str(backup), home=home)
    return next((home / "backups").glob("aside-*-restore"))


def _files_restored(run: Run, home: Path) -> Path:
    aside = _restored(run, home)
    for database in aside.glob("memory.db*"):
        database.unlink()
    return aside


def _damaged(run: Run, home: Path) -> Path:
    aside = _rebuilt(run, home)
    (aside / "memory.db").write_bytes(b"SQLite format 3" + bytes(9_000))
    return aside


def _exported(run: Run, home: Path) -> Path:
    run("export", str(home / "memory.zip"), home=home)
    return home / "memory.zip"


def _result_set_aside(run: Run, home: Path) -> Path:
    aside = home / "backups/aside-20260101T000000Z-repair"
    shutil.copytree(home / "spaces/default/refs", aside / "spaces/default/refs")
    return aside


@pytest.mark.parametrize("what", ["a1", "t1", "result"])
@pytest.mark.parametrize(
    "copied", [_backed_up, _rebuilt, _restored, _files_restored, _damaged, _exported, _result_set_aside]
)
def test_a_copy_with_purged_rows_is_named_by_every_purge_until_it_is_deleted(
    run: Run, home: Path, copied: Callable[[Run, Path], Path], what: str
) -> None:
    result = anyio.run(_offloaded, home)
    copy = copied(run, home)
    forgotten = run("forget", result if what == "result" else what, home=home)
    assert forgotten.exit_code == 0, forgotten.output
    if copied is not _result_set_aside or what == "result":
        _named_until_deleted(run, home, copy)
    else:  # it has other rows only
        assert run("purge", "--all", "--yes", "--backups", home=home).exit_code == 0
        assert copy.exists()


def _named_until_deleted(run: Run, home: Path, copy: Path) -> None:
    name = copy.relative_to(home).as_posix()
    for arguments in (["--all"], ["--all"], ["x2"]):
        if arguments == ["x2"]:
            run("forget", "t9", home=home)
        done = run("purge", *arguments, "--yes", home=home)
        assert (done.exit_code, name in unwrapped(done.stdout)) == (1, True), done.output
    done = run("purge", "--all", "--yes", "--backups", home=home)
    assert (done.exit_code, f"Deleted {name}" in unwrapped(done.stdout)) == (0, True), done.output
    assert not copy.exists()
    assert run("purge", "--all", "--yes", home=home).exit_code == 0


async def _offloaded(home: Path) -> str:
    async with open_memory(home=home, embedder="none") as memory:
        return (await memory.offload_tool_result("ls", "a list of harbours\n" * 40, task="Find a harbour")).ref


def test_a_copy_of_rows_that_were_said_again_or_stay_is_kept(run: Run, home: Path) -> None:
    run("forget", "a1", home=home)
    run("purge", "--all", "--yes", home=home)
    run("remember", "Ines keeps bees near Porto.", home=home)
    kept = [_exported(run, home), _backed_up(run, home), _rebuilt(run, home)]
    assert run("purge", "--all", "--yes", "--backups", home=home).exit_code == 0
    assert [path.exists() for path in kept] == [True, True, True]


def test_a_purge_answers_programs_in_json(run: Run, home: Path) -> None:
    run("forget", "a1", home=home)
    assert [one["id"] for one in json.loads(run("purge", "--json", home=home).stdout)] == ["x1"]
    done = json.loads(run("purge", "--all", "--yes", "--json", home=home).stdout)
    assert (done["tombstones"], done["proof"]["found"], done["shredded"]) == (["x1"], [], True)


def test_how_long_what_is_kept_is_set_shown_followed_and_off(run: Run, home: Path) -> None:
    assert run("retention", home=home).stdout == "Everything is kept: this space has no retention.\n"
    told = run("retention", "--turns", "1y", "--results", "90d", home=home).stdout
    assert re.sub(r"next \d{4}-.*?\.", "next <now>.", told) == (
        "Turns: 365 days. 0 due now. 0 taken so far, not run yet, next <now>.\n"
        "Results: 90 days. 0 due now. 0 taken so far, not run yet, next <now>.\n"
    )
    assert run("retention", "--run", home=home).stdout.startswith("Forgot 0 ")
    assert len(json.loads(run("retention", "--json", home=home).stdout)["policies"]) == 2
    assert run("retention", "--off", home=home).stdout.startswith("Everything is kept")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["purge", "x9", "--yes"], 1, "nothing to purge under x9"),
        (["purge", "x1", "--all"], 2, "not both"),
        (["purge", "--older-than", "soon"], 2, "--older-than takes a number"),
        (["retention", "--turns", "5h"], 2, "1d is the shortest"),
        (["retention", "--turns", "0d"], 2, "1d is the shortest"),
        (["retention", "--off", "--turns", "9d"], 2, "keeps everything"),
    ],
)
def test_what_cannot_be_is_told(run: Run, home: Path, arguments: list[str], code: int, said: str) -> None:
    result = run(*arguments, home=home)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_a_purge_names_what_an_agent_repeats_and_ends_well_once_that_is_forgotten(run: Run, home: Path) -> None:
    async def repeat() -> str:
        async with open_memory(home=home, embedder="none") as memory:
            step = "Ines keeps bees near Porto"
            return (await memory.offload_tool_result("bash", "log row\n" * 90, task="Plan", step=step)).ref

    ref = anyio.run(repeat)
    run("forget", "a1", home=home)
    first = run("purge", "--all", "--yes", home=home)
    assert first.exit_code == 1
    assert f"still repeat erased words: {ref}." in unwrapped(first.stdout)
    assert run("forget", ref, home=home).exit_code == 0
    assert run("purge", "--all", "--yes", home=home).exit_code == 0


def test_a_query_that_only_an_agent_wrote_offers_the_result(run: Run, home: Path) -> None:
    async def offload(memory: Memory) -> str:
        return (await memory.offload_tool_result("bash", "log row\n" * 90, task="Plan", step="Ask Snorbelqui")).ref

    ref = in_memory(home, offload)
    shown = unwrapped(run("forget", "--query", "snorbelqui", home=home).stdout)
    assert shown.startswith("Nothing was changed: no turn, statement or result has all of these words.")
    assert f"mcp-memory forget {ref}" in shown
