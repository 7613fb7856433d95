"""The process of the daemon: its lock, its log, and its new start while nobody asks.

Each home and settings key has one daemon, with a file lock that the system releases however the daemon ends. The lock
is taken before the slow imports, so that hooks which come at once do not start several.
"""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import logging.handlers
import os
import sys
import time
from pathlib import Path
from typing import IO

from mcp_memory.core.garbage import collect_rarely
from mcp_memory.core.logs import set_up
from mcp_memory.core.malloc import limit_malloc_arenas
from mcp_memory.core.private_files import open_private, opener, touch
from mcp_memory.core.process_registry import try_lock
from mcp_memory.integrations.hooks.daemon_files import DaemonEndpoint, DaemonFiles

logger = logging.getLogger(__name__)

MODULE = "mcp_memory.daemon.process"
_LOCKING_S = 5.0
_LOG_BYTES = 200_000


def main(arguments: list[str]) -> int:
    """Run the daemon for a home, a space or "", a settings key and seconds of silence; return the exit code."""
    home, space, key, *silent = arguments
    files = DaemonFiles(Path(home), space or None, key)
    if not files.waiting.is_dir():  # the hook created it; the home was deleted since
        return 0
    lock = _acquire_lock(files)
    if lock is None:
        return 0
    with lock:
        try:
            set_up(handler=_log_handler(files.log))
            limit_malloc_arenas()
            gc.disable()
            from mcp_memory.daemon.daemon import serve

            collect_rarely()
            silence = asyncio.run(serve(files, silent=float(silent[0]) if silent else 0.0))
        except Exception:
            logger.exception("the hooks stopped, by a fault of this program")
            if files.folder.is_dir():
                touch(files.failed)
            return 1
    if silence is not None:
        logging.shutdown()
        os.execv(sys.executable, [sys.executable, "-P", "-m", MODULE, home, space, key, f"{silence:.0f}"])
    return 0


def _log_handler(log: Path) -> logging.Handler:
    """Return the handler of the log; a null handler if a pipe or device is in its place, which `health` reports."""
    if log.exists() and not (log.is_file() or log.is_dir()):
        return logging.NullHandler()
    return _PrivateLog(log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")


class _PrivateLog(logging.handlers.RotatingFileHandler):
    def _open(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(open_private(Path(self.baseFilename), "ab"), encoding=self.encoding)


def _acquire_lock(files: DaemonFiles) -> IO[bytes] | None:
    """Lock the lock file and return it; None if another process keeps the lock."""
    file = io.FileIO(files.lock, "ab", opener=opener)
    until = time.monotonic() + _LOCKING_S
    while not _try_lock(file):
        # The holder may be about to end: then its endpoint file is gone, and the next hook waits for us.
        if DaemonEndpoint.read(files.file) is not None or time.monotonic() > until:
            file.close()
            return None
        time.sleep(0.05)
    return file


def _try_lock(file: IO[bytes]) -> bool:
    try:
        return try_lock(file.fileno(), shared=False)
    except OSError:  # a file system without locks
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
