"""What a target is: bytes in, and everything that must hold for a reader that is given them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bench.fuzz.material import as_bytes, blended, texts

SEEDS = Path(__file__).parents[2] / "fixtures" / "fuzz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A reader. `run` returns for any bytes whatever; what it raises is a finding."""

    name: str
    run: Callable[[bytes], None]
    made: tuple[st.SearchStrategy[bytes], ...] = ()
    """Inputs of its own grammar, beside the blended seeds and any text."""
    seconds: float = 3.0
    """Of processor time that one input may take; inputs have at most some 60,000 bytes."""

    def seeds(self) -> list[bytes]:
        """Return what it reads when all is well, and what broke it once: where a search begins."""
        return [path.read_bytes() for path in sorted((SEEDS / self.name).iterdir())]

    def inputs(self) -> st.SearchStrategy[bytes]:
        return st.one_of(blended(self.seeds()), *self.made, st.builds(as_bytes, texts))


def text_of(data: bytes) -> str:
    """Return bytes as a text that may hold anything a `str` can, lone surrogates too."""
    return data.decode("utf-8", "surrogatepass") if _passes(data) else data.decode("utf-8", "replace")


def _passes(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def object_in(data: bytes) -> dict[str, Any]:
    """Return the object that stands in the bytes as JSON; of any other bytes one with each line under `0`, `1`, …"""
    try:
        value: Any = json.loads(text_of(data))
    except (ValueError, RecursionError):
        value = text_of(data).split("\n")
    if isinstance(value, dict):
        return {str(key): held for key, held in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return {str(at): held for at, held in enumerate(value if isinstance(value, list) else [value])}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def mended(value: object) -> str:
    """Return a value where a text is needed."""
    return value if isinstance(value, str) else json.dumps(value)


def is_short(error: Exception, most: int) -> None:
    """Hold an error of ours to what may be shown to whoever asked."""
    assert len(str(error)) <= most, f"{len(str(error))} characters of an error"
