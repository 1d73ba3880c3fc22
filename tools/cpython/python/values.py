"""Python code of the interpreter, in files that become one module: values and failures.

The module is loaded once, and each program starts from the memory after that. `ask` is the only way out: a name and pairs of
texts, answered by pairs of texts. `request` and `begin` are those of the build.
"""

import ast
import asyncio
import builtins
import dataclasses
import datetime
import difflib
import inspect
import itertools
import json
import pathlib
import selectors
import sys
import time
import traceback
import types

# Start of the names of programs in tracebacks, and the lines of the programs of this session by name.
FILE, SOURCES = "program", {}
# Names in programs: the tools, those whose calls are awaited, `ready`, and the value of the last expression.
TOOLS, AWAITED, READY, RESULT = "tools", "__awaited_tools__", "__ready__", "__result__"
# Functions that await what they are given.
AWAITING = {"gather", "create_task", "ensure_future", "wait", "wait_for", "as_completed", "shield", "run"}
MAX_PROBLEMS = 50


def ask(name, pairs=()):
    return request(name, tuple((plain(key), plain(text)) for key, text in pairs))


def plain(text):
    """Text without halves of surrogate pairs, which UTF-8 cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class LimitReached(BaseException):
    """End of a program that made too many calls."""


class ToolError(OSError):
    """Failure of a call."""


class Refused(ToolError, PermissionError):
    """Refusal of a call."""


class Late(ToolError, TimeoutError):
    """Call that took too long."""


# Programs see the names of the language.
Refused.__name__ = Refused.__qualname__ = "PermissionError"
Late.__name__ = Late.__qualname__ = "TimeoutError"
FAILURES = {"failed": ToolError, "refused": Refused, "timeout": Late}


# Results of plain calls. A program may await one, where the source does not show that the call is awaited.


class Dict(dict):
    def __await__(self):
        return self
        yield


class List(list):
    __await__ = Dict.__await__


class Text(str):
    __await__ = Dict.__await__


RESULTS = {dict: Dict, list: List, str: Text}


async def ready(value):
    """Awaits a value, which may be the result of a plain call."""
    return await value if inspect.isawaitable(value) else value


def gather(*values, gathered=asyncio.gather, **options):
    """Gathers also results of plain calls, which may have no hash."""
    is_plain = lambda value: isinstance(value, (Dict, List)) or not inspect.isawaitable(value)
    return gathered(*(ready(value) if is_plain(value) else value for value in values), **options)


# JSON

def written(value):
    """JSON text of a value."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=member)


def member(value):
    if isinstance(value, (set, frozenset)):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, pathlib.PurePath):
        return str(value)
    # Tables, columns and arrays.
    if hasattr(value, "to_dict"):
        return value.to_dict("records") if hasattr(value, "columns") else value.to_dict()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of the type `{type(value).__name__}` is no JSON")


def shown(value, limit):
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} without a text: {type(error).__name__}>"
    text = plain(text).encode()[:limit].decode("utf-8", "ignore")
    shown = json.dumps(text, ensure_ascii=False)
    # An escape has up to six characters.
    return shown if len(shown) < 2 * limit else json.dumps(text[: limit // 6], ensure_ascii=False)
