"""Calls of a program that are awaited, found in its source."""


def parse(source):
    """Parses a program; calls that are awaited become those of `AWAITED`."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(source, FILE, "exec", flags, dont_inherit=True)
    for call in Awaited(tree).calls:
        call.func.value.id = AWAITED
    for node in ast.walk(tree):
        if isinstance(node, ast.Await) and not tool_call(node.value):
            ready = ast.copy_location(ast.Name(READY, ast.Load()), node.value)
            node.value = ast.copy_location(ast.Call(ready, [node.value], []), node.value)
    return tree


def tool_call(node):
    """Name of the tool if an expression is a call `tools.NAME(...)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        object = node.func.value
        if isinstance(object, ast.Name) and object.id in (TOOLS, AWAITED):
            return node.func.attr
    return None


class Awaited:
    """Calls of tools whose results are awaited, also by way of variables and functions of one scope.

    A call that is not found returns its result at once, which `ready` accepts: then it runs alone.
    """

    def __init__(self, tree):
        self.calls, self.names, self.scopes, self.assigned = [], set(), {}, {}
        self.enter(tree, None, [tree])
        nodes = [node for node in self.scopes if not isinstance(node, ast.Name)]
        for node in nodes:
            if isinstance(node, ast.Await):
                self.mark(node.value)
            elif isinstance(node, ast.Call) and not tool_call(node):
                if name_of(node.func) in ("create_task", "ensure_future"):
                    self.mark(node)
        known = -1
        while self.names and known != len(self.names):
            known = len(self.names)
            for node in nodes:
                self.follow(node)
        self.calls = list({id(call): call for call in self.calls}.values())

    def enter(self, node, scope, nodes):
        """Finds the scope of each node, and the names that each scope assigns."""
        while nodes:
            node = nodes.pop()
            self.scopes[node] = scope
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.assigned.setdefault(scope, set()).add(node.id)
            is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.assigned.setdefault(scope, set()).add(node.name)
            if is_function:
                self.assigned.setdefault(node, set()).update(argument.arg for argument in arguments_of(node))
                self.enter(None, node, list(ast.iter_child_nodes(node)))
            else:
                nodes.extend(ast.iter_child_nodes(node))

    def key(self, name, node):
        """Name with the scope that assigns it."""
        scope = self.scopes[node]
        while scope is not None and name not in self.assigned[scope]:
            scope = self.scopes[scope]
        return (scope, name)

    def is_awaited(self, target):
        return isinstance(target, ast.Name) and self.key(target.id, target) in self.names

    def follow(self, node):
        """Marks the values that a name gets."""
        match node:
            case ast.Assign(targets, value) if any(map(self.is_awaited, targets)):
                self.mark(value)
            case ast.AnnAssign(target, _, value) | ast.NamedExpr(target, value) if value and self.is_awaited(target):
                self.mark(value)
            case ast.AugAssign(target, _, value) if self.is_awaited(target):
                self.mark(value)
            case ast.For(target, iterated) | ast.comprehension(target, iterated) if self.is_awaited(target):
                self.mark(iterated)
            case ast.Assign([ast.Subscript(target)], value) if self.is_awaited(target):
                self.mark(value)
            case ast.Call(ast.Attribute(target, "append" | "add" | "extend"), arguments) if self.is_awaited(target):
                for argument in arguments:
                    self.mark(argument)
            case ast.FunctionDef(name) if self.key(name, node) in self.names:
                for inner, scope in self.scopes.items():
                    if scope is node and isinstance(inner, ast.Return) and inner.value:
                        self.mark(inner.value)

    def mark(self, node):
        """Marks an expression as awaited."""
        if tool_call(node):
            self.calls.append(node)
            return
        match node:
            case ast.Name(name):
                self.names.add(self.key(name, node))
            case ast.Call(function, arguments) if name_of(function) in AWAITING:
                for argument in arguments:
                    self.mark(argument)
            case ast.Call(ast.Attribute(value, "values")):
                self.mark(value)
            case ast.Call(ast.Name(name) as function):
                self.names.add(self.key(name, function))
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


def arguments_of(function):
    arguments = getattr(function, "args", None)
    if arguments is None:
        return []
    every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs + [arguments.vararg, arguments.kwarg]
    return [argument for argument in every if argument]


def name_of(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
