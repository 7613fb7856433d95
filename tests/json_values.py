"""Any JSON value, for properties of what reads one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEXT = st.text(max_size=9)


def json_values(
    keys: st.SearchStrategy[str] = TEXT, *, scalars: st.SearchStrategy[Any] | None = None
) -> st.SearchStrategy[Any]:
    """Scalars (by default of every kind, NaN and infinities too), lists, and objects with these keys."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | TEXT if scalars is None else scalars
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=12
    )
