"""Plans the changes of an installation or removal, shows them as a diff, and carries them out.

Installing twice changes nothing the second time. Uninstalling restores every byte, or removes a file that did not exist
before, unless others wrote to it; otherwise only our part is removed. No record of the installation is needed:
the original is the backup beside the file, and the rest is untouched if our part, put into the original and removed
again, leaves the same as removing it from the file.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from mcp_memory.core.errors import InvalidInput, McpMemoryError, Refused
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import well_formed
from mcp_memory.integrations.clients import config_file, config_text, programs
from mcp_memory.integrations.clients.config_file import ConfigFile
from mcp_memory.integrations.clients.programs import NAME, ClientProgram, Format
from mcp_memory.integrations.hooks import hooks_of


@dataclass(frozen=True, slots=True)
class ConfigPart:
    """Our part of one file: the server under a name, hooks by event, or both. An empty part has neither."""

    path: Path
    format: Format
    of: ClientProgram
    name: str
    server: Mapping[str, Any] | None = None
    hooks: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, list[Any]])

    @property
    def is_empty(self) -> bool:
        return self.server is None and not self.hooks


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A file and its new content; None is no file. `makes_backup`, `ends_backup`: the backup is made or removed."""

    found: ConfigFile
    after: bytes | None
    makes_backup: bool = False
    ends_backup: bool = False

    @property
    def changes(self) -> bool:
        return self.found.data != self.after


def find_installed(part: ConfigPart) -> tuple[dict[str, Any] | None, bool]:
    """Return the entry of that name, whoever's it is, and whether hooks of ours are there. Raises as `installed`."""
    document = _parse(config_file.decode(config_file.read_config(part.path).data, part.path), part.format, part.path)
    with _naming_file(part):
        entry = programs.find_server(document, part.of, part.name) if part.server is not None else None
        return entry, bool(part.hooks and programs.find_hooks(document))


def find_plugins(project: Path | None) -> dict[str, bool]:
    """Return our plugins in Claude Code, and whether each is enabled, everywhere or in a project."""
    enabled: dict[str, bool] = {}
    for path in map(Path, programs.plugin_files(programs.this_machine(), project)):
        document = _parse(config_file.decode(config_file.read_config(path).data, path), "json", path)
        try:
            enabled |= programs.find_plugins(document)
        except programs.WrongShape as error:
            raise InvalidInput(f"In {path}, {error}.") from None
    return enabled


def standalone_text(part: ConfigPart) -> str:
    """Return the text of a file that has nothing but our part."""
    return _rewrite("", _add_part({}, part), part)


def plan_install(part: ConfigPart) -> ConfigChange:
    """Plan to put our part into its file. Raises InvalidInput, Refused or StoreUnavailable; nothing is written."""
    file = config_file.read_config(part.path)
    text = config_file.decode(file.data, part.path)
    before = _parse(text, part.format, part.path)
    with _naming_file(part):
        after = _rewrite(text, _add_part(before, part), part)
    if after == text and file.data is not None:
        return ConfigChange(file, file.data)
    config_file.check_writable(file)
    kept = config_file.read_config(config_file.backup_path(file.target)).data is not None and _contains_ours(
        before, part
    )
    return ConfigChange(file, after.encode(), makes_backup=file.data is not None and not kept)


def plan_removal(part: ConfigPart) -> ConfigChange:
    """Plan to remove our part from its file, whatever it looks like now."""
    file = config_file.read_config(part.path)
    text = config_file.decode(file.data, part.path)
    now = _parse(text, part.format, part.path)
    with _naming_file(part):
        ours = _find_ours(now, part)
    if file.data is None or ours.is_empty:
        return ConfigChange(file, file.data)
    config_file.check_writable(file)
    backup = config_file.read_config(config_file.backup_path(file.target)).data
    before = _read_original(backup, part)
    less = _text_without(text, ours, before or {})
    if before is not None:
        original = config_file.decode(backup, part.path)
        if _text_without(_rewrite(original, _add_part(before, ours), part), ours, before) == less:
            return ConfigChange(file, backup, ends_backup=True)
    if backup is None and less.removeprefix(config_text.BOM).strip() in ("", "{}"):
        return ConfigChange(file, None)
    return ConfigChange(file, less.encode())


