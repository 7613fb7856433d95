"""Not written yet."""

from typing import Any


def commit_extraction(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def drafts(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def commit_merge(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
