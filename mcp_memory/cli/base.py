"""What all commands share: the options that select a memory, opening it, output and errors.

`mcp-memory --help` lists the exit codes. Our own errors, a full disk and a file without permission print one sentence
on stderr; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound, Refused, StoreUnavailable

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.service.memory import Memory

_LONGEST_DAYS = 100 * 365
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "y": 365}

INTERRUPTED = 130
"""Exit code after SIGINT, as in shells."""
_MAKE_ROOM = "Free some disk space and try again."
_GIVE_RIGHT = "Give yourself the right to it, or name another place."
_OF_THE_MACHINE = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: _MAKE_ROOM,
    errno.EACCES: _GIVE_RIGHT,
    errno.EPERM: _GIVE_RIGHT,
    errno.EROFS: _GIVE_RIGHT,
    errno.EIO: "The disk reports errors: check it first.",
}
"""System errors that are not bugs of ours, each with the next step."""

NOTHING_YET = "Nothing is stored yet in {home}."
FIRST_STEPS = """\
mcp-memory install   connects a client, which stores conversations from then on
mcp-memory import    imports conversations from elsewhere
mcp-memory demo      shows a made-up memory"""

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


class NothingStored(NotFound):
    """There is no memory yet. The program prints this as a plain message, without "Error:", and exits with 1."""


class Program(click.Group):
    """The outermost group lists commands by topic, loads each when it is called and maps our errors to exit codes."""

    def __init__(self, *args: Any, groups: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        """`groups` maps each heading of the help to its commands and their modules."""
        super().__init__(*args, **kwargs)
        self._groups = groups
        self._modules = {name: module for commands in groups.values() for name, module in commands.items()}
        self.commands = cast("dict[str, click.Command]", self._modules)  # click reads only the names: "did you mean"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._modules:
            return None
        module = importlib.import_module(f"mcp_memory.cli.{self._modules[cmd_name]}")
        return getattr(module, "import_" if cmd_name == "import" else cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._modules))
        limit = formatter.width - 6 - width
        for title, names in self._groups.items():
            commands = [(name, command) for name in names if (command := self.get_command(ctx, name))]
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", entry.get_short_help_str(limit)) for name, entry in commands])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _masked_usage():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _masked_usage(), _audited(ctx):
                return super().invoke(ctx)
        except (KeyboardInterrupt, BaseExceptionGroup) as error:
            if not has_error(error, KeyboardInterrupt):
                raise
            ctx.exit(INTERRUPTED)  # click would print "Aborted!"
        except NothingStored as nothing:
            say(str(nothing), err=True)
            ctx.exit(1)
        except McpMemoryError as error:
            _print_error(str(error))
            ctx.exit(2 if isinstance(error, InvalidInput) else 1)
        except OSError as error:
            if error.errno not in _OF_THE_MACHINE:
                raise
            where = f"{error.filename}: " if error.filename else ""
            _print_error(f"{where}{error.strerror}. {_OF_THE_MACHINE[error.errno]}")
            ctx.exit(1)


def has_error(error: BaseException, kind: type[BaseException]) -> bool:
    """Return whether an error is, or an exception group contains, an instance of `kind`."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return any(has_error(member, kind) for member in group.exceptions)
    return isinstance(error, kind)


def _print_error(text: str) -> None:
    from mcp_memory.cli.terminal import escape_controls
    from mcp_memory.core.secrets.masking import mask

    click.echo(f"Error: {escape_controls(mask(text))}", err=True)


@contextmanager
def _masked_usage() -> Generator[None]:
    """Mask secrets in the messages of click's errors, because these quote the arguments."""
    try:
        yield
    except click.ClickException as error:
        from mcp_memory.core.secrets.masking import mask

        error.message = mask(error.message)  # pyright: ignore[reportAttributeAccessIssue]
        raise


@contextmanager
def _audited(ctx: click.Context) -> Generator[None]:
    """Write a line of the audit log for a command that used a memory, if the log is on."""
    failure: BaseException | None = None
    try:
        yield
    except (click.exceptions.Exit, SystemExit):
        raise
    except BaseException as error:
        failure = error
        raise
    finally:
        if (used := ctx.meta.get(_USED)) is not None:
            _write_audit(used, ctx.meta.get(_IDS, ()), failure)


