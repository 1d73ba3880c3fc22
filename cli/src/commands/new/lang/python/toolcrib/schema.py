"""JSON Schema of type hints, and values of these types from JSON."""

import base64
import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
SUPPORTED = "str, int, float, bool, bytes, list, dict, Literal, Enum, TypedDict, a dataclass, `X | None`, or Annotated"


def parameters(function: Callable[..., Any], hints: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a function's arguments."""
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"parameter `{name}`: `*` and `/` are not possible, because arguments have names")
        if name not in hints:
            raise TypeError(f"parameter `{name}` has no type hint; use {SUPPORTED}")
        try:
            properties[name] = schema_of(hints[name], parameter.default is None)
        except TypeError as error:
            raise TypeError(f"parameter `{name}`: {error}") from None
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            properties[name]["default"] = to_json(parameter.default)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def schema_of(hint: Any, is_optional: bool = False) -> dict[str, Any]:
    """Returns the schema of a type hint; an optional argument is left out rather than null."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = schema_of(parts[0], is_optional)
        for note in hint.__metadata__:
            schema |= {"description": note} if isinstance(note, str) else note if isinstance(note, dict) else {}
        return schema
    if hint in SIMPLE:
        return {"type": SIMPLE[hint]}
    if hint is Any or hint is object:
        return {}
    if hint is bytes:
        return {"type": "string", "contentEncoding": "base64"}
    if origin in (typing.Required, typing.NotRequired):
        return schema_of(parts[0])
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin in (typing.Union, types.UnionType):
        schemas = [schema_of(part) for part in parts if not (is_optional and part is type(None))]
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if hint is list or origin is list:
        return {"type": "array", "items": schema_of(parts[0])} if parts else {"type": "array"}
    if hint is dict or origin is dict:
        if parts and parts[0] is not str:
            raise TypeError("a dict has keys of the type str")
        return {"type": "object", "additionalProperties": schema_of(parts[1])} if parts else {"type": "object"}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [to_json(case.value) for case in hint]}
    if (fields := fields_of(hint)) is not None:
        properties = {name: schema_of(kind) for name, (kind, _) in fields.items()}
        required = [name for name, (_, must) in fields.items() if must]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    raise TypeError(f"no schema for the type `{getattr(hint, '__name__', hint)}`; use {SUPPORTED}")


def fields_of(hint: Any) -> dict[str, tuple[Any, bool]] | None:
    """Returns the fields of a dataclass or a TypedDict, each with its type and whether it is required."""
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        without = dataclasses.MISSING
        given = {f.name: f.default is without and f.default_factory is without for f in dataclasses.fields(hint) if f.init}
        return {name: (hints[name], must) for name, must in given.items()}
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return {name: (kind, name in hint.__required_keys__) for name, kind in hints.items()}
    return None


def from_json(hint: Any, value: Any) -> Any:
    """Returns a value of a type from JSON that is valid against the type's schema."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return from_json(parts[0], value)
    if origin in (typing.Union, types.UnionType):
        kinds = [part for part in parts if part is not type(None)]
        return value if value is None or len(kinds) != 1 else from_json(kinds[0], value)
    if hint in (int, float) and isinstance(value, (int, float)):
        return hint(value)
    if hint is bytes:
        return base64.b64decode(value)
    if origin is list:
        return [from_json(parts[0], item) for item in value]
    if origin is dict:
        return {key: from_json(parts[1], item) for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if (fields := fields_of(hint)) is not None:
        given = {name: from_json(fields[name][0], item) for name, item in value.items()}
        return given if typing.is_typeddict(hint) else hint(**given)
    return value


def to_json(value: Any) -> Any:
    """Returns a value as JSON: with dataclasses as objects, enums as their values, and bytes as base64."""
    if isinstance(value, enum.Enum):
        return to_json(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"a value of the type `{type(value).__name__}`")
