"""Loads the extension of sqlite-vec into a connection."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import apsw


def load_vectors(con: apsw.Connection) -> None:
    """Give a connection the tables and functions of sqlite-vec."""
    con.enable_load_extension(True)
    con.load_extension(_extension())
    con.enable_load_extension(False)


@cache
def _extension() -> str:
    """Return where the package has the extension, without importing it: it would import numpy, which takes 20 MB and
    which a server needs only for its first search.
    """
    spec = find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'sqlite_vec'", name="sqlite_vec")
    return str(Path(spec.origin).with_name("vec0"))
