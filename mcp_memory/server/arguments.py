"""JSON schemas of the tools, and error messages for invalid arguments.

Both are derived from the signature of the function that declares a tool, on first use and not at import: pydantic
needs tens of milliseconds for it, and `initialize` must not wait.
"""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails, from_json

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line

if TYPE_CHECKING:
    from pydantic import JsonValue


_SHOWN_PROBLEMS = 3
_SHOWN_VALUE = 40
_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


def argument_model(run: Callable[..., object]) -> type[BaseModel]:
    """Return the pydantic model of the parameters of `run`."""
    hints = get_type_hints(run, include_extras=True)
    parameters = inspect.signature(run).parameters.values()
    fields: dict[str, Any] = {p.name: (hints[p.name], ... if p.default is p.empty else p.default) for p in parameters}
    return create_model(run.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def parse_arguments(tool: str, model: type[BaseModel], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the validated arguments of a call.

    Raises InvalidInput, naming up to three wrong arguments and the allowed values.
    """
    try:
        parsed = model.model_validate(arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=True)
        sentences = [_sentence(tool, model, problem) for problem in problems[:_SHOWN_PROBLEMS]]
        if len(problems) > _SHOWN_PROBLEMS:
            sentences.append(f"And {len(problems) - _SHOWN_PROBLEMS} more like these.")
        raise InvalidInput(" ".join(sentences)) from None
    return {name: getattr(parsed, name) for name in model.model_fields}


def parse_json(text: str, what: str, expected: str) -> JsonValue:
    """Return the value of a JSON text. Raises InvalidInput for other text, NaN and Infinity included.

    `what` and `expected` are for the error.
    """
    try:
        return cast("JsonValue", from_json(text, allow_inf_nan=False))
    except ValueError as error:
        raise InvalidInput(f"{what} is not valid JSON ({one_line(str(error), 120)}). Send {expected}.") from None


_SENTENCES = {
    "missing": "{tool} needs {name!r}.",
    "literal_error": "{name} must be one of {ctx[expected]}, not {shown}.",
    "greater_than_equal": "{name} must be at least {ctx[ge]}, not {shown}.",
    "less_than_equal": "{name} must be at most {ctx[le]}, not {shown}.",
    "too_short": "{name} is empty; send at least one.",
    "string_type": "{name} must be a string, not {kind}.",
    "int_type": "{name} must be a whole number, not {shown}.",
    "int_parsing": "{name} must be a whole number, not {shown}.",
    "int_from_float": "{name} must be a whole number, not {shown}.",
    "bool_type": "{name} must be true or false, not {shown}.",
    "bool_parsing": "{name} must be true or false, not {shown}.",
    "list_type": "{name} must be a list, not {kind}.",
    "model_type": "{name} must be an object, not {kind}.",
    "dict_type": "{name} must be an object, not {kind}.",
}
"""Messages by pydantic's error type; `kind` and `shown` describe the invalid value."""


def _sentence(tool: str, model: type[BaseModel], problem: ErrorDetails) -> str:
    name, value = _path(problem["loc"]), problem["input"]
    if problem["type"] == "extra_forbidden":
        owner, fields = _fields_beside(tool, model, problem["loc"])
        return f"{owner} {one_line(str(problem['loc'][-1]), _SHOWN_VALUE)!r}; it takes: {', '.join(fields)}."
    text = _SENTENCES.get(problem["type"])
    if text is None:
        return f"{name}: {problem['msg']}."
    kind = next((kind for type_, kind in _KINDS.items() if isinstance(value, type_)), "a number")
    return text.format(tool=tool, name=name, ctx=problem.get("ctx", {}), kind=kind, shown=_shorten(value))


def _fields_beside(tool: str, model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[str, Iterable[str]]:
    if len(loc) == 1:
        return f"{tool} has no argument", model.model_fields
    schema = input_schema(model)["properties"][loc[0]]["items"]  # only lists of objects are nested
    return f"{_path(loc[:-1])} has no field", schema["properties"]


def _path(loc: Iterable[int | str]) -> str:
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _shorten(value: object) -> str:
    """Return the beginning of an invalid value, for an error message."""
    return repr(one_line(value, _SHOWN_VALUE)) if isinstance(value, str) else one_line(repr(value), _SHOWN_VALUE)


# --- schemas ----------------------------------------------------------------------------------------


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema to publish: inlined, and without titles and nulls, which only cost tokens.

    Optional arguments are those missing from `required`; null is accepted for them too.
    """
    schema = model.model_json_schema()
    defs = schema.pop("$defs", {})
    return _strip_schema(schema, defs)


def _strip_schema(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    schema = {k: v for k, v in schema.items() if k != "title" and not (k == "default" and v in (None, [], ""))}
    if "$ref" in schema:
        schema = defs[schema.pop("$ref").removeprefix("#/$defs/")] | schema
        return _strip_schema(schema, defs)
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
        if len(choices) == 1:
            del schema["anyOf"]
            return _strip_schema(choices[0] | schema, defs)
    if "properties" in schema:
        schema["properties"] = {name: _strip_schema(field, defs) for name, field in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = _strip_schema(schema["items"], defs)
    return schema


def output_schema(answer: type) -> dict[str, Any]:
    """Return the schema of an answer of `types` as `render.as_data` serializes it, without null fields.

    It has names and types only, because some clients show it to a model: no titles, descriptions, formats, values or
    lists of required fields. Types used once are inlined.
    """
    schema = TypeAdapter(answer).json_schema(mode="serialization")
    defs: dict[str, Any] = schema.pop("$defs", {})
    uses = Counter(re.findall(r'"#/\$defs/(\w+)"', json.dumps([schema, defs])))
    once = {name: shape for name, shape in defs.items() if uses[name] == 1}
    shared = {name: _names_and_types(shape, once) for name, shape in defs.items() if name not in once}
    return ({"$defs": shared} if shared else {}) | _names_and_types(schema, once)


_NULL = {"type": "null"}


def _names_and_types(schema: dict[str, Any], inlined: dict[str, Any]) -> dict[str, Any]:
    if (name := schema.get("$ref", "").rpartition("/")[2]) in inlined:
        return _names_and_types(inlined[name], inlined)
    choices = [choice for choice in schema.get("anyOf", ()) if choice != _NULL]
    if len(choices) == 1:
        return _names_and_types(choices[0], inlined)
    typed: dict[str, Any] = {key: schema[key] for key in ("$ref", "type") if key in schema}
    if choices:
        typed["anyOf"] = [_names_and_types(choice, inlined) for choice in choices]
    if "properties" in schema:
        fields: dict[str, Any] = schema["properties"]
        typed["properties"] = {name: _names_and_types(field, inlined) for name, field in fields.items()}
    if items := schema.get("items") or schema.get("prefixItems", [None])[0]:
        typed["items"] = _names_and_types(items, inlined)
    return typed