def plan_setting(config: Path, name: str, value: str) -> ConfigChange:
    """Plan to add a setting of ours that is not there yet to the `config.toml` of a home. Raises as `installed`."""
    file = config_file.read_config(config)
    config_file.check_writable(file)
    text = config_file.decode(file.data, config)
    return ConfigChange(file, f"{name} = {json.dumps(value)}\n{text}".encode())


def apply_changes(changes: Iterable[ConfigChange]) -> None:
    """Write all of them or, where one fails, none: those before it are put back."""
    done: list[ConfigChange] = []
    try:
        for change in (change for change in changes if change.changes):
            if change.after is None:
                config_file.delete_config(change.found)
            else:
                config_file.write_config(change.found, change.after, backup=change.makes_backup)
            done.append(change)
    except McpMemoryError:
        for change in reversed(done):
            now = config_file.read_config(change.found.path)
            config_file.write_config(
                now, change.found.data
            ) if change.found.data is not None else config_file.delete_config(now)
        _delete_backups(change for change in done if change.makes_backup)
        raise
    _delete_backups(change for change in done if change.ends_backup)


def _delete_backups(changes: Iterable[ConfigChange]) -> None:
    for change in changes:
        backup = config_file.read_config(config_file.backup_path(change.found.target))
        if backup.data is not None:
            config_file.delete_config(backup)


def diff(change: ConfigChange) -> str:
    """Return the whole change as a unified diff for people, secrets masked.

    A document that is all on one line is shown over several, and the heading says so.
    """
    path = str(change.found.path)
    before, after = (_decode_leniently(data) for data in (change.found.data, change.after))
    heading = path if change.after is not None else "(no file)"
    if config_text.is_minified(before) and config_text.is_minified(after):
        before, after, heading = _format_json(before), _format_json(after), f"{path} (one line, formatted here)"
    shown = difflib.unified_diff(before.splitlines(), after.splitlines(), path, heading, lineterm="")
    return "\n".join(map(mask, shown))


# --- parts ------------------------------------------------------------------------------------------


def _add_part(before: Mapping[str, Any], part: ConfigPart) -> dict[str, Any]:
    after = dict(before)
    if part.server is not None:
        after = programs.add_server(after, part.of, part.name, part.server)
    return programs.set_hooks(after, part.hooks)


def _remove_part(now: Mapping[str, Any], ours: ConfigPart, before: Mapping[str, Any]) -> dict[str, Any]:
    after = programs.remove_server(now, ours.of, ours.name, emptied=ours.of.key not in before) if ours.server else now
    return programs.remove_hooks(after, empty=before) if ours.hooks else dict(after)


def _text_without(text: str, ours: ConfigPart, before: Mapping[str, Any]) -> str:
    return _rewrite(text, _remove_part(_parse(text, ours.format, ours.path), ours, before), ours)


def _find_ours(now: Mapping[str, Any], part: ConfigPart) -> ConfigPart:
    """Return what the document has of the part: the server when the part has one, hooks when it has some."""
    server = programs.find_server(now, part.of, part.name) if part.server is not None else None
    if server is not None and not programs.is_ours(server):
        server = None
    hooks = programs.find_hooks(now) if part.hooks else {}
    return ConfigPart(part.path, part.format, part.of, part.name, server, hooks)


def _contains_ours(now: Mapping[str, Any], part: ConfigPart) -> bool:
    servers = cast("dict[str, Any]", now.get(part.of.key) or {})
    try:
        hooked = bool(programs.find_hooks(now))
    except programs.WrongShape:  # what Codex notes there of the hooks that were trusted
        hooked = False
    return hooked or any(
        isinstance(server, dict) and programs.is_ours(cast("dict[str, Any]", server)) for server in servers.values()
    )


