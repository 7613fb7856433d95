"""Failures of PostgreSQL: which are transient, and the error that each becomes.

A message names the database by its host, port and name: never the URL, which may contain a password.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from mcp_memory.core.errors import InvalidInput, McpMemoryError, NewerHome, NoRoom, StoreUnavailable
from mcp_memory.store.postgres.access import NOT_ENTERED, TOO_OLD_TO_READ, TOO_OLD_TO_WRITE, WRONG_PROOF
from mcp_memory.store.postgres.commits import Unconfirmed
from mcp_memory.store.postgres.deadlines import NoAnswer
from mcp_memory.store.postgres.pool import PoolExhausted
from mcp_memory.store.postgres.schema import QUOTA_USED_UP
from mcp_memory.store.sql.quota_rows import quota_error

CREATE = "createdb -E UTF8 --locale=C.UTF-8 -T template0"

_CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
_SERVER_GONE = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow)
_TOO_LONG = (errors.QueryCanceled, errors.IdleInTransactionSessionTimeout, errors.TransactionTimeout)
_STARTING = "It is starting or stopping; try again in some seconds."
_TOO_MANY = "Raise max_connections of the server, or run fewer servers on it."
_CONNECTING = {  # what the server says when it refuses a connection, which has no code, and what to do
    "the database system is": _STARTING,
    "password": "Check the user and the password in MCP_MEMORY_STORE.",
    "pg_hba.conf": "Allow this machine and user in the server's pg_hba.conf.",
    "too many": _TOO_MANY,
    "connection slots": _TOO_MANY,
    "read-only": "No server of MCP_MEMORY_STORE accepts writes: promote a standby, or name the primary.",
    'role "': "Create the user, or name another user in MCP_MEMORY_STORE.",
    'database "': f"Create it with `{CREATE} NAME`, or name another database in MCP_MEMORY_STORE.",
}
_ATTEMPT = re.compile(
    r"^- host: '([^']*)', port: '?(\d+)'?, hostaddr: (?:'[^']*'|None): (?:.* failed: )?(.+)$", re.MULTILINE
)
"""A line of psycopg's message when all of several hosts have failed."""
_SCHEMAS = {TOO_OLD_TO_WRITE, TOO_OLD_TO_READ}
"""Errors whose reason is the name of a schema."""

_PUBLIC = {  # what a server or the network says, and what clients read of it
    "refused": "no server listens",
    "timeout expired": "a server does not answer",
    "translate host name": "the name of a server is unknown",
    "the database system is": "a server is starting or stopping",
    "read-only": "a standby accepts no writes",
    "password": "the password is wrong",
    "pg_hba.conf": "this machine is not allowed",
    "too many": "there are too many connections",
    "connection slots": "there are too many connections",
    'role "': "the user is unknown",
    'database "': "there is no such database",
    "closed": "the connection was lost",
}
_REACHED = "Check that the server runs and that MCP_MEMORY_STORE names it."


def is_transient(error: psycopg.Error) -> bool:
    """Return whether a failed transaction may succeed when it is retried at once."""
    if isinstance(error, (NoAnswer, errors.ConnectionTimeout)):
        return False
    if error.sqlstate is None:  # the connection was lost, or none could be opened
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    if error.sqlstate == NOT_ENTERED:  # it began before the database was contracted to this version
        return True
    return isinstance(error, (*_CONFLICTS, *_SERVER_GONE)) or error.sqlstate.startswith("08")


def has_failed(error: psycopg.Error) -> bool:
    """Return whether the server reported a failed statement, and with it the end of the transaction.

    Errors of the client, and errors with which the server closes a connection (FATAL), leave the outcome of a COMMIT
    open.
    """
    return error.diag.severity_nonlocalized == "ERROR"


@contextmanager
def translate_errors(name: str, timeout: float, *, writes: bool = True) -> Generator[None]:
    """Raise errors of the database `name` as NoRoom (full disk), InvalidInput (name too long) or StoreUnavailable.

    `timeout` is how many seconds a call may take. With `writes`, the text says that nothing was written. Its `public`
    form names no host and no user. Errors that only a bug can cause are raised unchanged.
    """
    nothing = " Nothing was written." if writes else ""
    try:
        yield
    except (PoolExhausted, Unconfirmed, psycopg.Error) as error:
        raised = _error_for(error, name, reason_of(error), timeout, nothing)
        if raised is None:
            raise  # a bug of ours
        public = _error_for(error, "the database", _public_reason(error), timeout, nothing)
        raised.public = str(public)[0].upper() + str(public)[1:]
        raise raised from None


def _error_for(error: Exception, name: str, reason: str, timeout: float, nothing: str) -> McpMemoryError | None:
    match error:
        case PoolExhausted():
            return StoreUnavailable(f"All {error} of this server to {name} are in use.{nothing} Try again.")
        case Unconfirmed():
            return StoreUnavailable(
                f"The write to {name} was {error} within {timeout:g} s: it may or may not be stored. Send it again;"
                " turns with an id are stored once."
            )
        case psycopg.Error():
            return _error_of_postgres(error, name, reason, timeout, nothing)
        case _:
            return None


