"""`restore`: a home made from a backup, with every id as it was.

The backup is read whole and verified before the home is touched. Existing files are then moved to quarantine; the
database comes last, so that a kill in between leaves a home that reports a missing database, and a second `restore`
completes it. Settings, backups and logs of the home stay. No other process may have the home open.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import anyio

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.process_registry import exclusive
from mcp_memory.core.progress import ReportProgress, ignore_progress, step_counter
from mcp_memory.service.memory import open_memory
from mcp_memory.service.upkeep import archive
from mcp_memory.service.upkeep.archive import DATABASE, BackupManifest
from mcp_memory.service.upkeep.backup import verify
from mcp_memory.service.upkeep.quarantine_dir import Aside
from mcp_memory.service.upkeep.rebuild import outdated_personas
from mcp_memory.store import files
from mcp_memory.store.sqlite.database import translate_errors
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.sqlite.upkeep import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Rows that were forgotten after the backup was made, and that the restore forgot again under `tombstone`.

    `ids` is the number of rows.
    """

    space: str
    tombstone: str
    ids: int
    was_purged: bool
    """Whether the rows had been purged: the backup brought them back to the disk, and they can be purged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore. `aside` is the quarantine folder of the replaced files; None if there were none."""

    home: Path
    manifest: BackupManifest
    aside: Path | None
    again: Sequence[Again] = ()


def restore(path: Path, home: Path, *, now: datetime, tell: ReportProgress = ignore_progress) -> Restored:
    """Replace `home` by the backup at `path`.

    Raises InvalidInput if the file is not a backup or from a newer version, Damaged if it does not match its hashes,
    StoreUnavailable if other processes have the home open or the disk is full.
    """
    path = path.resolve()
    verify(path, tell=tell)
    with translate_errors(home, so="Nothing is lost"), exclusive(home, "restore"):
        home = home.resolve()
        staging = Path(tempfile.mkdtemp(prefix=".restore-", suffix=".tmp", dir=home))
        try:
            manifest = _unpack(path, staging, tell)
            with suppress(StoreUnavailable):  # its log is written, and its copies are brought up to date
                if (home / DATABASE).exists():
                    open_store(home).close()
            again = _repeat_forgetting(staging, home)
            aside = Aside(home, "restore", now)
            for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", "spaces"):
                aside.take(home / name)
            make_folder(staging / "spaces")
            (staging / "spaces").replace(home / "spaces")
            files.sync_folder(home)
            (staging / DATABASE).replace(home / DATABASE)
            files.sync_folder(home)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        with suppress(StoreUnavailable), closing(open_store(home)) as store:
            for space, _, page in list(outdated_personas(store, home)):  # derived from the rows, so no backup has it
                store.write_persona_file(space, page)
    return Restored(home=home, manifest=manifest, aside=aside.folder if aside.took else None, again=again)


def _repeat_forgetting(staging: Path, home: Path) -> list[Again]:
    """In the restored copy, forget all rows that this home has forgotten since the backup."""
    # A restore that was killed has moved them to quarantine already.
    later = [home / "spaces"] if (home / "spaces").is_dir() else sorted(home.glob("backups/aside-*-restore*/spaces"))
    if not later or not any(later[-1].glob("*/tombstones.jsonl")):
        return []
    open_store(staging).close()  # migrates it to this schema
    returned = snapshots.find_returned(staging / DATABASE, later[-1])
    return [
        Again(
            space=row.space,
            tombstone=anyio.run(partial(_forget, staging, row)) if row.ids else row.tombstone,
            ids=len(row.ids),
            was_purged=row.was_purged,
        )
        for row in returned
    ]


async def _forget(home: Path, returned: snapshots.Returned) -> str:
    async with open_memory(
        home=home, space=returned.space, embedder="none", llm="none", rerank=False, now=lambda: returned.at
    ) as memory:
        return await memory.forget_again(returned.ids, reason=returned.reason, how=returned.how)


def _unpack(path: Path, to: Path, tell: ReportProgress) -> BackupManifest:
    with archive.open_backup(path) as (manifest, packed):
        needed = sum(member.bytes for member in manifest.members.values())
        if needed > (free := shutil.disk_usage(to).free):
            raise StoreUnavailable(
                f"{path} unpacks to {needed / 1e6:,.0f} MB, and {to.parent} has {free / 1e6:,.0f} MB free. "
                "Make room; nothing was changed."
            )
        step = step_counter("restoring", len(manifest.members), tell)
        for name, member in manifest.members.items():
            step(1)
            target = to / name
            make_folder(target.parent)
            with open_private(target, "xb") as file:
                archive.unpack(packed, name, member, file)
                file.flush()
                os.fsync(file.fileno())
    return manifest