def _write_audit(used: Mapping[str, Any], ids: tuple[str, ...], failure: BaseException | None) -> None:
    from mcp_memory.core import audit
    from mcp_memory.core.requests import OK, outcome_of

    if isinstance(failure, click.ClickException):
        outcome = "invalid usage"
    else:
        outcome = OK if failure is None else outcome_of(failure)
    audit.write(who=audit.local_user(), outcome=outcome, ids=ids, **used)


class CommandSettings(dict[str, Any]):
    pass


def _store_option(ctx: click.Context, option: click.Parameter, value: object) -> None:
    if value == "":
        raise click.BadParameter("The value is empty. Give a value, or leave the option out.", ctx, option)
    if value is not None and option.name:
        ctx.ensure_object(CommandSettings)[option.name] = value


home_option = click.option(
    "--home",
    type=click.Path(),
    callback=_store_option,
    expose_value=False,
    help="Folder of the memory.  [default: $MCP_MEMORY_HOME or ~/.mcp-memory]",
)
"""The only option for commands that work on the whole home."""
_STORE = click.option(
    "--store",
    metavar="URL",
    callback=_store_option,
    expose_value=False,
    help="PostgreSQL database of a shared memory, postgresql://…  [default: $MCP_MEMORY_STORE or a file in the home]",
)
_SERVER = click.option(
    "--server",
    metavar="URL",
    callback=_store_option,
    expose_value=False,
    help="Server with the memory, https://…  [default: $MCP_MEMORY_SERVER or this machine]",
)
_SPACE = click.option(
    "--space",
    callback=_store_option,
    expose_value=False,
    help="Whose memory: a user, a project, an agent.  [default: $MCP_MEMORY_SPACE or default]",
)
_PERSONAL = click.option(
    "--personal-space",
    callback=_store_option,
    expose_value=False,
    help="Space of the personal memory, used beside it.  [default: $MCP_MEMORY_PERSONAL_SPACE or none]",
)
_JSON, _USED, _IDS = "mcp_memory.json", "mcp_memory.used", "mcp_memory.ids"


