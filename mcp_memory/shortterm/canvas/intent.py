"""What a tool call is for, as far as its words tell: so that routine steps of one intent become one node.

Guarantees: pure and deterministic; a call whose words say nothing has the intent of its own tool and verb, and then
goes on only with more of the same. It errs on the side of a node too many: what changes something, and what turns
out otherwise than before, begins a node.

    look     reads and searches: any number of calls in a row
    change   writes to one file; a run of that file after it belongs to it
    run      runs one thing, as long as it turns out the same way
    install  brings in what is needed to run
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from mcp_memory.shortterm.canvas.flowchart import TITLE_LIMIT
from mcp_memory.shortterm.results.records import command_of, path_of, short_name, subject_of

__all__ = ["Doing", "doing", "goes_on", "grown", "of_title"]

Intent = Literal["look", "change", "run", "install", "other"]

_LOOK = re.compile(
    r"(?:ag|awk|cat|cut|df|diff|dir|du|fd|file|find|grep|head|jq|less|ls|more|nl|pwd|rg|sed|sort|stat|tail|tree|wc|which)$"
)
_CHANGE = frozenset(("cp", "mkdir", "mv", "patch", "rm", "rmdir", "tee", "touch", "truncate"))
_RUN = re.compile(
    r"python|pytest|node|ruby|php|perl|bash|sh\b|make|np[mx]|yarn|pnpm|go\b|cargo|java|mvn|gradle|tox|\./"
)
_INSTALL = re.compile(
    r"(?:python[\d.]* -m )?(?:pip\d?|pipx|uv|poetry|conda|npm|pnpm|yarn|bun|cargo|go|gem|bundle|brew|apt|apt-get|dnf)"
    r"(?: pip)? (?:install|add|get|ci|sync|i)\b"
)
_GIT_LOOK = re.compile(r"git (?:-\S+ )*(?:diff|log|show|status|blame|grep|ls-files|branch|rev-parse)\b")
_GIT_CHANGE = re.compile(r"git (?:-\S+ )*(?:checkout|restore|reset|apply|stash|revert|clean)\b")
_WRITES = re.compile(r"(?<![\d&<>=-])>{1,2}\s*(?!/dev/|&)([\w./~$-]+)|\btee (?:-a )?([\w./~$-]+)")
_IN_PLACE = re.compile(r"\b(?:sed (?:-\S+ )*?(?:-[a-zA-Z]*i\b|--in-place)|perl -p?i)")
_ASIDE = re.compile(r"""\d?>+\s*(?:/dev/\S+|&\d)|"[^"]*"|'[^']*'""")
_FILE = re.compile(r"[\w./~-]*\w\.[A-Za-z]\w{0,9}\b|[\w.~-]*/[\w./~-]*\w")
_QUOTED = re.compile(r"""["']([^"'\n]{2,40})["']""")
_LOOK_TOOL = re.compile(
    r"(?:read|view|open|cat|get|list|ls|glob|grep|find|search|lookup|look|fetch|query|describe|show|browse|inspect|web)"
    r"(?:$|_|-|(?=[A-Z]))|websearch|webfetch",
    re.IGNORECASE,
)
_CHANGE_TOOL = re.compile(
    r"(?:write|edit|multiedit|str_replace|replace|create|insert|patch|apply|update|append|save|delete|move|rename)"
    r"(?:$|_|-|(?=[A-Z]))|notebookedit",
    re.IGNORECASE,
)
_MORE = re.compile(r" \(\+(\d+) more\)$")
_CUT = re.compile(r"\s*\S*…")
_LOOKED = "Look: "
_LOOKED_CHARS = 56


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """A call: what it is for, what with, whether it failed. `verb` is its tool, or the first word of its command."""

    intent: Intent
    verb: str
    subject: str
    failed: bool = False
    title: str = ""
    """A better name for a step of it than its command, where there is one."""

    @property
    def key(self) -> str:
        """What is kept of it with its move, so that a later call can be seen to go on with it."""
        return " ".join([self.intent, "failed" if self.failed else "ok", self.verb.replace(" ", "_"), self.subject])


def doing(tool: str, arguments: object, *, failed: bool = False) -> Doing:
    """Return what a call is for."""
    if command := command_of(arguments):
        return _of_command(command, failed)
    name = short_name(tool)
    intent: Intent = "look" if _LOOK_TOOL.match(name) else "change" if _CHANGE_TOOL.match(name) else "other"
    return Doing(
        intent=intent, verb=name, subject=_last_part(path_of(arguments)) or subject_of(arguments), failed=failed
    )


