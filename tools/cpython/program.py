"""Python code of the interpreter: checks programs, runs them, and carries their calls to the host.

It is loaded once, and each program starts from the memory after that. `ask` is the only way out: a name and pairs of texts,
answered by pairs of texts.
"""

import ast
import asyncio
import builtins
import dataclasses
import datetime
import difflib
import json
import pathlib
import selectors
import sys
import time
import traceback
import types

import _bashkit
import _bashkit_boot

# Start of the names of programs in tracebacks, and the lines of the programs of this session by name.
FILE, SOURCES = "program", {}
# Names in programs: the tools, those whose calls are awaited, and the value of the last expression.
TOOLS, AWAITED, RESULT = "tools", "__awaited_tools__", "__result__"
# Functions that await what they are given.
AWAITING = {"gather", "create_task", "ensure_future", "wait", "wait_for", "as_completed", "shield", "run", "values"}
FAILURES = {"failed": OSError, "refused": PermissionError, "timeout": TimeoutError}
MAX_PROBLEMS = 50


def ask(name, pairs=()):
    return _bashkit.http(name, "", tuple((plain(key), plain(text)) for key, text in pairs), None, None)[1]


def plain(text):
    """Text without halves of surrogate pairs, which UTF-8 cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class LimitReached(BaseException):
    """End of a program that made too many calls."""


# Tools


class Tool:
    """Name and parameters of a tool; required parameters come first."""

    def __init__(self, name, schema):
        self.name = name
        schema = json.loads(schema)
        properties = schema.get("properties") or {}
        required = schema.get("required") or []
        self.required = [name for name in properties if name in required]
        self.parameters = {name: properties[name] for name in self.required}
        self.parameters.update(properties)
        is_combined = any(key in schema for key in ("$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"))
        match schema.get("additionalProperties"):
            case False:
                self.is_open = is_combined
            case None:
                self.is_open = is_combined or not properties
            case _:
                self.is_open = True

    def unknown(self, name):
        hint = suggestion(name, self.parameters) or (
            f"it has {listed(self.parameters)}" if self.parameters else "it has no arguments"
        )
        return f"tools.{self.name} has no argument `{name}`: {hint}"

    def missing(self, names):
        return f"tools.{self.name} needs the argument{'s' if len(names) > 1 else ''} {listed(names)}"

    def arguments(self, positional, named):
        """Joins the arguments of a call into the text of one JSON object."""
        first = next(iter(self.parameters.values()), {})
        takes_object = isinstance(first, dict) and first.get("type", "object") == "object"
        if len(positional) == 1 and isinstance(positional[0], dict) and not named and not takes_object:
            positional, named = (), positional[0]
        if len(positional) > len(self.parameters):
            message = f"tools.{self.name} has {len(self.parameters)} parameters"
            raise TypeError(f"{message}, but {len(positional)} positional arguments were given")
        joined = dict(zip(self.parameters, positional))
        for name, value in named.items():
            if name in joined:
                raise TypeError(f"tools.{self.name} got two values for the argument `{name}`")
            if not self.is_open and name not in self.parameters:
                raise TypeError(self.unknown(name))
            joined[name] = value
        if missing := [name for name in self.required if name not in joined]:
            raise TypeError(self.missing(missing))
        try:
            return written(joined)
        except (TypeError, ValueError) as error:
            raise TypeError(f"tools.{self.name}: {error}") from None


class Tools:
    """The tools as functions that return their results."""

    def __init__(self, tools):
        self._tools = tools

    def __getattr__(self, name):
        tool = self._tools.get(name)
        if tool is None:
            raise AttributeError(unknown(self._tools, name))

        def call(*positional, **named):
            ((kind, text),) = ask("calls", [(tool.name, tool.arguments(positional, named))])
            return result(kind, text)

        return call


class AwaitedTools(Tools):
    """The tools as coroutines."""

    def __getattr__(self, name):
        tool = self._tools.get(name)
        if tool is None:
            raise AttributeError(unknown(self._tools, name))

        async def call(*positional, **named):
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            loop.selector.calls.append(((tool.name, tool.arguments(positional, named)), future))
            return result(*await future)

        return call


class Selector(selectors._BaseSelectorImpl):
    """Makes the calls for which all tasks of a loop wait, all at once."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def select(self, timeout=None):
        if timeout == 0:
            return []
        if self.calls:
            calls, self.calls = self.calls, []
            answers = ask("calls", [call for call, _ in calls])
            # One answer for all if the calls were too many.
            answers = answers if len(answers) == len(calls) else answers[:1] * len(calls)
            for (_, future), answer in zip(calls, answers):
                if not future.done():
                    future.set_result(answer)
        elif timeout is None:
            raise RuntimeError("every task of the program waits for another one")
        else:
            time.sleep(timeout)
        return []


