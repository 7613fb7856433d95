"""Not written yet."""

from typing import Any


def backlog(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def flush(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def stage_states(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def want(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def waiting(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def by_id(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def take(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def park(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def release(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def done(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def finish(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def move(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
