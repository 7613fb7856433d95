"""Plans the changes of an installation or removal, shows them as a diff, and writes them.

Installing twice changes nothing the second time. Uninstalling restores every byte, or deletes a file that did not exist
before, unless it was edited since; then only our part is removed. No record of the installation is needed: the original
is the backup next to the file. If adding our part to the original and removing it again gives the same text as removing
it from the file, the rest of the file counts as unchanged.

Files are replaced atomically. Links are followed: their target is replaced, and the link stays. Mode and, if possible,
owner of the file stay. If another program wrote to the file in between, nothing is written.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import re
import shutil
import stat
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from mcp_memory.core.errors import InvalidInput, McpMemoryError, Refused, StoreUnavailable
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import well_formed
from mcp_memory.integrations.clients import json_text, programs, toml_text, yaml_text
from mcp_memory.integrations.clients.description import ClientProgram, Format, described_clients
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.clients.programs import NAME
from mcp_memory.integrations.clients.settings import WrongShape, add_settings, has_settings, remove_settings, value_at

MAX_BYTES = 16 * 2**20
NEW_FILE = 0o600  # an entry may contain a key


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file as it was read: its given path, the target behind links, and its content (None if it does not exist)."""

    path: Path
    target: Path
    data: bytes | None
    mode: int = NEW_FILE


def backup_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.mcp-memory-backup")


def read_config(path: Path) -> ConfigFile:
    """Read a file. Raises Refused if it must not be edited, StoreUnavailable if it cannot be read."""
    try:
        target = path.resolve()
        if not target.exists():
            if path.is_symlink() and not target.parent.is_dir():
                raise Refused(f"{path} is a link to {target}, and there is no such folder. Mend or remove the link.")
            return ConfigFile(path, target, None)
        about = target.stat()
        if not stat.S_ISREG(about.st_mode):
            raise Refused(f"{path} is not a file. Move it away, or name another place.")
        if about.st_size > MAX_BYTES:
            raise Refused(
                f"{path} has {about.st_size:,} bytes, and more than {MAX_BYTES:,} are no settings of a person. Put the "
                "entry in by hand: `mcp-memory install --print` shows it."
            )
        return ConfigFile(path, target, target.read_bytes(), stat.S_IMODE(about.st_mode))
    except (OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        raise StoreUnavailable(f"{path} cannot be read: {_reason(error)}. Nothing was changed.") from None


def decode(data: bytes | None, path: Path) -> str:
    """Decode a file. Raises InvalidInput unless it is UTF-8."""
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 (byte {error.start:,}), so it was left as it is. Save it as UTF-8 and try again."
        ) from None


def read_document(path: Path, format: Format) -> dict[str, Any]:  # noqa: A002
    """Parse a configuration, `{}` if there is no file. Raises as `plan_install` does."""
    return _parse(decode(read_config(path).data, path), format, path)


def check_writable(file: ConfigFile) -> None:
    """Raise Refused if the file is read-only, even if this user could replace it."""
    if file.data is not None and not (file.mode & stat.S_IWUSR and os.access(file.target, os.W_OK)):
        raise Refused(
            f"{file.path} is read-only, so it was left as it is. Make it writable, or put the entry in by hand: "
            "`mcp-memory install --print` shows it."
        )


def write_config(file: ConfigFile, data: bytes, *, backup: bool = False) -> None:
    """Replace or create the file; with `backup`, write its old content to the backup first.

    Raises Refused if the file has changed since it was read, StoreUnavailable if it cannot be written. In both
    cases the file is unchanged.
    """
    check_writable(file)
    contents = {file.target: data}
    if backup and file.data is not None:
        contents = {backup_path(file.target): file.data, **contents}
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in contents}
    try:
        file.target.parent.mkdir(parents=True, exist_ok=True)
        _check_unchanged(file)
        for path, content in contents.items():
            _write(temporary[path], content, file)
        _check_unchanged(file)
        for path, written in temporary.items():  # a full disk would have failed before this
            written.replace(path)
        _fsync_folder(file.target.parent)
    except OSError as error:
        raise StoreUnavailable(f"{file.path} cannot be written: {_reason(error)}. It was left as it is.") from None
    finally:
        for written in temporary.values():
            with suppress(OSError):
                written.unlink(missing_ok=True)


