"""Runs a program once, and kills what remains of it when it exits, on request, or when this process dies.

Between this process and the program is a guard: this file, run as a script. It reads from a pipe. When the pipe closes,
because of `end()` or because this process died, the guard kills the program's process group (on Windows its process
tree) and deletes the folder. When the program exits, the guard kills the rest of the group and keeps the folder. A
child that has left the group is not killed. The guard uses the standard library only, so that it is small (12 MB of
memory).

The folder of a run contains the file `prompt`, the program's standard input; `out` and `err`, its output; and `work`,
its empty working directory.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_ENDING_S = 10.0
_LARGEST = 8 * 2**20
CANNOT_START = 127


class ClientRun:
    """A program that runs in `folder`. Raises OSError if the guard cannot be started."""

    def __init__(self, command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
        (folder / "work").mkdir()
        self._folder = folder
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(folder), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=dict(environ),
            start_new_session=True,  # Ctrl-C at a terminal is for this process
        )

    def wait(self, seconds: float) -> int | None:
        """Return the program's exit code; None if it has not ended after `seconds`."""
        try:
            return self._guard.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None

    def output(self) -> tuple[str, str]:
        """Return the program's standard output and standard error."""
        out, err = (_read(self._folder / name) for name in ("out", "err"))
        return out, err

    def end(self) -> None:
        """End the program and delete its folder, if it is running. May be called twice, and from any thread."""
        assert self._guard.stdin is not None
        with suppress(OSError):
            self._guard.stdin.close()
        try:
            self._guard.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()


def _read(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_LARGEST).decode("utf-8", "replace")
    return ""


def _main(folder: Path, command: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    with (
        (folder / "prompt").open("rb") as prompt,
        (folder / "out").open("wb") as out,
        (folder / "err").open("wb") as err,
    ):
        try:
            program = subprocess.Popen(
                command, cwd=folder / "work", stdin=prompt, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            err.write(str(error).encode())
            return CANNOT_START
    ending = threading.Lock()  # its holder ends this process: a kill must not end it before the folder is deleted
    threading.Thread(target=_watch, args=(program, folder, ending), daemon=True).start()
    code = program.wait()
    ending.acquire()
    _kill(program)  # remaining children
    return code


def _watch(program: subprocess.Popen[bytes], folder: Path, ending: threading.Lock) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    ending.acquire()
    _kill(program)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _kill(program: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        tree = ["taskkill", "/F", "/T", "/PID", str(program.pid)]
        subprocess.run(tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)


if __name__ == "__main__":
    os._exit(_main(Path(sys.argv[1]), sys.argv[2:]) & 0xFF)
