"""Runs a target under atheris, which is guided by branch coverage, if it is installed (the extra `fuzz`; Linux).

It never returns: libFuzzer ends the process, so each run needs its own. Readers are imported under atheris's import
hooks, which instrument their branches.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

from bench.fuzz.hunting import Hunt
from bench.fuzz.material import PIECES, as_bytes

_LONGEST = 20_000


def installed() -> bool:
    return find_spec("atheris") is not None


def hunt(
    load: Callable[[], Hunt], *, seconds: float, seed: int, folder: Path, at_end: Callable[[Hunt], None]
) -> NoReturn:
    """Run the hunt that `load` returns after importing the readers.

    `folder` gets the inputs that reached new branches.
    """
    import atheris  # pyright: ignore[reportMissingImports]

    guide: Any = atheris  # pyright: ignore[reportUnknownVariableType]
    with guide.instrument_imports(include=["mcp_memory"]):
        found = load()
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(found.target.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
    words = folder / "words"
    words.write_text("".join(f"{_quoted(as_bytes(piece))}\n" for piece in PIECES if len(piece) < 30), encoding="ascii")
    end = monotonic() + seconds

    def one(data: bytes) -> None:
        found.once(data)
        if monotonic() > end:
            at_end(found)
            os._exit(0)

    limits = [f"-max_len={_LONGEST}", f"-dict={words}", "-rss_limit_mb=0", "-timeout=600", "-verbosity=0"]
    guide.Setup([sys.argv[0], f"-seed={seed + 1}", *limits, str(corpus)], one)
    guide.Fuzz()
    raise AssertionError("libFuzzer ends the process")


def _quoted(data: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'