def _read_original(backup: bytes | None, part: ConfigPart) -> dict[str, Any] | None:
    """Return what the backup says, unless it cannot be read or has something of ours in it too."""
    if backup is None:
        return None
    try:
        before = _parse(config_file.decode(backup, part.path), part.format, part.path)
        return before if _find_ours(before, part).is_empty else None
    except (McpMemoryError, programs.WrongShape):
        return None


@contextmanager
def _naming_file(part: ConfigPart) -> Generator[None]:
    try:
        yield
    except programs.WrongShape as error:
        raise InvalidInput(f"In {part.path}, {error}. It was left as it is; mend it and try again.") from None


# --- texts ------------------------------------------------------------------------------------------


def _parse(text: str, format: Format, path: Path) -> dict[str, Any]:  # noqa: A002
    try:
        value: Any = config_text.read_toml(text) if format == "toml" else config_text.read_json(text, format)
    except (config_text.BadJson, config_text.BadToml) as error:
        kind = "TOML" if format == "toml" else "JSON"
        raise InvalidInput(
            f"{path} is not valid {kind}: {error}. It was left as it is; mend it and try again."
        ) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{path} does not hold an object, so it was left as it is. Mend it and try again.")
    return cast("dict[str, Any]", value)


def _rewrite(text: str, value: Mapping[str, Any], part: ConfigPart) -> str:
    try:
        if part.format == "toml":
            return config_text.rewrite_toml(text, value)
        return config_text.rewrite_json(text, dict(value), part.format)
    except (config_text.BadJson, config_text.BadToml) as error:
        raise Refused(f"{part.path} was left as it is: {error}. Change it by hand, or with {part.of.title}.") from None


def _decode_leniently(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace").removeprefix(config_text.BOM)


def _format_json(text: str) -> str:
    try:
        return json.dumps(config_text.read_json(text), indent=2, ensure_ascii=False)
    except config_text.BadJson:  # TOML
        return text


def config_parts(
    client: str, command: Sequence[str], *, name: str, project: Path | None, env: Mapping[str, str], hooks: bool
) -> list[ConfigPart]:
    """Return the server's part and that of the hooks, in the same or another file.

    `command` starts this program, with the options that name the memory. Raises InvalidInput for a client that is
    unknown or has no projects, and for names that no client could read.
    """
    _check_values(name, command, env)
    of = programs.client_named(client)
    machine = programs.this_machine()
    path = programs.existing_path(programs.server_files(of.name, machine, project))
    start = _shareable_command(command) if project else command
    server = programs.server_entry(of, [*start, "serve"], env)
    hooks_config = hooks_of(of.name, command) if hooks else {}
    beside = [Path(file) for file in programs.hooks_files(of.name, machine, project)] if hooks_config else []
    return [
        ConfigPart(path, of.format, of, name, server, hooks_config if beside == [path] else {}),
        *(ConfigPart(file, "json", of, name, hooks=hooks_config) for file in beside if file != path),
    ]


def for_any_client(command: Sequence[str], *, name: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return what most clients that are not known here want to see in their file. Raises InvalidInput as `parts`."""
    _check_values(name, command, env)
    return {"mcpServers": {name: programs.server_entry(None, [*command, "serve"], env)}}


def _check_values(name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
        raise InvalidInput(f"The name {name!r} is not one that every client takes. Use letters, digits, - and _.")
    if strange := next((word for word in (*command, *env, *env.values()) if not well_formed(word)), None):
        raise InvalidInput(f"{strange!r} is not UTF-8, and configurations are. Use another path or value.")


def _shareable_command(command: Sequence[str]) -> Sequence[str]:
    """Return the command for a file that others share: by its name, where a PATH leads to it."""
    named = shutil.which(NAME)
    same = named is not None and Path(named).resolve() == Path(command[0]).resolve()
    return [NAME, *command[1:]] if same else command


def is_client_present(part: ConfigPart) -> bool:
    """Return whether the client seems to be on this machine: its folder or its command is."""
    place = part.path if part.path.parent == Path.home() else part.path.parent
    return place.exists() or bool(part.of.program and shutil.which(part.of.program))
