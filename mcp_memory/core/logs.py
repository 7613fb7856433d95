"""Logging without contents: text lines for people, or JSON objects for programs.

By default no record shows contents, at any level, including records of other libraries. Records show messages that are
constants of the logging code, numbers, `SafeText`, the `fields` of our events, and the type and location of errors.
Everything else is replaced by an ellipsis. The owner finds the details in `status` and `doctor`, or in the log if the
setting `log_contents` is on; keys and passwords are masked there too.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, Literal

from mcp_memory.core.errors import ServerRefused, StoreUnavailable

LogFormat = Literal["text", "json"]

_WITHHELD = "…"
_MAX_FRAMES = 30


class SafeText(str):
    """Text that cannot be content: the name of a tool, a stage or a client's event, or an id of ours."""

    __slots__ = ()


def set_up(
    *,
    level: str = "warning",
    form: LogFormat = "text",
    contents: bool = False,
    handler: logging.Handler | None = None,
    prefix: str | None = None,
) -> None:
    """Send the log of this process to `handler`, by default to stderr. For programs; a library user configures logging.

    `prefix` replaces time, level and logger name. Unless `contents`, uncaught errors are logged too, without contents.
    Does nothing if logging is configured already.
    """
    if logging.root.handlers:
        return
    handler = handler or logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(form=form, contents=contents, prefix=prefix))
    logging.basicConfig(handlers=[handler], level=level.upper())
    logging.captureWarnings(True)  # warnings quote values
    logging.raiseExceptions = contents  # a record that cannot be formatted is printed whole
    if not contents:
        sys.excepthook = _log_uncaught
        threading.excepthook = lambda failed: _log_uncaught(failed.exc_type, failed.exc_value, failed.exc_traceback)


def event(logger: logging.Logger, what: str, *, level: int = logging.INFO, **fields: float | str | bool | None) -> None:
    """Log an event. `fields` must not be contents of the memory."""
    logger.log(level, what, extra={"fields": fields}, stacklevel=2)


class LogFormatter(logging.Formatter):
    """Formats records. It must run during the call that logs, because it inspects the stack."""

    def __init__(self, *, form: LogFormat = "text", contents: bool = False, prefix: str | None = None) -> None:
        super().__init__(f"{prefix}%(message)s" if prefix else "%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._form = form
        self._contents = contents

    def format(self, record: logging.LogRecord) -> str:
        if not self._contents:
            return self._line(record)
        from mcp_memory.core.secrets.masking import mask

        return mask(self._line(record))

    def _line(self, record: logging.LogRecord) -> str:
        message = record.getMessage() if self._contents else _safe_message(record)
        fields: dict[str, Any] = getattr(record, "fields", {})
        if self._form == "json":
            return json.dumps(self._object(record, message, fields), ensure_ascii=False, default=str)
        lines = [message + "".join(f" {key}={value}" for key, value in fields.items() if value is not None)]
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            lines += [self.formatException(record.exc_info)] if self._contents else _error_lines(error)
        shown = logging.makeLogRecord({**record.__dict__, "msg": lines[0], "args": None})
        shown.exc_info = shown.exc_text = shown.stack_info = None
        return "\n".join([super().format(shown), *lines[1:]])

    def _object(self, record: logging.LogRecord, message: str, fields: dict[str, Any]) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
            **{key: value for key, value in fields.items() if value is not None},
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is None or record.exc_info is None:
            return entry
        if self._contents:
            return {**entry, "error": type(error).__name__, "trace": self.formatException(record.exc_info).splitlines()}
        return {**entry, "error": _error_name(error), "trace": [line.strip() for line in _error_lines(error)[1:]]}


# --- contents withheld -----------------------------------------------------------------------------


def _safe_message(record: logging.LogRecord) -> str:
    """Return the message with possible contents withheld."""
    if not isinstance(record.msg, str) or not _is_constant(record.msg):
        return f"{_WITHHELD} ({PurePath(record.pathname).name}:{record.lineno})"
    if not record.args:
        return record.msg
    try:
        if isinstance(record.args, tuple):
            return record.msg % tuple(map(_safe_argument, record.args))
        return record.msg % {key: _safe_argument(value) for key, value in record.args.items()}
    except (TypeError, ValueError):  # the format requires a number
        return record.msg


def _safe_argument(value: object) -> object:
    match value:
        case bool() | int() | float() | None | SafeText():
            return value
        case BaseException():
            return _error_name(value)
        case _:
            return _WITHHELD


def _is_constant(message: str) -> bool:
    """Return whether the message is a constant of the running code, and therefore not user data."""
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if message in frame.f_code.co_consts:
            return True
        frame = frame.f_back
    return False


def _error_name(error: BaseException) -> str:
    """Return the type of an error, and its text if that can only be about this machine."""
    match error:
        case StoreUnavailable():
            from mcp_memory.core.secrets.masking import mask

            return f"{type(error).__name__}: {mask(str(error))}"
        case OSError(strerror=str(why)) | ServerRefused(cause=str(why)):
            return f"{type(error).__name__}: {why}"
        case _:
            return type(error).__name__


def _error_lines(error: BaseException) -> list[str]:
    """Return the type and location of an error and of its causes."""
    lines: list[str] = []
    for cause in _causes(error):
        lines.append(f"  because of {_error_name(cause)}" if lines else f"  {_error_name(cause)}")
        lines += [f"    at {place}" for place in _frames(cause.__traceback__)]
    return lines


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    before: BaseException | None = error
    while before is not None and before not in chain:
        chain.append(before)
        inner: list[BaseException] = list(getattr(before, "exceptions", ()))  # of an exception group, the first
        before = (
            before.__cause__ or (None if before.__suppress_context__ else before.__context__) or next(iter(inner), None)
        )
    return chain


def _frames(trace: TracebackType | None) -> Iterator[str]:
    """Yield the frames of a traceback, innermost last, without folders of this machine."""
    for frame, line in [*walk_tb(trace)][-_MAX_FRAMES:]:
        parts = PurePath(frame.f_code.co_filename).parts
        begin = next((place for place in reversed(range(len(parts))) if parts[place] == "site-packages"), -4)
        short = "/".join(parts[begin + 1 :] if begin > 0 else parts[-3:])
        yield f"{short}:{line} {frame.f_code.co_name}"


def _log_uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if error is None or isinstance(error, KeyboardInterrupt):
        sys.__excepthook__(kind, error or kind(), trace)
    else:
        logging.getLogger("mcp_memory").critical("stopped by an error", exc_info=(kind, error, trace))
