"""Runs of programs, and the start of the interpreter."""

MAIN = types.ModuleType("__main__")
# Loop of all programs of a session: their tasks and generators go on with it.
LOOP = Loop()
# The snapshot has the same random numbers for all programs.
IS_SEEDED = False


def make_calls_of_tasks():
    """Makes the calls that tasks began, so that none is lost when a program ends before its tasks."""
    LOOP.run_until_complete(asyncio.sleep(0))
    while LOOP.selector.calls:
        LOOP.run_until_complete(asyncio.wait([future for _, future in LOOP.selector.calls]))
        LOOP.run_until_complete(asyncio.sleep(0))


def seed():
    """Seeds the random numbers of a fresh instance; those of a session go on."""
    global IS_SEEDED
    if not IS_SEEDED:
        IS_SEEDED = True
        for module in map(sys.modules.get, ("random", "numpy.random")):
            if module is not None:
                module.seed()


def run(source, tools, limits):
    """Runs a program, and reports its end."""
    seed()
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
    names.update({"__builtins__": builtins, "ToolError": ToolError, TOOLS: Tools(tools)})
    names.update({AWAITED: AwaitedTools(tools), READY: ready})
    SOURCES[file] = source.splitlines()
    sys.setrecursionlimit(int(limits["recursion"]) + 50)
    try:
        coroutine = eval(code, names)
        if coroutine is not None:
            LOOP.run_until_complete(coroutine)
            make_calls_of_tasks()
        Call.make_all()
    except SystemExit as error:
        end = None if error.code in (None, 0) else error
    except BaseException as error:
        end = error
    else:
        end = None
    Call.unmade.clear()
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


def described(error):
    try:
        return str(error)
    except Exception:
        return ""


def causes(error):
    """Describes the exceptions in a group, and the cause of an exception."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield f"{type(inner).__qualname__}: {described(inner)}"
            yield from causes(inner)
    elif error.__cause__ is not None:
        yield f"cause: {type(error.__cause__).__qualname__}: {described(error.__cause__)}"


def failure(error):
    """Describes the exception that ended a program."""
    message = described(error)
    leaves = list(itertools.islice(causes(error), 5))
    if leaves:
        message += f" [{'; '.join(leaves)}]"
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
        try:
            problems = check(job["source"], tools)
        except Exception:
            # The run says more.
            problems = []
        ask("problems", [(f"{line}:{column}", message) for line, column, message in problems])
    else:
        try:
            run(job["source"], tools, job)
        except BaseException as error:
            ask("failed", failure(error))
    return 0


# Integers are exact at any size: their time is the program's.
sys.set_int_max_str_digits(0)
# The packages of whoever built the interpreter.
sys.path.append("/usr/local/lib/packages.zip")
# Loaded before the snapshot.
for name in LOADED:
    try:
        __import__(name)
    except ImportError:
        pass
asyncio.new_event_loop = asyncio.events.new_event_loop = Loop
asyncio.gather = asyncio.tasks.gather = gather


def breakpointhook(*_, **__):
    raise RuntimeError("programs have no debugger")


sys.breakpointhook = breakpointhook
begin(main)
