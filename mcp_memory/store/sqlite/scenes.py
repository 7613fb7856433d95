"""Not written yet."""

from typing import Any


def commit(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def listed(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def versions(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