def _store_json_option(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


as_json = click.option(
    "--json", is_flag=True, callback=_store_json_option, expose_value=False, help="Answer in JSON, for programs."
)


def wants_json() -> bool:
    """Return whether the current command answers in JSON."""
    return click.get_current_context().meta.get(_JSON, False)


def print_answer(value: Any, text: str | Iterable[str]) -> None:
    """Print `value` as JSON if `--json` is set, else the text or lines, within the width."""
    from mcp_memory.cli.terminal import json_text
    from mcp_memory.core import audit

    if audit.is_on():
        click.get_current_context().meta[_IDS] = audit.ids_in(json.loads(json_text(value)))
    if wants_json():
        click.echo(json_text(value))
    else:
        say(text if isinstance(text, str) else "\n".join(text))


def say(text: str, *, err: bool = False) -> None:
    """Print text for people, within the width."""
    from mcp_memory.cli.terminal import fit_width

    click.echo(fit_width(text), err=err)


@contextmanager
def progress_bars(what: str = "") -> Generator[Callable[[str, int, int], None]]:
    """Yield a progress callback. On a terminal it shows a bar for each operation, labelled with its name and `what`."""
    from mcp_memory.cli.terminal import one_line

    with ExitStack() as shown:
        bars: dict[str, Any] = {}

        def tell(doing: str, done: int, of: int) -> None:
            if not sys.stderr.isatty():
                return
            if doing not in bars:
                shown.close()
                label = f"{doing} {one_line(what, 40)}".rstrip()
                bars[doing] = shown.enter_context(click.progressbar(length=of, label=label, file=sys.stderr))
            bars[doing].update(done - bars[doing].pos)

        yield tell


def memory_options(command: Command) -> Command:
    """Add the options that choose a memory; they work before and after the command's name."""
    return place_options(_SPACE(_PERSONAL(command)))


def place_options(command: Command) -> Command:
    """Add the options that say where a memory is, for commands on all its spaces."""
    return home_option(_STORE(_SERVER(command)))


def parse_duration(text: str, option: str) -> timedelta:
    """Parse `12h`, `90d`, `4w` or `1y`. Raises InvalidInput, with the name of the option, for anything else."""
    match = re.fullmatch(r"(\d{1,5})\s*([hdwy])", text.strip().lower(), flags=re.ASCII)
    if match is None:
        raise InvalidInput(f"{option} takes a number with h, d, w or y, such as 90d, not {text!r}.")
    days = int(match[1]) * _DAYS[match[2]]
    if days > _LONGEST_DAYS:
        raise InvalidInput(f"{option} takes at most {_LONGEST_DAYS // 365}y, not {text.strip()}.")
    return timedelta(days=days)


def command_settings() -> CommandSettings:
    """Return the settings given on the command line, by name."""
    return click.get_current_context().ensure_object(CommandSettings)


def settings() -> Settings:
    """Return the effective settings; the command line overrides all others. Raises InvalidInput for a wrong setting."""
    from mcp_memory.core import audit
    from mcp_memory.core.config import load_settings, require_home

    effective = load_settings(**command_settings())
    require_home(effective)
    audit.set_up(effective.audit_log)
    ctx = click.get_current_context()
    space = ctx.params.get("space_name", effective.space)
    ctx.meta[_USED] = {"verb": " ".join(ctx.command_path.split()[1:]), "space": space}
    return effective


def home_with_files() -> Path:
    """Return the home if a command can work on its files. Raises Refused if the memory is in PostgreSQL."""
    chosen = settings()
    if chosen.server is not None:
        raise Refused(
            f"`{click.get_current_context().info_name}` works on the files of a memory, and this one is on "
            f"{chosen.server}. Run it there, or use the database's own tools if that memory is in PostgreSQL."
        )
    if chosen.store is not None:
        raise Refused(
            f"`{click.get_current_context().info_name}` works on the files of a home, but this memory is in "
            "PostgreSQL. Use the database's own tools: pg_dump and pg_restore, or its base backups."
        )
    return chosen.home


def existing_memory_settings() -> Settings:
    """Return the effective settings of an existing memory.

    Raises NothingStored if nothing is stored in the home yet, and StoreUnavailable if its database is missing or cannot
    be read, or none can be created. PostgreSQL and a server are not checked.
    """
    from mcp_memory.core.server_address import known_servers
    from mcp_memory.service.upkeep.home_checks import why_unwritable
    from mcp_memory.store.files import database_is_gone

    chosen = settings()
    if chosen.store is None and chosen.server is None and not os.access(chosen.home / "memory.db", os.R_OK):
        if gone := database_is_gone(chosen.home):
            raise StoreUnavailable(gone)
        if (chosen.home / "memory.db").exists():
            raise StoreUnavailable(f"{chosen.home / 'memory.db'} cannot be read. {_GIVE_RIGHT}")
        if problem := why_unwritable(chosen.home):
            raise StoreUnavailable(f"No memory can be made at {chosen.home}: {problem}. {_GIVE_RIGHT}")
        nothing = f"{NOTHING_YET.format(home=chosen.home)}{_describe_foreign_files(chosen.home)}"
        servers = [f"mcp-memory status --server {url}" for url in known_servers(chosen.home)]
        elsewhere = ["Clients here use the memory of a server:", *servers, ""] if servers else []
        raise NothingStored("\n".join([nothing, *elsewhere, FIRST_STEPS]))
    return chosen


def _describe_foreign_files(home: Path) -> str:
    from mcp_memory.cli.terminal import one_line
    from mcp_memory.core.paths import foreign_files

    others = one_line(", ".join(foreign_files(home)), 60)
    return f" It contains files of other programs ({others}); give the memory a separate folder." if others else ""


def ask(question: Callable[[Memory], Awaitable[T]]) -> T:
    """Open the selected memory, run `question` on it and close it. Raises NothingStored if there is no memory."""
    return ask_memory(existing_memory_settings(), question)


def ask_memory(chosen: Settings, question: Callable[[Memory], Awaitable[T]]) -> T:
    """Open the memory of the settings, creating it if needed, run `question` on it and close it."""
    import anyio

    from mcp_memory.service.memory import open_memory

    async def visit() -> T:
        # A command that only reads must not start the model.
        async with open_memory(chosen, distil=False, what=str(click.get_current_context().info_name)) as memory:
            return await question(memory)

    return anyio.run(visit)


def ask_new_home(question: Callable[[Memory], Awaitable[T]]) -> T:
    """Run `question` on the selected memory without any model. The home is created if it does not exist."""
    import anyio

    from mcp_memory.service.memory import open_memory

    chosen = settings()

    async def visit() -> T:
        what = click.get_current_context().command_path.split()[1]
        async with open_memory(chosen, embedder="none", llm="none", rerank=False, what=what) as memory:
            return await question(memory)

    return anyio.run(visit)
