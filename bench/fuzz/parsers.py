"""The command `parsers`: every target in a separate process, by hypothesis and, if it is installed, by atheris.

The targets get equal time. A process may use 4 GiB; if it ends without a report, its input killed it, which the last
finding in its file or its exit code shows.
"""

from __future__ import annotations

import argparse
import base64
import faulthandler
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from bench.fuzz import guided
from bench.fuzz.hunting import Finding, Hunt
from bench.fuzz.target import Target

_MEMORY = 4 * 2**30
_NEVER_RETURNS_SECONDS = 120


@cache
def targets() -> dict[str, Target]:
    """Return all targets by name; this imports the modules that they test."""
    from bench.fuzz import imports, readers, trust

    return {target.name: target for target in (*readers.TARGETS, *imports.TARGETS, *trust.TARGETS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """A target, the method, and the time for it."""

    name: str
    engine: str
    seconds: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    share: _Share
    runs: int
    findings: list[Finding]
    ended: str
    """How the process ended abnormally; else empty."""


# --- one process ------------------------------------------------------------------------------------


def _hunt(share: _Share, into: Path) -> None:
    """Run a hunt in this process, and write each finding at once."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    faulthandler.enable()

    def note(**what: Any) -> None:
        with into.open("a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")

    def told(found: Finding) -> None:
        note(finding={**asdict(found), "data": base64.b64encode(found.data).decode()})

    def load() -> Hunt:
        return Hunt(targets()[share.name], told=told)

    def at_end(hunt: Hunt) -> None:
        note(runs=hunt.runs)

    if share.engine == "atheris":
        with TemporaryDirectory(prefix="fuzz-") as folder:
            guided.hunt(load, seconds=share.seconds, seed=share.seed, folder=Path(folder), at_end=at_end)
    hunt = load()
    hunt.by_hypothesis(seconds=share.seconds, start=share.seed)
    at_end(hunt)


# --- all of them ------------------------------------------------------------------------------------


def _spawned(share: _Share, folder: Path) -> _Told:
    into = folder / f"{share.name}-{share.engine}.jsonl"
    command = [sys.executable, "-m", "bench.fuzz", "parsers", "--share", json.dumps(asdict(share)), str(into)]
    ended = ""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=share.seconds + _NEVER_RETURNS_SECONDS,
            check=False,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        if done.returncode:
            ended = f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[-1_500:]}"
    except subprocess.TimeoutExpired:
        ended = f"it did not come back for {_NEVER_RETURNS_SECONDS} s after its time"
    return _read(share, into, ended)


def _read(share: _Share, into: Path, ended: str) -> _Told:
    runs, findings = 0, list[Finding]()
    for line in into.read_text(encoding="utf-8").splitlines() if into.exists() else ():
        said = json.loads(line)
        if "runs" in said:
            runs = said["runs"]
        else:
            held: dict[str, Any] = said["finding"]
            held["data"] = base64.b64decode(held["data"])
            findings.append(Finding(**held))
    return _Told(share=share, runs=runs, findings=findings, ended=ended or ("" if runs else "it said nothing"))


def _all(shares: Sequence[_Share], jobs: int) -> list[_Told]:
    with TemporaryDirectory(prefix="fuzz-") as folder, ThreadPoolExecutor(jobs) as pool:
        done = pool.map(partial(_spawned, folder=Path(folder)), shares)
        return list(tqdm(done, total=len(shares), desc="parsers", unit="share", leave=False))


def _table(told: Sequence[_Told]) -> Iterator[str]:
    yield f"{'target':<16}{'engine':<12}{'inputs':>10}  findings"
    for one in told:
        yield f"{one.share.name:<16}{one.share.engine:<12}{one.runs:>10,}  {len(one.findings) or 'none'}"
    yield f"{'together':<28}{sum(one.runs for one in told):>10,}"
    seen = set[tuple[str, str, str]]()
    for finding in (finding for one in told for finding in one.findings):
        if finding.key not in seen:
            seen.add(finding.key)
            yield f"\n{finding.target}: {finding.what}\n  at {finding.where}\n  input {finding.data[:400]!r}"
            yield "  " + finding.trace.rstrip().replace("\n", "\n  ")
    for one in told:
        if one.ended:
            yield f"\n{one.share.name} by {one.share.engine} did not end as it should: {one.ended}"


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    if arguments[:1] == ["--share"]:  # before anything is imported that atheris is to see the branches of
        _hunt(_Share(**json.loads(arguments[1])), Path(arguments[2]))
        return 0
    parser = argparse.ArgumentParser(prog="bench.fuzz parsers", description="Give every reader what may break it.")
    parser.add_argument("--minutes", type=float, default=5, help="for all targets together [default: %(default)s]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--only", metavar="NAME", action="append", help=f"of {', '.join(targets())}")
    parser.add_argument("--engine", choices=["hypothesis", "atheris"], help="this one alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the inputs that were found there")
    options = parser.parse_args(arguments)
    names = options.only or list(targets())
    if unknown := [name for name in names if name not in targets()]:
        parser.error(f"there is no target {unknown[0]!r}; there are {', '.join(targets())}")
    engines = [options.engine] if options.engine else ["hypothesis", *(["atheris"] if guided.installed() else [])]
    seconds = options.minutes * 60 * options.jobs / (len(names) * len(engines))
    told = _all(
        [_Share(name=name, engine=engine, seconds=seconds, seed=options.seed) for name in names for engine in engines],
        options.jobs,
    )
    print("\n".join(_table(told)))
    if options.keep:
        _keep(told, options.keep)
    return int(any(one.findings or one.ended for one in told))


def _keep(told: Sequence[_Told], folder: Path) -> None:
    for one in told:
        for number, finding in enumerate(one.findings, start=1):
            place = folder / one.share.name
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{one.share.engine}-{one.share.seed}-{number}").write_bytes(finding.data)
