"""Reads tolerant replies of models: field types, and a base class that drops invalid list items one by one.

Models often miss a schema: a list of lines for a text, a single value for a list, null or "none" for nothing, other
names for fields and for the values of a choice. The types here accept these replies. Other errors are those of
pydantic: an invalid item of a list is dropped, with a reason in `dropped_items`, and the remaining reply is used. A
reply that is invalid outside its lists, or in all items of a list, is refused as a whole, so that its author learns
why.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

_NOTHING = {
    "", "null", "none", "nil", "n/a", "na", "unknown", "undefined", "-", "?", "now", "present", "ongoing", "current",
}  # fmt: skip


def is_nothing(value: Any) -> bool:
    """Return whether a value is null or a text that stands for no value, such as "n/a" or "ongoing"."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def as_text(value: Any) -> Any:
    """Return null as an empty text, a text stripped, a list as lines, a number as digits, anything else unchanged."""
    if isinstance(value, list):
        return "\n".join(map(str, cast("list[Any]", value)))
    return "" if value is None else value.strip() if isinstance(value, str) else _number_as_text(value)


def _number_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) else value


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, an empty list for `is_nothing` values, and a list of one item for any other value."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    return [] if is_nothing(value) else [value]


def choice(spellings: Mapping[str, str], unknown: str | None = None) -> BeforeValidator:
    """Return a validator that looks a value up in any case (null as ""), and gives `unknown` for a missing spelling."""
    return BeforeValidator(lambda value: spellings.get("" if value is None else str(value).strip().lower(), unknown))


def object_fields(data: Any, names: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any] | None:
    """Return the fields of an object under our names, None for anything else.

    `names` maps other names to ours, which win if both are there.
    """
    if not isinstance(data, dict):
        return None
    fields = cast("dict[str, Any]", data)
    return {ours: fields[key] for key in fields if (ours := names.get(key, key)) == key or ours not in fields}


Text = Annotated[str, BeforeValidator(as_text)]
TextList = Annotated[list[Text], BeforeValidator(as_list)]


class TolerantReply(BaseModel):
    """A reply whose invalid list items are dropped. It is invalid as a whole if all items of a list are."""

    _dropped_items: list[str] = PrivateAttr(default_factory=list[str])

    @property
    def dropped_items(self) -> list[str]:
        """A sentence for each list item that was invalid."""
        return self._dropped_items

    @classmethod
    def arranged(cls, data: Any) -> Any:
        """Return the data in the structure of the schema; a reply that may be nested otherwise overrides this."""
        return data

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, cls):
            return handler(data)
        data = cls.arranged(data)
        try:
            return handler(data)
        except ValidationError as error:
            reasons = _invalid_items(error)
            valid = _without_items(data, reasons)
            if valid is None:
                raise
        reply = handler(valid)
        reply._dropped_items = [f"{field}[{index}] was left out: {why}." for (field, index), why in reasons.items()]
        return reply


def _invalid_items(error: ValidationError) -> dict[tuple[str, int], str]:
    """Return the first reason for each invalid item by its field and index; empty if anything else is invalid."""
    reasons: dict[tuple[str, int], str] = {}
    for problem in error.errors(include_url=False, include_input=False):
        match problem["loc"]:
            case (str(field), int(index), *within):
                reasons.setdefault((field, index), ": ".join([*map(str, within), problem["msg"]]))
            case _:
                return {}
    return reasons


def _without_items(data: Any, invalid: Mapping[tuple[str, int], str]) -> dict[str, Any] | None:
    """Return the fields without these items; None if there are no such items, or a list would lose all of its items."""
    fields = object_fields(data) or {}
    for name in {field for field, _ in invalid}:
        items = fields.get(name)
        if not isinstance(items, list):
            return None
        valid = [item for index, item in enumerate(cast("list[Any]", items)) if (name, index) not in invalid]
        if not valid:
            return None
        fields[name] = valid
    return fields if invalid else None
