"""How each hook ended: which process answered, after how many milliseconds, or why a model got no memory.

`<home>/hooks/outcomes.log` has a line for each prompt and each start, and for each tool result that was not taken. The
hook writes it itself, since the daemon cannot know what it missed. Standard library only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from mcp_memory.core.private_files import open_private, replace_private
from mcp_memory.core.regular_files import read_regular

By = Literal["daemon", "words", "server", "nothing"]
"""What answered: the daemon, or the hook itself, by words alone or from the server; `nothing` is a miss."""

_MAX_BYTES = 400_000
_KEPT_BYTES = 200_000
_RECENT = timedelta(days=7)


def hooks_folder(home: Path) -> Path:
    return home / "hooks"


def outcomes_log(home: Path) -> Path:
    return hooks_folder(home) / "outcomes.log"


def record(home: Path, event: str, by: By, *, seconds: float, cause: str = "") -> None:
    """Append a line for an event; a home without hooks' folder stays without. Never raises OSError."""
    line = f"{time.time():.0f} {event} {by} {1000 * seconds:.0f} {cause}".rstrip()
    log = outcomes_log(home)
    with suppress(OSError):
        if not hooks_folder(home).is_dir():  # a deleted home is not created again
            return
        with open_private(log, "ab") as file:
            file.write(line.encode() + b"\n")
            size = file.tell()
        if size > _MAX_BYTES:
            kept = read_regular(log, 2 * _MAX_BYTES)[-_KEPT_BYTES:]
            replace_private(log, kept[kept.find(b"\n") + 1 :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The hooks of the last week: how many prompts there were, and how many of them were answered by words alone.

    `missed` counts prompts without an answer by their cause; `starts` and `results` the same for starts of sessions
    and for large tool results that stayed as they were.
    """

    prompts: int = 0
    by_words: int = 0
    missed: Mapping[str, int] = field(default_factory=dict[str, int])
    starts: Mapping[str, int] = field(default_factory=dict[str, int])
    results: Mapping[str, int] = field(default_factory=dict[str, int])

    def sentences(self) -> list[str]:
        """Return what went wrong, a sentence each, such as "3 of 120 prompts this week got no memory: …"."""
        parts = (
            (self.missed, f"of {self.prompts:,} prompts this week got no memory"),
            (self.starts, "session starts got no memory"),
            (self.results, "tool results were not looked at"),
        )
        return [
            f"{sum(causes.values()):,} {what}: {', '.join(f'{cause} ({count:,})' for cause, count in causes.items())}"
            for causes, what in parts
            if causes
        ]


def outcomes(home: Path, *, now: datetime) -> Outcomes:
    """Return the outcomes of the last week. `now` is the local time. Lines that make no sense are skipped."""
    try:
        lines = read_regular(outcomes_log(home), 2 * _MAX_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return Outcomes()
    since = (now - _RECENT).timestamp()
    counts = Counter[tuple[str, str]]()
    causes: dict[str, Counter[str]] = {"prompt": Counter(), "start": Counter(), "tool": Counter()}
    for line in lines:
        at, event, by, _, cause, *_ = [*line.split(" ", 4), "", "", "", "", ""]
        if not at.isdigit() or int(at) < since or event not in causes:
            continue
        counts[event, by] += 1
        if by == "nothing":
            causes[event][cause] += 1
    return Outcomes(
        prompts=sum(count for (event, _), count in counts.items() if event == "prompt"),
        by_words=counts["prompt", "words"],
        missed=dict(causes["prompt"].most_common()),
        starts=dict(causes["start"].most_common()),
        results=dict(causes["tool"].most_common()),
    )
