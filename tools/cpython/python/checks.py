"""Check of a program before anything runs."""


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