def delete_config(file: ConfigFile) -> None:
    """Delete the file. Raises as `write_config` does."""
    check_writable(file)
    try:
        _check_unchanged(file)
        file.target.unlink()
        if file.target.parent.name == NAME:  # the folder of a plugin
            shutil.rmtree(file.target.parent / "__pycache__", ignore_errors=True)
            with suppress(OSError):  # another file is left in it
                file.target.parent.rmdir()
    except OSError as error:
        raise StoreUnavailable(f"{file.path} cannot be removed: {_reason(error)}. It was left as it is.") from None


def _write(path: Path, data: bytes, like: ConfigFile) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, NEW_FILE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if like.data is not None:
        if hasattr(os, "chown"):
            about = like.target.stat()
            with suppress(OSError):
                os.chown(path, about.st_uid, about.st_gid)
        path.chmod(like.mode)


def _check_unchanged(file: ConfigFile) -> None:
    now = file.target.read_bytes() if file.target.exists() else None
    if now != file.data:
        raise Refused(f"Another program changed {file.path} in the meantime, so it was left as it is. Try again.")


def _fsync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every system can open folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is a link that leads to itself"


@dataclass(frozen=True, slots=True)
class ConfigPart:
    """Our part of a file: the server under a name, hooks by event, settings that enable a plugin.

    A file of a plugin is ours as a whole: `content`.
    """

    path: Path
    format: Format
    client: ClientProgram
    name: str
    server: Mapping[str, Any] | None = None
    hooks: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, list[Any]])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    content: bytes | None = None

    @property
    def is_empty(self) -> bool:
        return self.server is None and not self.runs_hooks

    @property
    def runs_hooks(self) -> bool:
        return bool(self.hooks or self.settings or self.content is not None)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A planned change of a file. `after` is its new content, None to delete it."""

    file: ConfigFile
    after: bytes | None
    makes_backup: bool = False
    deletes_backup: bool = False

    @property
    def changes(self) -> bool:
        return self.file.data != self.after


def find_installed(part: ConfigPart) -> tuple[dict[str, Any] | None, bool]:
    """Return the entry of that name, ours or not, and whether our hooks are there. Raises as `plan_install` does.

    A plugin that settings must enable is there if they do, any other if its files are.
    """
    if part.content is not None:
        enables_itself = part.client.plugin is not None and not part.client.plugin.enabled
        return None, enables_itself and read_config(part.path).data is not None
    document = read_document(part.path, part.format)
    with _naming_file(part):
        entry = programs.find_server(document, part.client, part.name) if part.server is not None else None
        hooked = bool(part.hooks and programs.find_hooks(document))
        return entry, hooked or has_settings(document, part.settings)


def find_switch_off(client: ClientProgram, project: Path | None) -> str | None:
    """Return where hooks of a client are switched off, as `disableAllHooks = true in …/settings.json`; None if nowhere.

    Files that cannot be read are passed over: the client would not read them either.
    """
    hooks = client.hooks
    if hooks is None:
        return None
    for path in map(Path, programs.settings_files(client, programs.this_machine(), project)):
        try:
            text = decode(read_config(path).data, path)
            document = _parse(text, "toml" if path.suffix == ".toml" else "json5", path)
        except McpMemoryError:
            continue
        for name, value in hooks.off.items():
            if document.get(name, value_at(document, name)) is value:
                return f"{name} = {json.dumps(value)} in {path}"
    return None


def installed_but_off() -> dict[str, str]:
    """Return the clients that have our hooks for all projects and run none here: where they are switched off, by title.

    The settings of the working directory count too. Files that cannot be read are passed over.
    """
    return {
        client.title: where
        for client in described_clients()
        if _runs_hooks(client) and (where := find_switch_off(client, Path()))
    }


def _runs_hooks(client: ClientProgram) -> bool:
    for part in config_parts(client.name, programs.this_command(), name=NAME, project=None, env={}, hooks=True):
        with suppress(McpMemoryError):
            if find_installed(part)[1]:
                return True
    return False


def find_plugins(project: Path | None) -> dict[str, bool]:
    """Return our plugins in Claude Code and whether each is enabled, everywhere or in a project.

    Raises as `plan_install` does.
    """
    enabled: dict[str, bool] = {}
    for path in map(Path, programs.plugin_files(programs.this_machine(), project)):
        document = read_document(path, "json")
        try:
            enabled |= programs.find_plugins(document)
        except WrongShape as error:
            raise InvalidInput(f"In {path}, {error}.") from None
    return enabled


def standalone_text(part: ConfigPart) -> str:
    """Return the text of a file that has only our part."""
    return part.content.decode() if part.content is not None else _rewrite("", _add_part({}, part), part)


def plan_install(part: ConfigPart) -> ConfigChange:
    """Plan to add our part to its file; nothing is written yet.

    Raises InvalidInput if the file cannot be parsed, Refused if it must not be edited, StoreUnavailable if it cannot be
    read.
    """
    file = read_config(part.path)
    if part.content is not None:
        return ConfigChange(file, part.content)
    text = decode(file.data, part.path)
    before = _parse(text, part.format, part.path)
    with _naming_file(part):
        after = _rewrite(text, _add_part(before, part), part)
    if after == text and file.data is not None:
        return ConfigChange(file, file.data)
    check_writable(file)
    return ConfigChange(file, after.encode(), makes_backup=file.data is not None and not _contains_ours(before, part))


def plan_removal(part: ConfigPart) -> ConfigChange:
    """Plan to remove our part from its file, in whatever form it is there. Raises as `plan_install` does."""
    file = read_config(part.path)
    if part.content is not None:
        return ConfigChange(file, None)
    text = decode(file.data, part.path)
    now = _parse(text, part.format, part.path)
    with _naming_file(part):
        ours = _find_ours(now, part)
    if file.data is None or ours.is_empty:
        return ConfigChange(file, file.data)
    check_writable(file)
    backup = read_config(backup_path(file.target)).data
    before = _read_original(backup, part)
    less = _text_without(text, ours, before or {})
    if before is not None:
        original = decode(backup, part.path)
        if _text_without(_rewrite(original, _add_part(before, ours), part), ours, before) == less:
            return ConfigChange(file, backup, deletes_backup=True)
    if backup is None and less.removeprefix(json_text.BOM).strip() in ("", "{}"):
        return ConfigChange(file, None)
    return ConfigChange(file, less.encode())


def plan_setting(config: Path, name: str, value: str) -> ConfigChange:
    """Plan to add a new setting to the `config.toml` of a home. Raises as `plan_install` does."""
    file = read_config(config)
    check_writable(file)
    text = decode(file.data, config)
    return ConfigChange(file, f"{name} = {json.dumps(value)}\n{text}".encode())


def apply_changes(changes: Iterable[ConfigChange]) -> None:
    """Write all changes, then delete the backups of restored files.

    If a change fails, the changes before it are undone, and its error is raised.
    """
    done: list[ConfigChange] = []
    try:
        for change in (change for change in changes if change.changes):
            if change.after is None:
                delete_config(change.file)
            else:
                write_config(change.file, change.after, backup=change.makes_backup)
            done.append(change)
    except McpMemoryError:
        for change in reversed(done):
            now = read_config(change.file.path)
            write_config(now, change.file.data) if change.file.data is not None else delete_config(now)
        _delete_backups(change for change in done if change.makes_backup)
        raise
    _delete_backups(change for change in done if change.deletes_backup)


def _delete_backups(changes: Iterable[ConfigChange]) -> None:
    for change in changes:
        backup = read_config(backup_path(change.file.target))
        if backup.data is not None:
            delete_config(backup)


def diff(change: ConfigChange) -> str:
    """Return the change as a unified diff that `patch` accepts, secrets masked.

    A document on one line is shown formatted, which the heading mentions.
    """
    path = str(change.file.path)
    before, after = (_decode_leniently(data) for data in (change.file.data, change.after))
    old, new = ("/dev/null" if data is None else path for data in (change.file.data, change.after))
    if json_text.is_minified(before) and json_text.is_minified(after):
        before, after, new = _format_json(before), _format_json(after), f"{path} (one line, formatted here)"
    shown = difflib.unified_diff(_lines(before), _lines(after), old, new)
    return "".join(mask(line) if line.endswith("\n") else f"{mask(line)}\n{_NO_NEWLINE}\n" for line in shown)


_NO_NEWLINE = "\\ No newline at end of file"


def _lines(text: str) -> list[str]:
    """Split a text at newlines only, which are kept; JSON may contain other separators of lines."""
    return list(io.StringIO(text))


# --- parts ------------------------------------------------------------------------------------------
def _add_part(before: Mapping[str, Any], part: ConfigPart) -> dict[str, Any]:
    after = dict(before)
    if part.server is not None:
        after = programs.add_server(after, part.client, part.name, part.server)
    return add_settings(programs.set_hooks(after, part.hooks, _beside(part)), part.settings)


def _remove_part(now: Mapping[str, Any], ours: ConfigPart, before: Mapping[str, Any]) -> dict[str, Any]:
    after = programs.remove_server(now, ours.client, ours.name, before=before) if ours.server else now
    after = programs.remove_hooks(after, empty=before, beside=_beside(ours)) if ours.hooks else after
    return remove_settings(after, ours.settings, before)


def _beside(part: ConfigPart) -> Mapping[str, Any]:
    return part.client.hooks.beside if part.client.hooks else {}


def _text_without(text: str, ours: ConfigPart, before: Mapping[str, Any]) -> str:
    return _rewrite(text, _remove_part(_parse(text, ours.format, ours.path), ours, before), ours)


def _find_ours(now: Mapping[str, Any], part: ConfigPart) -> ConfigPart:
    """Return our server and hooks in the document, restricted to what the part contains."""
    server = programs.find_server(now, part.client, part.name) if part.server is not None else None
    if server is not None and not programs.is_ours(server):
        server = None
    hooks = programs.find_hooks(now) if part.hooks else {}
    settings: Mapping[str, Any] = part.settings if has_settings(now, part.settings) else {}
    return ConfigPart(part.path, part.format, part.client, part.name, server, hooks, settings)


def _contains_ours(now: Mapping[str, Any], part: ConfigPart) -> bool:
    servers = cast("dict[str, Any]", value_at(now, part.client.key) or {})
    try:
        hooked = bool(programs.find_hooks(now))
    except WrongShape:  # Codex keeps a record of trusted hooks there
        hooked = False
    return hooked or any(
        isinstance(server, dict) and programs.is_ours(cast("dict[str, Any]", server)) for server in servers.values()
    )


def _read_original(backup: bytes | None, part: ConfigPart) -> dict[str, Any] | None:
    """Return the document of the backup; None if it cannot be read or already contains our part."""
    if backup is None:
        return None
    try:
        before = _parse(decode(backup, part.path), part.format, part.path)
        return before if _find_ours(before, part).is_empty else None
    except (McpMemoryError, WrongShape):
        return None


@contextmanager
def _naming_file(part: ConfigPart) -> Generator[None]:
    try:
        yield
    except WrongShape as error:
        raise InvalidInput(f"In {part.path}, {error}. It was left as it is; mend it and try again.") from None


# --- texts ------------------------------------------------------------------------------------------
_BAD = (json_text.BadJson, toml_text.BadToml, yaml_text.BadYaml)


def _parse(text: str, format: Format, path: Path) -> dict[str, Any]:  # noqa: A002
    try:
        match format:
            case "toml":
                value: Any = toml_text.read_toml(text)
            case "yaml":
                value = yaml_text.read_yaml(text)
            case _:
                value = json_text.read_json(text, format)
    except _BAD as error:
        kind = format.upper() if format in ("toml", "yaml", "json5") else "JSON"
        raise InvalidInput(
            f"{path} is not valid {kind}: {error}. It was left as it is; mend it and try again."
        ) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{path} does not hold an object, so it was left as it is. Mend it and try again.")
    return cast("dict[str, Any]", value)


def _rewrite(text: str, value: Mapping[str, Any], part: ConfigPart) -> str:
    try:
        match part.format:
            case "toml":
                return toml_text.rewrite_toml(text, value)
            case "yaml":
                return yaml_text.rewrite_yaml(text, value)
            case _:
                return json_text.rewrite_json(text, dict(value), part.format)
    except _BAD as error:
        raise Refused(
            f"{part.path} was left as it is: {error}. Change it by hand, or with {part.client.title}."
        ) from None


def _decode_leniently(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace").removeprefix(json_text.BOM)


def _format_json(text: str) -> str:
    try:
        return json.dumps(json_text.read_json(text), indent=2, ensure_ascii=False)
    except json_text.BadJson:  # TOML
        return text


def config_parts(
    client_name: str, command: Sequence[str], *, name: str, project: Path | None, env: Mapping[str, str], hooks: bool
) -> list[ConfigPart]:
    """Return the parts for the server and for the hooks, in the same or in two files.

    `command` starts this program, with the options that name the memory. Raises InvalidInput for a client that is
    unknown or has no projects, and for names that no client can read.
    """
    _check_values(name, command, env)
    client = programs.client_named(client_name)
    machine = programs.this_machine()
    path = programs.existing_path(programs.server_files(client.name, machine, project))
    start = _shareable_command(command) if project else command
    server = programs.server_entry(client, [*start, "serve"], env)
    hooks_config = hooks_of(client.name, command) if hooks and client.hooks else {}
    hooks_format = client.hooks.format if client.hooks else client.format
    beside = [Path(file) for file in programs.hooks_files(client.name, machine, project)] if hooks_config else []
    if hooks and client.plugin and project is None:
        return _parts_with_plugin(ConfigPart(path, client.format, client, name, server), command)
    return [
        ConfigPart(path, client.format, client, name, server, hooks_config if beside == [path] else {}),
        *(ConfigPart(file, hooks_format, client, name, hooks=hooks_config) for file in beside if file != path),
    ]


def _parts_with_plugin(part: ConfigPart, command: Sequence[str]) -> list[ConfigPart]:
    """Return the part for the server, with the settings that enable the client's plugin, and a part for each file."""
    client, folder = part.client, programs.plugin_folder(part.client, programs.this_machine())
    if folder is None:
        return [part]
    try:
        document = read_document(part.path, part.format)
    except McpMemoryError:
        document = {}  # reading the part raises it
    files = programs.plugin_contents(client, command)
    return [
        replace(part, settings=programs.plugin_settings(client, document)),
        *(replace(part, path=folder / name, server=None, content=content) for name, content in files.items()),
    ]


def for_any_client(command: Sequence[str], *, name: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration that most unknown clients expect. Raises InvalidInput as `config_parts` does."""
    _check_values(name, command, env)
    return {"mcpServers": {name: programs.server_entry(None, [*command, "serve"], env)}}


def _check_values(name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", name):
        raise InvalidInput(f"The name {name!r} is not one that every client takes. Use letters, digits, - and _.")
    if strange := next((word for word in (*command, *env, *env.values()) if not well_formed(word)), None):
        raise InvalidInput(f"{strange!r} is not UTF-8, and configurations are. Use another path or value.")


def _shareable_command(command: Sequence[str]) -> Sequence[str]:
    """Return the command for a file shared with others: the bare name, if PATH resolves it to this program."""
    named = shutil.which(NAME)
    same = named is not None and Path(named).resolve() == Path(command[0]).resolve()
    return [NAME, *command[1:]] if same else command


def is_client_present(part: ConfigPart) -> bool:
    """Return whether the client seems to be installed: its folder or its command exists."""
    place = part.path if part.path.parent == Path.home() else part.path.parent
    return place.exists() or bool(part.client.program and shutil.which(part.client.program))
