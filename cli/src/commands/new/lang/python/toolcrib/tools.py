"""Registered tools, their descriptors, and their calls."""

import inspect
import json
import linecache
import sys
import traceback
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from types import TracebackType
from typing import Any, TypeVar

from .errors import Failed
from .host import Err, as_json, as_text, log, types
from .schema import from_json, parameters, to_json

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Tool:
    """Registered function."""

    function: Callable[..., Any]
    description: str
    schema: dict[str, Any]
    hints: dict[str, Any]


MAX_LOG = 16_384
"""Maximum number of characters of a traceback in the log."""
OWN = PurePath(__file__).parent.name
"""Folder of this package."""
registered: dict[str, Tool] = {}


def tool(function: F) -> F:
    """Makes a function a tool: its name, its docstring and its type hints are those of the tool.

    The answer is what the function returns: text, a value that becomes JSON, or None. A `Failed` that it raises is an error for
    the model.
    """
    name = function.__name__
    if name in registered:
        raise TypeError(f"two tools have the name `{name}`")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"the tool `{name}` is async; the functions of the host wait by themselves, so leave `async` out")
    description = inspect.getdoc(function)
    if not description:
        raise TypeError(f"the tool `{name}` has no docstring, which tells a model what it is for")
    hints = typing.get_type_hints(function, include_extras=True)
    try:
        schema = parameters(function, hints)
    except TypeError as error:
        raise TypeError(f"the tool `{name}`: {error}") from None
    registered[name] = Tool(function, description, schema, hints)
    return function


def descriptors(metadata: Any) -> list[dict[str, Any]]:
    """Completes the descriptors of `descriptor.json` from the code."""
    given = {entry["name"]: entry for entry in (metadata if isinstance(metadata, list) else [metadata])}
    if unknown := sorted(set(given) - set(registered)):
        raise TypeError(f"descriptor.json names `{unknown[0]}`, which is not a tool of app.py: use `@tool`")
    plain: dict[str, Any] = {"capabilities": {}}
    own = {name: {"name": name, "description": tool.description, "schema": tool.schema} for name, tool in registered.items()}
    return [plain | described | given.get(name, {}) for name, described in own.items()]


def keep_lines() -> None:
    """Keeps the lines of the loaded modules for tracebacks: a component has no files."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and path.endswith(".py") and not path.startswith(sys.prefix):
            lines = linecache.getlines(path)
            linecache.cache[path] = (sum(map(len, lines)), None, lines, path)


class Call:
    """Export of the component."""

    def run(self, call: Any) -> Any:
        """Runs a call."""
        # The generator has the same state in each call: that of the moment when the component was built.
        if random := sys.modules.get("random"):
            random.seed()
        try:
            return types.Answer(answer(registered[call.tool], json.loads(call.payload.value)), [])
        except Failed as error:
            reported = failure(error)
        except BaseException as error:
            log("".join(traceback.format_exception(error.with_traceback(of_author(error))))[-MAX_LOG:], "error")
            reported = failure(Failed(last_line(error)))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        raise Err(reported)


def answer(called: Tool, given: dict[str, Any]) -> list[Any]:
    """Calls a tool, and returns the parts of its answer: text, JSON, or none."""
    value = called.function(**{name: from_json(called.hints[name], value) for name, value in given.items()})
    if value is None:
        return []
    if isinstance(value, str):
        return [types.Part_Text(as_text(value))]
    try:
        return [types.Part_Json(as_json(to_json(value)))]
    except (TypeError, ValueError) as error:
        code = called.function.__code__
        raise Failed(f"{place(code.co_filename, code.co_firstlineno)}: the answer is not JSON: {error}") from None


def failure(error: Failed) -> Any:
    """Returns a failure of the contract."""
    try:
        details = as_json(to_json(error.details)) if error.details else None
    except (TypeError, ValueError) as reason:
        log(f"the details of an error are not JSON: {reason}", "warn")
        details = None
    return types.Failure(types.FailureKind[error.kind.upper().replace("-", "_")], as_text(str(error)), details)


def last_line(error: BaseException) -> str:
    """Returns the last line of a traceback, with the place in the author's code."""
    text = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, ModuleNotFoundError):
        text += "; import it at the top of the file"
    at = of_author(error)
    frames = [frame for frame in traceback.extract_tb(at) if is_of_author(frame.filename)]
    return f"{place(frames[-1].filename, frames[-1].lineno)}: {text}" if frames else text


def of_author(error: BaseException) -> TracebackType | None:
    """Returns the traceback from the author's code on; the whole one if there is none of it."""
    at = error.__traceback__
    while at and not is_of_author(at.tb_frame.f_code.co_filename):
        at = at.tb_next
    return at or error.__traceback__


def is_of_author(path: str) -> bool:
    """`True` for a file that is no part of Python or of this package."""
    return not path.startswith((sys.prefix, "<")) and PurePath(path).parent.name != OWN


def place(path: str, line: int | None) -> str:
    """Returns a place in the code, such as `app.py:12`."""
    return f"{PurePath(path).name}:{line}"
