"""`install` and `uninstall`: add this server to the configuration of MCP clients, and take it out again."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import ask_memory, command_settings, memory_options, say, settings
from mcp_memory.cli.terminal import columns, escape_controls, json_text
from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound, Refused
from mcp_memory.core.private_files import make_folder
from mcp_memory.core.text import plural, safe_name

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.integrations.clients.description import ClientProgram
    from mcp_memory.integrations.clients.plan import ConfigChange, ConfigPart
    from mcp_memory.integrations.clients.server_check import Greeting

NAME = "memory"

_project = click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True, resolve_path=True),
    help="Only in this folder, instead of everywhere.",
)
_name = click.option("--name", default=NAME, show_default=True, help="What the client calls the server.")
_yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
_show = click.option("--show", "only_show", is_flag=True, help="Show the exact change as a diff, and change nothing.")


@click.command()
@click.argument("client", required=False)
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Give the server this variable, such as a key.")
@_project
@_name
@click.option(
    "--per-project",
    is_flag=True,
    help="A separate memory for the project of this folder or that of --project, beside the shared one.",
)
@click.option("--no-hooks", is_flag=True, help="Only the server: no automatic recall or recording.")
@_show
@click.option("--print", "only_print", is_flag=True, help="Print the settings, for this or any other client.")
@click.option("--link", "only_link", is_flag=True, help="Print a link that has Cursor or VS Code install it.")
@click.option(
    "--check", "only_check", is_flag=True, help="Start the installed server as the client does; change nothing."
)
@_yes
@memory_options
def install(
    client: str | None,
    env: tuple[str, ...],
    project: Path | None,
    name: str,
    per_project: bool,
    no_hooks: bool,
    only_show: bool,
    only_print: bool,
    only_link: bool,
    only_check: bool,
    yes: bool,
) -> None:
    """Connect a client, or list the clients and their state.

    It adds this server to the configuration of CLIENT, and hooks or a plugin if the client runs any. CLIENT is
    claude-code, claude-desktop, codex, copilot, cursor, gemini, hermes, openclaw, opencode, qwen-code or vscode.
    First it says what the client will do and which files change, and asks; everything else in these files stays as it
    is, and a copy is kept next to each. With --home or --space, the client gets that memory.

    With --server, the client and its hooks use the memory of that server. The token is asked for, or taken from
    MCP_MEMORY_SERVER_TOKEN, tried, and kept in a file of the home that only you can read; no client gets it.

    If a client on this machine has the reference memory server, you are asked whether its file is to be imported;
    without a terminal, the command for that is printed.

    All clients and projects share one memory, unless you say otherwise: at a terminal you are asked, else
    --per-project gives a project a separate one. Repeat that in each project that needs one. Its space is named after
    the repository, so worktrees and clones share it. The shared memory is recalled beside it, as your personal one,
    unless you add --personal-space none.

    \b
    mcp-memory install
    mcp-memory install claude-code
    mcp-memory install claude-code --show
    mcp-memory install claude-code --server https://memory.example.com
    mcp-memory --space work install cursor --project ~/shop
    mcp-memory install gemini --per-project
    mcp-memory install cursor --link
    mcp-memory install codex --env MCP_MEMORY_LLM=anthropic/claude-haiku-4-5
    mcp-memory install claude-desktop --check
    mcp-memory install --print
    """
    changes_nothing = only_check or only_show or only_print or only_link or client is None
    if command_settings().get("store"):
        raise Refused(
            "This would put the password of the database on this machine, and whoever has it can read every space. "
            "Run a server beside the database, and install with --server URL: each machine then has a token of its own."
        )
    if per_project or (not changes_nothing and not yes and _ask_for_separate_memory(str(client), name, project)):
        project = project or Path.cwd()
        _choose_spaces(project)
    if only_check:
        _check_servers(client, name, project)
    elif only_link:
        _print_link(client, name, project, _variables(env))
    elif client is not None:
        parts = _parts(client, name, project, _variables(env), hooks=not no_hooks)
        if only_print:
            _print_config(parts)
        else:
            keep_token = _keep_nothing if only_show else _connect_to_server()
            _install(parts, project, env, yes=yes, only_show=only_show)
            keep_token()
    elif only_print:
        _print_for_any(name, _variables(env))
    else:
        _list_clients(name, project)


@click.command()
@click.argument("client")
@_project
@_name
@click.option("--per-project", is_flag=True, help="Only in this folder, as `install --per-project` put it there.")
@_show
@_yes
def uninstall(client: str, project: Path | None, name: str, per_project: bool, only_show: bool, yes: bool) -> None:
    """Take this server and its hooks out of a client.

    First it says what changes, and asks. Unless others changed the file, it is restored byte for byte. The memory
    itself stays.

    \b
    mcp-memory uninstall claude-code
    mcp-memory uninstall cursor --project ~/shop --yes
    mcp-memory uninstall gemini --per-project
    """
    from mcp_memory.integrations.clients import plan
    from mcp_memory.integrations.clients.effects import effects_of_removal

    if per_project:
        project = project or Path.cwd()
    parts = _parts(client, name, project, {}, hooks=True)
    changes = [plan.plan_removal(part) for part in parts]
    if not any(change.changes for change in changes):
        raise NotFound(f"{parts[0].client.title} has no server {name!r} of this program in {parts[0].path}.")
    if only_show:
        _print_diffs(changes)
        return
    hooked = any(plan.find_installed(part)[1] for part in parts)
    sentences = effects_of_removal(parts[0].client, hooks=hooked)
    _confirm_changes(sentences, changes, yes=yes, question=f"Take it out of {parts[0].client.title}?")
    say(f"Taken out of {parts[0].client.title}. `mcp-memory status` says where its memory is.")
    for path in (plan.backup_path(change.file.target) for change in changes if change.changes):
        if path.exists():
            say(escape_controls(f"Others changed the file meanwhile; as it was before ours, it is still in {path}."))


# --- the expected entries ---------------------------------------------------------------------------


def _parts(client: str, name: str, project: Path | None, env: dict[str, str], *, hooks: bool) -> list[ConfigPart]:
    from mcp_memory.integrations.clients.plan import config_parts

    return config_parts(client, _command(), name=name, project=project, env=env, hooks=hooks)


def _space_of(project: Path) -> str:
    """Return the space of a project (`core.projects`). Raises InvalidInput for an unsuitable folder."""
    from mcp_memory.core.projects import find_project

    if project in (Path.home(), Path(project.anchor)):
        raise InvalidInput(f"{project} is not the folder of a project. Name one with --project.")
    return find_project(project).space


def _choose_spaces(project: Path) -> None:
    """Select the space of a project, and the shared space as the personal one, unless the command line names others.

    Earlier versions named the space after the folder alone: if such a memory exists, say how to use or move it.
    """
    from mcp_memory.core.config import load_settings

    chosen = command_settings()
    shared = load_settings(home=chosen.get("home")).space
    space = chosen.get("space") or _space_of(project)
    if space == shared:
        raise InvalidInput(f"The space {space!r} is the one that all share. Name another with --space.")
    chosen["personal_space"] = chosen.get("personal_space") or shared
    if not chosen.get("space") and (settings().home / "spaces" / project.name).is_dir():
        old = shlex.quote(project.name)
        say(
            escape_controls(
                f"This folder has a memory under its earlier name, the space {project.name!r}. It stays as it is. Add "
                f"--space {old} to keep using it, or move it into the new one:\n"
                f"  mcp-memory export old.zip --space {old}\n"
                f"  mcp-memory --space {space} import old.zip\n"
            ),
            err=True,
        )
    chosen["space"] = space


def _ask_for_separate_memory(client: str, name: str, project: Path | None) -> bool:
    """Ask whether a project gets a separate memory, at the first installation in its folder.

    Return False without asking if a space is named, if the folder is no project or has the server already, or without
    a terminal.
    """
    from mcp_memory.integrations.clients import plan, programs

    named = command_settings().get("space") or os.environ.get("MCP_MEMORY_SPACE")
    if named or client not in programs.clients_for(Path()) or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        space = _space_of(project or Path.cwd())
        if plan.find_installed(_parts(client, name, project, {}, hooks=False)[0])[0] is not None:
            return False
    except McpMemoryError:  # no project here; and what cannot be read is reported later
        return False
    shown = repr(escape_controls(space))
    say(f"All clients and projects can share one memory, or this project ({shown}) gets a separate one.")
    return click.prompt("Which memory", type=click.Choice(["shared", "separate"]), default="shared") == "separate"


def _command() -> list[str]:
    """Return the command that starts this program with the memory selected by the command line or the environment."""
    from mcp_memory.integrations.clients.programs import this_command

    here = {
        key: command_settings().get(key) or os.environ.get(f"MCP_MEMORY_{key.upper()}")
        for key in ("home", "server", "space", "personal_space")
    }
    options: list[str] = []
    if here["server"] and (access := settings().server_access()):
        options += ["--server", access.address.url]
    if here["home"]:
        options += ["--home", str(settings().home)]
    if here["space"]:
        options += ["--space", safe_name(str(here["space"]), what="space")]
    if here["personal_space"] not in (None, "none"):
        options += ["--personal-space", safe_name(str(here["personal_space"]), what="space")]
    return [*this_command(), *options]


def _connect_to_server() -> Callable[[], None]:
    """Try the token for the server, if the memory is on one; return what keeps it: clients pass no variables on.

    At a terminal, a token that is missing or not accepted is asked for. Raises Refused, StoreUnavailable or
    InvalidInput if the server cannot be used.
    """
    from mcp_memory.core.config_file import read_config
    from mcp_memory.core.rights import includes

    chosen = settings()
    if (access := chosen.server_access()) is None:
        return _keep_nothing
    config = read_config(chosen.home)
    if access.address.needs_permission and not config.get("server_http"):
        raise InvalidInput(
            f"{access.address.url} is not encrypted, and clients pass no variables on. If that is right, put the line "
            f"`server_http = true` into {chosen.home / 'config.toml'}."
        )
    try:
        token = access.token()
        status = _server_status(chosen, token)
    except Refused as error:
        if access.given_token or not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise
        say(escape_controls(str(error)))
        token = str(click.prompt(f"Token for {access.address.url}", hide_input=True)).strip()
        status = _server_status(chosen, token)
    right, space = status["access"]["right"], status["access"]["space"]
    say(escape_controls(f"{access.address.url} accepts the token: space {space!r}, with the right {right}."))
    if not includes(right, "write"):
        say("With it conversations are recalled, and not stored. Ask for a token with the right write.")
    if config.get("server_token") or config.get("server_token_file"):
        return _keep_nothing
    return partial(replace(access, given_token=None, given_file=None).save_token, token)


def _server_status(chosen: Settings, token: str) -> dict[str, Any]:
    with_token = chosen.model_copy(update={"server_token": token})
    return ask_memory(with_token, lambda memory: memory.status(brief=True))


def _keep_nothing() -> None:
    pass


def _variables(lines: tuple[str, ...]) -> dict[str, str]:
    from mcp_memory.core.config import PREFIX, Settings

    variables: dict[str, str] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if not key or not equals:
            raise InvalidInput(f"--env wants NAME=VALUE, and {line!r} is not.")
        if key.startswith(PREFIX) and key.removeprefix(PREFIX).lower() not in Settings.model_fields:
            raise InvalidInput(f"There is no setting {key}. docs/settings.md lists all of them.")
        variables[key] = value
    return variables


# --- showing and doing ------------------------------------------------------------------------------


def _confirm_changes(sentences: Iterable[str], changes: list[ConfigChange], *, yes: bool, question: str) -> None:
    """Print the sentences and the files, ask unless `yes`, and apply the changes.

    Any answer but yes ends the command with nothing changed.
    """
    from mcp_memory.integrations.clients import plan

    for sentence in sentences:
        say(escape_controls(sentence))
    click.echo("\nThese files change (--show prints the exact change):")
    for change in changes:
        if change.changes:
            verb = "create" if change.file.data is None else "delete" if change.after is None else "change"
            click.echo(escape_controls(f"  {verb} {change.file.path}"))
    click.echo()
    try:
        agreed = yes or click.confirm(question, default=True)
    except click.Abort:
        click.echo()
        agreed = False
    if not agreed:
        click.echo("Nothing was changed. Say --yes to have it done without a question.", err=True)
        click.get_current_context().exit(1)
    plan.apply_changes(changes)


def _print_diffs(changes: list[ConfigChange]) -> None:
    """Print the changes as diffs that can be copied: no line is wrapped or cut."""
    from mcp_memory.integrations.clients import plan

    for change in (change for change in changes if change.changes):
        for line in plan.diff(change).removesuffix("\n").split("\n"):
            click.secho(escape_controls(line.removesuffix("\r")), fg={"+": "green", "-": "red"}.get(line[:1]))


def _install(
    parts: list[ConfigPart], project: Path | None, env: tuple[str, ...], *, yes: bool, only_show: bool
) -> None:
    from mcp_memory.integrations.clients import plan
    from mcp_memory.integrations.clients.plan import is_client_present
    from mcp_memory.integrations.clients.reference_memory import reference_memories

    of, name, hooked = parts[0].client, parts[0].name, any(part.runs_hooks for part in parts)
    if project:
        _check_installed_once(parts)
    memories = reference_memories(project or Path.cwd())
    try:
        changes = [plan.plan_install(part) for part in parts]
    except Refused:
        _offer_import(memories, asks=False)  # it often has the name that is wanted
        raise
    warnings = _hooks_switched_off(of, project) if hooked else []
    if not any(change.changes for change in changes):
        already = f"{of.title} has it already, as {name!r} in {parts[0].path}."
        say(escape_controls("\n".join([already, *warnings])), err=only_show)
        return
    if only_show:
        _print_diffs(changes)
        return
    runs_hooks = hooked and plan.find_switch_off(of, project) is None
    sentences = [*_effects_of_install(of, env, hooked=runs_hooks), *warnings]
    if not is_client_present(parts[0]):
        sentences.append(f"{of.title} was not found on this machine. Its configuration can be written all the same.")
    if env and project:
        sentences.append(f"{parts[0].path} is often shared with others, and so is what --env puts there.")
    if hooked and any(line.startswith("MCP_MEMORY_") for line in env):
        sentences.append("Hooks do not see --env; settings for server and hooks belong into config.toml in the home.")
    _confirm_changes(sentences, changes, yes=yes, question=f"Install it into {of.title}?")
    say(f"Installed as {name!r}. {of.after}{f' {of.after_hooks}' if hooked and of.after_hooks else ''}")
    if kept := [str(change.file.path) for change in changes if change.makes_backup]:
        say(f"What was there before is kept next to it, as *.mcp-memory-backup: {escape_controls(', '.join(kept))}")
    if space := command_settings().get("space"):
        click.echo(
            escape_controls(f"Its memory is the space {space!r}: mcp-memory --space {shlex.quote(space)} status")
        )
    if (personal := command_settings().get("personal_space", "none")) != "none":
        say(
            escape_controls(
                f"The space {personal!r} is recalled beside it, and gets what is remembered about you. For a memory "
                "without it, install again with --personal-space none."
            )
        )
    same = [*([] if name == NAME else ["--name", name]), *(["--project", str(project)] if project else [])]
    click.echo(escape_controls(f"To see it answer: {' '.join(['mcp-memory install', of.name, '--check', *same])}"))
    asks = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    if asks and not any(line.startswith("MCP_MEMORY_LLM=") for line in env):
        _offer_to_read(of)
    _offer_import(memories, asks=asks)


def _effects_of_install(of: ClientProgram, env: tuple[str, ...], *, hooked: bool) -> list[str]:
    """Return sentences on what the client will do, and on the model that reads what is stored."""
    from mcp_memory.core.config import Settings
    from mcp_memory.integrations.clients.effects import effects_of_install

    try:
        chosen = settings()
    except McpMemoryError:  # the server and `doctor` report it
        chosen = Settings()
    place = "in the PostgreSQL database of your settings" if chosen.store else "on this machine"
    if (access := chosen.server_access()) is not None:
        place = f"on {access.address.url}"
    effects = [*effects_of_install(of, hooks=hooked, place=place, offload_over=chosen.offload_over)]
    if chosen.store or "MCP_MEMORY_STORE" in _variables(env):
        effects.append(
            "This machine has the password of the database then, with which every space can be read. For a team, "
            "install with --server URL instead."
        )
    model = _variables(env).get("MCP_MEMORY_LLM", chosen.llm)
    if model != "none" and access is None:
        effects.append(f"The model {model} reads what is stored, up to {chosen.llm_daily_tokens:,} tokens a day.")
    return effects


def _hooks_switched_off(of: ClientProgram, project: Path | None) -> list[str]:
    """Return a sentence if the client runs no hooks, everywhere or in the project, by default the working directory."""
    from mcp_memory.integrations.clients import plan

    off = plan.find_switch_off(of, project or Path())
    if off is None:
        return []
    where = "" if project or plan.find_switch_off(of, None) else " in this folder"
    until = f"Until you change that, it recalls and records nothing by itself{where}."
    return [f"{of.title} runs no hooks{where}, because of {off}. {until}"]


_PROMPTS_A_DAY = 50
_TOKENS_A_DAY = 50_000
"""The tokens of reading such a day, as `report.estimate_cost` estimates them."""
_CODEX_ADDS = 50_000
"""What Codex adds to them, 8,000 tokens to each question."""


def _offer_to_read(of: ClientProgram) -> None:
    """Ask whether the client may read the conversations, and save the answer as `llm` in the home's config.toml.

    Does nothing if `llm` is set, or if this client cannot act as a model.
    """
    from mcp_memory.integrations.clients import plan
    from mcp_memory.models.client_llm import CLIENTS, PREFIX

    if of.name not in CLIENTS:
        return
    try:
        chosen = settings()
    except McpMemoryError:  # the server and `doctor` report it
        return
    if "llm" in chosen.model_fields_set or chosen.server is not None:
        return
    about = min(_TOKENS_A_DAY + (_CODEX_ADDS if of.name == "codex" else 0), chosen.llm_daily_tokens)
    say(
        f"\nThe memory works without a model. If you agree, {of.title} also reads your conversations in the "
        "background, signed in as you and without tools, and writes shorter statements and a better page about you. "
        f"This counts against your account there: about {about:,} tokens on a day with {_PROMPTS_A_DAY} prompts, never "
        f"more than {chosen.llm_daily_tokens:,}."
    )
    try:
        agreed = click.confirm(f"May {of.title} read them?", default=False)
    except click.Abort:
        click.echo()
        return
    config = chosen.home / "config.toml"
    make_folder(config.parent)
    change = plan.plan_setting(config, "llm", f"{PREFIX}{of.name}" if agreed else "none")
    plan.apply_changes([change])
    say(escape_controls(f"{'Reading is on' if agreed else 'Reading stays off'}. To change that, set llm in {config}."))


def _offer_import(files: Sequence[Path], *, asks: bool) -> None:
    """Ask whether to import the files of the reference memory server, or print the command for it.

    Does nothing if they were imported before.
    """
    if not files:
        return
    from mcp_memory.cli.import_files import never_imported, run_import
    from mcp_memory.integrations.importers.history import ImportOptions

    files = never_imported(files)
    if not files:
        return
    listed = "".join(f"\n  {escape_controls(str(file))}" for file in files)
    click.echo(f"\nThe reference memory server is configured on this machine, with its memory in:{listed}")
    if not asks:
        here = {key: value for key in ("home", "server", "space") if (value := command_settings().get(key))}
        options = [word for key, value in here.items() for word in (f"--{key}", str(value))]
        command = shlex.join(["mcp-memory", *options, "import", *map(str, files)])
        click.echo(escape_controls(f"To import it: {command}"))
        return
    try:
        agreed = click.confirm("Import it into this memory?", default=False)
    except click.Abort:
        click.echo()
        return
    if agreed:
        run_import(files, "auto", ImportOptions(), dry_run=False, watch=False)


def _check_installed_once(parts: list[ConfigPart]) -> None:
    """Raise Refused if a client would have two memories in a project, or run the hooks in it twice."""
    from mcp_memory.integrations.clients import plan, programs

    of, hooked = parts[0].client, any(part.runs_hooks for part in parts)
    arguments = (parts[0].server or {}).get("args")
    for part in _parts(of.name, parts[0].name, None, {}, hooks=hooked):
        entry, runs_hooks = plan.find_installed(part)
        if runs_hooks or (entry and programs.is_ours(entry) and entry.get("args") != arguments):
            raise Refused(
                f"{of.title} has a memory for every project already ({part.path}), so this project would have two. "
                f"Remove that one first: mcp-memory uninstall {of.name}"
            )
    plugin = next((plugin for plugin, on in plan.find_plugins(None).items() if on), None)
    if plugin and of.name == "claude-code":
        raise Refused(
            f"The plugin {plugin} brings a memory for every project, so this project would have two. "
            f"Remove it first: claude plugin uninstall {plugin}"
        )


def _print_link(client: str | None, name: str, project: Path | None, env: dict[str, str]) -> None:
    from mcp_memory.integrations.clients.programs import app_link

    if client is None or project is not None:
        raise InvalidInput("--link wants a client, cursor or vscode, and no project: a link installs it everywhere.")
    part = _parts(client, name, None, env, hooks=False)[0]
    click.echo(app_link(part.client, name, part.server or {}))


def _print_config(parts: list[ConfigPart]) -> None:
    from mcp_memory.integrations.clients import plan

    for part in parts:
        click.echo(escape_controls(f"Put this into {part.path}:"), err=True)
        click.echo(plan.standalone_text(part), nl=False)


def _print_for_any(name: str, env: dict[str, str]) -> None:
    from mcp_memory.integrations.clients.plan import for_any_client

    click.echo("Put this where your client keeps its MCP servers:", err=True)
    click.echo(json_text(for_any_client(_command(), name=name, env=env)))


def _list_clients(name: str, project: Path | None) -> None:
    from mcp_memory.integrations.clients import programs
    from mcp_memory.integrations.clients.plan import is_client_present

    rows = [("client", "here", "memory", "configured in")]
    errors: list[str] = []
    for client in programs.clients_for(project):
        parts = _parts(client, name, project, {}, hooks=True)
        try:
            state = _installation_state(parts, project)
        except McpMemoryError as error:
            state = "cannot be read"
            errors.append(f"{parts[0].client.title}: {error}")
        rows.append((client, "yes" if is_client_present(parts[0]) else "-", state, str(parts[0].path)))
    click.echo(escape_controls(columns(rows)))
    for error in errors:
        say(f"\n{escape_controls(error)}")
    click.echo("\nInstall it with: mcp-memory install CLIENT; --check tries the installed server.")
    has_server = any(row[0] == "claude-code" and row[2].startswith("installed") for row in rows)
    _print_plugin_state(project, has_server=has_server)


def _print_plugin_state(project: Path | None, *, has_server: bool) -> None:
    """Print whether the plugin of Claude Code is installed, or how to install it.

    `has_server`: whether our server is in the configuration of Claude Code, beside a plugin.
    """
    from mcp_memory.integrations.clients import plan, programs

    try:
        [(plugin, enabled), *_] = plan.find_plugins(project).items() or [("", False)]
    except McpMemoryError as error:
        say(escape_controls(f"\nClaude Code plugin: its state cannot be read. {error}"))
        return
    if not plugin:
        click.echo(
            "\nClaude Code plugin: not installed. It takes the place of\n`install claude-code`, and adds a skill:"
        )
        click.echo("\n".join(f"  {command}" for command in programs.PLUGIN_COMMANDS))
        return
    say(f"\nClaude Code plugin: installed as {escape_controls(plugin)}{'' if enabled else ', and disabled'}.")
    if enabled and has_server:
        click.echo(
            "So Claude Code has the memory twice. Remove one:\n"
            f"  mcp-memory uninstall claude-code\n  claude plugin uninstall {escape_controls(plugin)}"
        )


def _installation_state(parts: list[ConfigPart], project: Path | None) -> str:
    """Return whether a client has our server and hooks, in a few words. Raises as `plan.find_installed` does."""
    from mcp_memory.integrations.clients import plan, programs

    entries = [plan.find_installed(part) for part in parts]
    entry, hooks = entries[0][0], any(hooked for _, hooked in entries)
    if entry is None:
        return "hooks only" if hooks else "-"
    if not programs.is_ours(entry):
        return "another server"
    if hooks and plan.find_switch_off(parts[0].client, project or Path()):
        return "installed, hooks off"
    return "installed, with hooks" if hooks else "installed"


def _check_servers(client: str | None, name: str, project: Path | None) -> None:
    """Start the server of a client, or of every client with this server, and print its answer.

    Exit with 1 if any fails.
    """
    from mcp_memory.integrations.clients import programs

    answered = failed = 0
    for name_of_client in [client] if client else programs.clients_for(project):
        part = _parts(name_of_client, name, project, {}, hooks=False)[0]
        try:
            greeting = _start_server(part, project)
        except McpMemoryError as error:
            if client is not None or not isinstance(error, NotFound):
                failed += 1
                say(escape_controls(f"{part.client.title}: {error}"), err=True)
            continue
        answered += 1
        say(
            f"{part.client.title}: {greeting.name} {greeting.version} answers over MCP {greeting.protocol} with "
            f"{plural(len(greeting.tools), 'tool')} after {greeting.seconds * 1000:.0f} ms: {', '.join(greeting.tools)}"
        )
    if not answered and not failed:
        click.echo("No client has it yet. Install it with: mcp-memory install CLIENT")
    if failed:
        click.get_current_context().exit(1)


def _start_server(part: ConfigPart, project: Path | None) -> Greeting:
    """Start the server of a part as its client does, and return its greeting.

    Raises NotFound if the client has no such server, Refused if the server is another program.
    """
    from mcp_memory.integrations.clients import plan, programs, server_check

    entry, _ = plan.find_installed(part)
    if entry is None:
        raise NotFound(f"It is not installed in {part.client.title}: mcp-memory install {part.client.name}")
    if not programs.is_ours(entry):
        raise Refused(f"{part.path} has another server called {part.name!r}, which is not started here.")
    return server_check.check(entry, from_desktop=part.client.name == "claude-desktop", folder=project)