@lru_cache(maxsize=4096)
def of_title(title: str) -> Doing | None:
    """Return what a step is for by its title, where that is a call's; None where somebody named it otherwise."""
    words = _CUT.sub("", _MORE.sub("", title))
    if words.startswith(_LOOKED):
        return Doing(intent="look", verb="", subject=words.removeprefix(_LOOKED).split(", ")[0])
    verb, _, rest = words.partition(" ")
    if verb in ("Write", "Edit"):
        subject = rest.removeprefix("and run ")
        return Doing(intent="change", verb="", subject=subject) if _FILE.fullmatch(subject) else None
    if verb.islower() and (found := _of_command(words, False)).intent != "other":
        return found
    named = _QUOTED.search(rest) or _FILE.fullmatch(rest)
    if not named:
        return None
    intent: Intent = "look" if _LOOK_TOOL.match(verb) else "change" if _CHANGE_TOOL.match(verb) else "other"
    return Doing(intent=intent, verb=verb, subject=_last_part(named[0]).strip("\"'"))


def _of_command(command: str, failed: bool) -> Doing:
    line = command.split("<<")[0]
    verb = _last_part(line.split(maxsplit=1)[0]) if line.strip() else "sh"
    names = [_last_part(found) for found in _FILE.findall(_ASIDE.sub(" ", line))]
    files = [name for name in names if "." in name]
    pattern = next((found for found in reversed(_QUOTED.findall(line)) if "*." not in found), "")
    wrote = _WRITES.search(_QUOTED.sub(" ", line))
    target = _last_part(wrote[1] or wrote[2]) if wrote else ""
    intent: Intent = "other"
    subject, title = next(iter([*files[-1:], pattern, *names[-1:]]), ""), ""
    if _INSTALL.match(line):
        intent, subject = "install", ""
    elif target and not _RUN.match(verb):
        intent, subject, title = "change", target, f"Write {target}"
    elif _IN_PLACE.search(line):
        intent, title = "change", f"Edit {subject}" if subject else ""
    elif verb in _CHANGE or _GIT_CHANGE.match(line):
        intent = "change"
    elif _LOOK.match(verb) or _GIT_LOOK.match(line):
        intent = "look"
    elif _RUN.match(verb) or line.startswith("./"):
        intent, subject = "run", next(iter(files or names), "")
    return Doing(intent=intent, verb=verb, subject=subject, failed=failed, title=title)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


# --- in a row ---------------------------------------------------------------------------------------


def goes_on(before: str, now: Doing) -> bool:
    """Tell whether a call is more of what the node did last; `before` is that call's key."""
    last = _read(before)
    if last is None:
        return False
    same_way, same_thing = last.failed == now.failed, bool(now.subject) and last.subject == now.subject
    match last.intent, now.intent:
        case ("look", "look") | ("install", "install"):
            return True
        case ("change", "change") | ("change", "run"):
            return same_thing
        case ("run", "run"):
            return same_thing and same_way
        case ("other", "other"):
            return last.verb == now.verb and same_way
        case _:
            return False


def grown(title: str, before: str, now: Doing) -> str:
    """Return the title of a node that a call goes on with: `Read app.py (+2 more)`, or what was looked at, by name."""
    last = _read(before)
    bare, more = _MORE.sub("", title), int(found[1]) if (found := _MORE.search(title)) else 0
    if last and now.intent == "run" and bare == f"Write {now.subject}":
        return f"Write and run {now.subject}"
    if last and now.intent == "look" and not more and now.subject:
        if last.verb != now.verb and last.subject and not bare.startswith(_LOOKED):
            bare = f"{_LOOKED}{last.subject}"
        if bare.startswith(_LOOKED):
            if now.subject in bare.removeprefix(_LOOKED).split(", "):
                return bare
            if len(bare) + len(now.subject) <= _LOOKED_CHARS:
                return f"{bare}, {now.subject}"
    suffix = f" (+{more + 1} more)"
    room = TITLE_LIMIT - len(suffix)
    return (bare if len(bare) <= room else bare[: room - 1].rstrip() + "…") + suffix


def _read(key: str) -> Doing | None:
    parts = key.split(" ", 3)
    intent = next((each for each in get_args(Intent) if each == parts[0]), None)
    if intent is None or len(parts) != 4:
        return None
    return Doing(intent=intent, verb=parts[2], subject=parts[3], failed=parts[1] == "failed")