class Loop(asyncio.SelectorEventLoop):
    """Event loop whose only events are results of calls and the time."""

    def __init__(self):
        self.selector = Selector()
        super().__init__(self.selector)


def result(kind, text):
    if kind == "ok":
        return json.loads(text)
    if kind == "limit":
        raise LimitReached(text)
    raise FAILURES[kind](text)


def unknown(tools, name):
    if hint := suggestion(name, tools):
        return f"there is no tool `{name}`: {hint}"
    if not tools:
        return f"there is no tool `{name}`: this program has no tools"
    hint = f"the tools are {listed(tools)}" if len(tools) <= 12 else f"none of the {len(tools)} tools has a similar name"
    return f"there is no tool `{name}`: {hint}"


def suggestion(name, names):
    close = difflib.get_close_matches(name.lower(), names, 1)
    return f"did you mean `{close[0]}`?" if close else None


def listed(names):
    return ", ".join(f"`{name}`" for name in names)


# Values


def written(value):
    """JSON text of a value."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=member)


def member(value):
    if isinstance(value, (set, frozenset)):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, pathlib.PurePath):
        return str(value)
    raise TypeError(f"a value of the type `{type(value).__name__}` is no JSON")


def shown(value, limit):
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} without a text: {type(error).__name__}>"
    return json.dumps(plain(text[: limit // 4]), ensure_ascii=False)


# Programs


def parse(source):
    """Parses a program; calls that are awaited become those of `AWAITED`."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(source, FILE, "exec", flags, dont_inherit=True)
    for call in Awaited(tree).calls:
        call.func.value.id = AWAITED
    return tree


