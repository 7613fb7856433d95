"""A program that behaves as a client does, for tests: it prints what its script says and notes what it was given."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = """\
#!{python} -IS
import json, os, pathlib, subprocess, sys, time
here = pathlib.Path({folder!r})
script = json.loads((here / "script.json").read_text())
home = os.environ.get("CODEX_HOME") or os.environ.get("GEMINI_CLI_HOME")
seen = {{
    "arguments": sys.argv[1:],
    "prompt": sys.stdin.read(),
    "cwd": os.getcwd(),
    "files": os.listdir(),
    "home": home and {{str(one.relative_to(home)): one.read_text() for one in pathlib.Path(home).rglob("*") if one.is_file()}},
    "named": {{one: pathlib.Path(one).read_text() for one in sys.argv if os.path.isfile(one)}},
    "environ": dict(os.environ),
}}
if script["hangs"]:
    child = subprocess.Popen(["sleep", "600"])
    seen["pids"] = [os.getpid(), child.pid]
for renewed, text in script["renews"].items():
    (pathlib.Path(home) / renewed).write_text(text)
(here / "seen.tmp").write_text(json.dumps(seen))
(here / "seen.tmp").replace(here / "seen.json")
if script["hangs"]:
    (here / "running").touch()
    time.sleep(600)
sys.stdout.write(script["out"])
sys.stderr.write(script["err"])
sys.exit(script["code"])
"""


@dataclass(frozen=True)
class FakeClient:
    """A program in `folder`, which belongs on the PATH."""

    folder: Path

    def says(
        self, out: Any = "", err: str = "", *, code: int = 0, hangs: bool = False, renews: dict[str, str] | None = None
    ) -> None:
        """Set what it prints: a text, an object as JSON, or a list of them, one a line."""
        text = out if isinstance(out, str) else "\n".join(map(json.dumps, out if isinstance(out, list) else [out]))  # pyright: ignore[reportUnknownArgumentType]
        script = {"out": text, "err": err, "code": code, "hangs": hangs, "renews": renews or {}}
        (self.folder / "script.json").write_text(json.dumps(script), encoding="utf-8")

    @property
    def seen(self) -> dict[str, Any]:
        """What it was given when it last ran."""
        return json.loads((self.folder / "seen.json").read_text(encoding="utf-8"))

    @property
    def running(self) -> Path:
        """The file that is there once it hangs."""
        return self.folder / "running"


def make_client(folder: Path, program: str) -> FakeClient:
    """Make the program in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / program
    path.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder)), encoding="utf-8")
    path.chmod(0o755)
    return FakeClient(folder)