def _error_of_postgres(
    error: psycopg.Error, name: str, reason: str, timeout: float, nothing: str
) -> McpMemoryError | None:
    match error:
        case NoAnswer() | errors.ConnectionTimeout():
            return StoreUnavailable(
                f"{name} did not answer within {timeout:g} s.{nothing} Try again; if it goes on, look at that server."
            )
        case _ if error.sqlstate == QUOTA_USED_UP:
            return quota_error(str(error))
        case _ if error.sqlstate == WRONG_PROOF:
            return StoreUnavailable(
                f"{name} does not accept the key of this server ({reason}). Set MCP_MEMORY_STORE_KEY to the key that"
                " `mcp-memory migrate --grant USER` printed for this user, or give the user a key with it."
            )
        case _ if error.sqlstate == TOO_OLD_TO_WRITE:
            return StoreUnavailable(
                f"{name} can only be read: schema {reason} can be written by newer versions only. Nothing was written."
                " Upgrade this mcp-memory."
            )
        case _ if error.sqlstate == TOO_OLD_TO_READ:
            return NewerHome(
                f"{name} was upgraded by a newer mcp-memory (schema {reason}). Nothing was changed. Upgrade this"
                " program in the way that you installed it."
            )
        case errors.DiskFull():
            return NoRoom(f"The disk of {name} is full ({reason}).{nothing} Free space on the server.")
        case errors.ProgramLimitExceeded():
            return InvalidInput(
                f"A name or an id is too long for {name} ({reason}).{nothing} Shorten it to 2,000 bytes."
            )
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return StoreUnavailable(
                f"Other writes to {name} were in the way at every try ({reason}).{nothing} Try again."
            )
        case errors.LockNotAvailable():
            return StoreUnavailable(
                f"Another write to {name} took longer than lock_timeout allows ({reason}).{nothing} Try again, or raise"
                " lock_timeout of the user or the database."
            )
        case _ if isinstance(error, _TOO_LONG):
            return StoreUnavailable(
                f"{name} took longer than {timeout:g} s, or than its settings allow ({reason}).{nothing} Try again, or"
                " raise MCP_MEMORY_STORE_TIMEOUT, or statement_timeout of the user or the database."
            )
        case errors.InsufficientPrivilege():
            return StoreUnavailable(
                f"The user of {name} may not do that ({reason}).{nothing} With the URL of the user who owns"
                " the tables, run `mcp-memory migrate --grant USER` for the servers' user; only the owner may upgrade"
                " or move them. The extension vector an administrator creates once."
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            advice = next((step for word, step in _CONNECTING.items() if word in str(error)), _REACHED)
            return StoreUnavailable(f"{name} cannot be used ({reason}).{nothing} {advice}")
        case _:
            return None


def _public_reason(error: Exception) -> str:
    """Return why the database failed, without its hosts, users and rows."""
    if isinstance(error, psycopg.Error) and error.sqlstate is not None:
        return reason_of(error) if error.sqlstate in _SCHEMAS else f"SQLSTATE {error.sqlstate}"
    reasons = dict.fromkeys(reason for words, reason in _PUBLIC.items() if words in str(error))
    return ", ".join(reasons) or "the connection failed"


def reason_of(error: Exception) -> str:
    """Return what the server said, or each of several hosts, in a line of at most 200 characters."""
    attempts = [f"{host}:{port} {reason}" for host, port, reason in _ATTEMPT.findall(str(error))]
    return " ".join(("; ".join(attempts) or str(error).split("\n", 1)[0]).split())[:200]


def name_of(url: str) -> str:
    """Return a URL without its user, password and parameters, for messages.

    Raises StoreUnavailable if it is malformed.
    """
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its text repeats the URL
        raise _malformed_url() from None
    hosts = str(parameters.get("host") or parameters.get("hostaddr") or "localhost").split(",")
    ports = [port or "5432" for port in str(parameters.get("port") or "").split(",")]
    database = str(parameters.get("dbname") or "")
    if any("@" in part for part in (*hosts, database)) or not all(port.isdigit() for port in ports):
        raise _malformed_url()  # a part of the password was read as something else
    ports *= len(hosts) if len(ports) == 1 else 1
    return f"postgresql://{','.join(':'.join(place) for place in zip(hosts, ports, strict=False))}/{database}"


def _malformed_url() -> StoreUnavailable:
    return StoreUnavailable(
        "MCP_MEMORY_STORE is not a URL of PostgreSQL. Its form is postgresql://USER:PASSWORD@HOST:5432/DATABASE; in a"
        " password, write @ / : % as %40 %2F %3A %25."
    )
