"""Tools as functions of a program: calls that return, and calls that are awaited together."""


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
        takes_object = bool(self.parameters) and isinstance(first, dict) and first.get("type", "object") == "object"
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
            found = result(kind, text)
            return RESULTS.get(type(found), lambda other: other)(found)

        return call

    def __getitem__(self, name):
        return getattr(self, name)

    def __dir__(self):
        return list(self._tools)


class AwaitedTools(Tools):
    """The tools as functions whose results are awaited."""

    def __getattr__(self, name):
        tool = self._tools.get(name)
        if tool is None:
            raise AttributeError(unknown(self._tools, name))
        return lambda *positional, **named: Call(tool.name, tool.arguments(positional, named))


class Call:
    """Call that is made once it is awaited, together with others, or else at the end of its program."""

    unmade = {}

    def __init__(self, tool, arguments):
        self.request, self.future, self.answer = (tool, arguments), None, None
        self.unmade[id(self)] = self

    def __await__(self):
        if self.answer is None:
            if self.future is None:
                loop = asyncio.get_running_loop()
                self.future = loop.create_future()
                self.unmade.pop(id(self), None)
                loop.selector.calls.append((self.request, self.future))
            self.answer = yield from self.future.__await__()
        return result(*self.answer)

    @classmethod
    def make_all(cls):
        """Makes the calls that nothing awaited; a failure is that of the program."""
        while cls.unmade:
            call = cls.unmade.pop(next(iter(cls.unmade)))
            (call.answer,) = ask("calls", [call.request])
            result(*call.answer)


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

    def _make_self_pipe(self):
        # No other thread wakes the loop.
        self._ssock = self._csock = None

    def _close_self_pipe(self):
        pass

    def create_task(self, coroutine, **options):
        # Also of the result of a plain call, and of a call.
        return super().create_task(coroutine if asyncio.iscoroutine(coroutine) else ready(coroutine), **options)


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
