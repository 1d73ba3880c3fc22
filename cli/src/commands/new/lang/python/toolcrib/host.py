"""Functions of the host: output for people, the log, other tools, the model, the cache, and names of secrets."""

import json
from importlib import import_module
from typing import Any, Literal

from .errors import KINDS, Failed, Unavailable


class Missing:
    """Stand-in for a module of the contract in plain Python."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise Unavailable(f"`{self._name}.{name}` exists only in a component, while toolcrib runs a call")


def imported(name: str) -> Any:
    """Returns a module that the compiler makes from the contract."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return Missing(name)


class NoErr(Exception):
    """Stand-in for the error of an imported function in plain Python, where none is raised."""

    value: Any = None


_cache, _log, _model = imported("wit_world.imports.cache"), imported("wit_world.imports.log"), imported("wit_world.imports.model")
_progress, _secrets = imported("wit_world.imports.progress"), imported("wit_world.imports.secrets")
_tools, types = imported("wit_world.imports.tools"), imported("wit_world.imports.toolcrib_tool_types")
_compiler = imported("componentize_py_types")
Err: Any = NoErr if isinstance(_compiler, Missing) else _compiler.Err
"""Error of an imported function, with the host's reason as its `value`."""


def as_text(value: str) -> str:
    """Escapes what is no character: half of a surrogate pair."""
    return value.encode("utf-8", "backslashreplace").decode()


def as_json(value: Any) -> str:
    """Writes a value as JSON."""
    return as_text(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def progress(done: int, total: int | None = None) -> None:
    """Reports progress: `done` of `total` steps, if the total is known."""
    _progress.measure(done, total)


def show(value: Any) -> None:
    """Shows text, or another value as JSON, to people while the call runs. The model does not receive it."""
    _progress.show(types.Part_Text(as_text(value)) if isinstance(value, str) else types.Part_Json(as_json(value)))


def log(message: str, level: Literal["debug", "info", "warn", "error"] = "info") -> None:
    """Logs a message for people. The output of `print` is logged too."""
    _log.log(_log.Level[level.upper()], as_text(message))


def call(name: str, /, **arguments: Any) -> Any:
    """Calls another tool, as far as `descriptor.json` requests and the user allows it: `"tools": ["NAME"]`."""
    try:
        answer: str = _tools.call(name, as_json(arguments))
    except Err as error:
        raise _failed(error.value) from None
    try:
        return json.loads(answer)
    except ValueError:
        return answer


def _failed(text: str) -> Failed:
    """Returns the error of another tool, with its kind."""
    try:
        error = json.loads(text)
        return KINDS.get(error.get("kind"), Failed)(str(error["error"]), **error.get("details", {}))
    except (AttributeError, KeyError, TypeError, ValueError):
        return Failed(text)


def ask(prompt: str, *, system: str | None = None, max_tokens: int | None = None) -> str:
    """Asks the host's model, as far as `descriptor.json` requests and the user allows it: `"model": true`."""
    try:
        answer: str = _model.complete(_model.Question(system, as_text(prompt), max_tokens)).text
    except Err as error:
        raise Unavailable(str(error.value)) from None
    return answer


def cache_get(key: str) -> str | None:
    """Returns a value that a tool of this component set in this run."""
    value: str | None = _cache.get(key)
    return value


def cache_set(key: str, value: str) -> None:
    """Keeps a value for the tools of this component, as long as the run lasts."""
    try:
        _cache.set(key, as_text(value))
    except Err as error:
        raise Failed(str(error.value)) from None


def secrets() -> list[str]:
    """Lists the secrets that the host inserts into requests. A tool never gets their values."""
    names: list[str] = _secrets.granted()
    return names