def tool_call(node):
    """Name of the tool if an expression is a call `tools.NAME(...)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        object = node.func.value
        if isinstance(object, ast.Name) and object.id in (TOOLS, AWAITED):
            return node.func.attr
    return None


class Awaited:
    """Calls of tools whose results are awaited, also by way of variables and functions. A name stands for all its scopes."""

    def __init__(self, tree):
        self.calls, self.names = [], set()
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Await):
                self.mark(node.value)
            elif isinstance(node, ast.Call) and name_of(node.func) in ("create_task", "ensure_future"):
                self.mark(node)
        known = -1
        while self.names and known != len(self.names):
            known = len(self.names)
            for node in nodes:
                self.follow(node)
        self.calls = list({id(call): call for call in self.calls}.values())

    def follow(self, node):
        """Marks the values that a name gets."""
        is_awaited = lambda target: isinstance(target, ast.Name) and target.id in self.names
        match node:
            case ast.Assign(targets, value) if any(is_awaited(target) for target in targets):
                self.mark(value)
            case ast.AnnAssign(target, _, value) | ast.NamedExpr(target, value) if value and is_awaited(target):
                self.mark(value)
            case ast.AugAssign(target, _, value) if is_awaited(target):
                self.mark(value)
            case ast.For(target, iterated) | ast.comprehension(target, iterated) if is_awaited(target):
                self.mark(iterated)
            case ast.Assign([ast.Subscript(target)], value) if is_awaited(target):
                self.mark(value)
            case ast.Call(ast.Attribute(target, "append" | "add" | "extend"), arguments) if is_awaited(target):
                for argument in arguments:
                    self.mark(argument)
            case ast.FunctionDef(name) if name in self.names:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value:
                        self.mark(inner.value)

    def mark(self, node):
        """Marks an expression as awaited."""
        if tool_call(node):
            self.calls.append(node)
            return
        match node:
            case ast.Name(name):
                self.names.add(name)
            case ast.Call(function, arguments) if name_of(function) in AWAITING:
                for argument in arguments:
                    self.mark(argument)
                if name_of(function) == "values":
                    self.mark(function.value)
            case ast.Call(ast.Name(name)):
                self.names.add(name)
            case ast.Starred(value) | ast.NamedExpr(_, value) | ast.Subscript(value):
                self.mark(value)
            case ast.List(items) | ast.Tuple(items) | ast.Set(items) | ast.Dict(_, items):
                for item in items:
                    self.mark(item)
            case ast.ListComp(item) | ast.SetComp(item) | ast.GeneratorExp(item) | ast.DictComp(_, item):
                self.mark(item)
            case ast.IfExp(_, one, other):
                self.mark(one)
                self.mark(other)


def name_of(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


# Checks


def check(source, tools):
    """Problems of a program: invalid syntax, or calls that its tools cannot take."""
    try:
        tree = parse(source)
        compile(tree, FILE, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        return [(error.lineno or 0, error.offset or 0, error.msg)]
    except (ValueError, RecursionError, MemoryError) as error:
        return [(0, 0, str(error) or "the program is nested too deeply")]
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if any(node.id == TOOLS and not isinstance(node.ctx, ast.Load) for node in names):
        return []
    found = []
    for node in ast.walk(tree):
        at = lambda node: (node.lineno, node.col_offset + 1)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in (TOOLS, AWAITED):
            if node.attr not in tools:
                found.append((*at(node), unknown(tools, node.attr)))
        elif (name := tool_call(node)) in tools:
            found += [(*at(place), message) for place, message in mistakes(tools[name], node)]
    return sorted(found)[:MAX_PROBLEMS]


def mistakes(tool, call):
    """Mistakes in the arguments of a call, as far as the source says."""
    positional = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
    named = {keyword.arg: keyword for keyword in call.keywords if keyword.arg}
    is_whole = len(positional) == len(call.args) and len(named) == len(call.keywords)
    if len(positional) == 1 and not named and isinstance(positional[0], (ast.Dict, ast.Name, ast.Call)):
        return
    for name, keyword in named.items():
        if name in tool.parameters:
            yield from mistake(tool.parameters[name], keyword.value, f"tools.{tool.name}: `{name}`")
        elif not tool.is_open:
            yield keyword, tool.unknown(name)
    if len(positional) > len(tool.parameters) and not tool.is_open:
        yield call, f"tools.{tool.name} has {len(tool.parameters)} parameters"
    for (name, schema), value in zip(tool.parameters.items(), positional):
        yield from mistake(schema, value, f"tools.{tool.name}: `{name}`")
    given = {*named, *list(tool.parameters)[: len(positional)]}
    missing = [name for name in tool.required if name not in given]
    if missing and is_whole:
        yield call, tool.missing(missing)


KINDS = {
    "null": "None",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "a list",
    "object": "a dict",
}


def mistake(schema, node, subject):
    """Mistake of a literal argument."""
    match node:
        case ast.Constant(value=value):
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            kinds = {
                "null": value is None,
                "boolean": isinstance(value, bool),
                "integer": is_number and value == value // 1,
                "number": is_number,
                "string": isinstance(value, str),
            }
        case ast.JoinedStr():
            value, kinds = None, {"string": True}
        case ast.List() | ast.ListComp():
            value, kinds = None, {"array": True}
        case ast.Dict() | ast.DictComp():
            value, kinds = None, {"object": True}
        case _:
            return
    if not isinstance(schema, dict):
        return
    expected = schema.get("type")
    expected = [expected] if isinstance(expected, str) else expected
    if expected and not any(kinds.get(kind, kind not in KINDS) for kind in expected):
        found = next((KINDS[kind] for kind, is_kind in kinds.items() if is_kind), "bytes")
        yield node, f"{subject} must be {' or '.join(KINDS.get(kind, kind) for kind in expected)}, not {found}"
    elif "enum" in schema and isinstance(node, ast.Constant) and value not in schema["enum"]:
        yield node, f"{subject} must be one of {', '.join(json.dumps(value) for value in schema['enum'][:12])}"


# Runs

MAIN = types.ModuleType("__main__")


def run(source, tools, limits):
    """Runs a program, and reports its end."""
    try:
        tree = parse(source)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body[-1] = ast.copy_location(ast.Assign([ast.Name(RESULT, ast.Store())], last.value), last)
            ast.fix_missing_locations(tree.body[-1])
        file = f"{FILE} {len(SOURCES) + 1}"
        code = compile(tree, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return ask("failed", [("kind", "invalid"), ("exception", type(error).__name__), ("message", str(error))])
    sys.modules["__main__"] = MAIN
    names = MAIN.__dict__
    names.update({"__builtins__": builtins, "ToolError": OSError, TOOLS: Tools(tools), AWAITED: AwaitedTools(tools)})
    SOURCES[file] = source.splitlines()
    sys.setrecursionlimit(int(limits["recursion"]) + 50)
    try:
        coroutine = eval(code, names)
        if coroutine is not None:
            with asyncio.Runner(loop_factory=Loop) as runner:
                runner.run(coroutine)
    except SystemExit as error:
        end = None if error.code in (None, 0) else error
    except BaseException as error:
        end = error
    else:
        end = None
    sys.setrecursionlimit(1000)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    if end is not None:
        return ask("failed", failure(end))
    limit = int(limits["value"])
    value = names.pop(RESULT, None)
    try:
        text = written(value)
    except Exception:
        text = None
    if text is None or len(text.encode("utf-8", "replace")) > limit:
        return ask("finished", [("shown", shown(value, limit))])
    return ask("finished", [("json", text)])


def failure(error):
    """Describes the exception that ended a program."""
    try:
        message = str(error)
    except Exception:
        message = ""
    yield "kind", "limit" if isinstance(error, LimitReached) else "uncaught"
    yield "exception", type(error).__qualname__
    yield "message", message
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in SOURCES]
    for frame in frames if len(frames) <= 20 else frames[:10] + frames[-10:]:
        lines = SOURCES[frame.filename]
        line = lines[frame.lineno - 1].strip()[:200] if frame.lineno and frame.lineno <= len(lines) else ""
        column = (frame.colno or 0) + 1
        yield f"{frame.lineno or 0}:{column}:{frame.name}", line


def main():
    """Does one task; the published build calls it."""
    job = {}
    tools = {}
    pairs = iter(ask("job"))
    for key, text in pairs:
        if key == "tool":
            tools[text] = Tool(text, next(pairs)[1])
        else:
            job[key] = text
    if job["kind"] == "check":
        problems = check(job["source"], tools)
        ask("problems", [(f"{line}:{column}", message) for line, column, message in problems])
    else:
        run(job["source"], tools, job)
    return 0


# The packages of whoever built the interpreter.
sys.path.append("/usr/local/lib/packages.zip")
# Loaded before the snapshot: modules that programs often import, and that take long to load.
for name in ("statistics", "zoneinfo", "secrets", "textwrap", "heapq", "cmath", "array", "queue", "email.message"):
    try:
        __import__(name)
    except ImportError:
        pass
asyncio.new_event_loop = asyncio.events.new_event_loop = Loop
_bashkit_boot.main = main
