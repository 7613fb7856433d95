"""Target: a function from bytes, with all that must hold for a reader of them."""

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
    """A reader under test. `run` must return for any bytes; what it raises is a finding."""

    name: str
    run: Callable[[bytes], None]
    made: tuple[st.SearchStrategy[bytes], ...] = ()
    """Strategies for its own grammar, in addition to blended seeds and any text."""
    seconds: float = 3.0
    """Processor time for one input; inputs have at most some 60,000 bytes."""

    def seeds(self) -> list[bytes]:
        """Return valid inputs and inputs of earlier findings, with which a search begins."""
        return [path.read_bytes() for path in sorted((SEEDS / self.name).iterdir())]

    def inputs(self) -> st.SearchStrategy[bytes]:
        return st.one_of(blended(self.seeds()), *self.made, st.builds(as_bytes, texts))


def text_of(data: bytes) -> str:
    """Return bytes as a text with any character of a `str`, including lone surrogates."""
    return data.decode("utf-8", "surrogatepass") if _passes(data) else data.decode("utf-8", "replace")


def _passes(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def object_in(data: bytes) -> dict[str, Any]:
    """Return the JSON object in the bytes; for other bytes, an object with each line under `0`, `1`, …"""
    try:
        value: Any = json.loads(text_of(data))
    except (ValueError, RecursionError):
        value = text_of(data).split("\n")
    if isinstance(value, dict):
        return {str(key): held for key, held in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return {str(at): held for at, held in enumerate(value if isinstance(value, list) else [value])}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def mended(value: object) -> str:
    """Return a value as text."""
    return value if isinstance(value, str) else json.dumps(value)


def is_short(error: Exception, most: int) -> None:
    """Assert that the message of an error is short enough to be shown."""
    assert len(str(error)) <= most, f"{len(str(error))} characters of an error"
