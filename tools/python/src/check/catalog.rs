//! Modules, names and keyword arguments that the interpreter lacks, and what programs write instead. The interpreter's
//! release 0.0.23 was asked for every name of Python 3.13; the names here are those that programs use.

/// Modules that programs can import.
pub(super) const MODULES: [&str; 15] = [
    "asyncio",
    "base64",
    "binascii",
    "collections",
    "dataclasses",
    "datetime",
    "functools",
    "itertools",
    "json",
    "math",
    "pathlib",
    "re",
    "sys",
    "typing",
    "unicodedata",
];

/// Modules that can be imported, but have nothing that a program needs.
pub(super) const HOLLOW_MODULES: [&str; 3] = ["__future__", "gc", "os"];

/// Replacement for an absent module. Names of packages stand for their submodules too.
pub(super) fn module_replacement(module: &str) -> Option<&'static str> {
    let package = module.split('.').next().unwrap_or(module);
    Some(match package {
        "abc" | "collections" => "leave the base class or annotation out",
        "bisect" => "count with `sum(1 for x in xs if x < y)`, or search in a loop",
        "calendar" | "time" => "use `datetime`",
        "copy" => "use `list(x)`, `dict(x)`, or `json.loads(json.dumps(x))` for a deep copy",
        "csv" => "use `split`, or a loop over the characters if fields are quoted",
        "decimal" | "fractions" => "use integers, such as cents",
        "enum" => "write a class with class variables",
        "heapq" => "use `sorted`, or `min` and `remove`",
        "io" => "append to a list and use `\"\".join`",
        "operator" => "write a lambda",
        "os" => "there are no files: use tools; for paths, `pathlib.Path`",
        "queue" => "use `collections.deque`",
        "random" | "secrets" => "there is no source of random numbers: take them from a tool",
        "statistics" => "use `sum(x) / len(x)` and `sorted(x)`",
        "string" => "write the characters",
        "threading" | "multiprocessing" | "concurrent" => "use `await asyncio.gather(...)`",
        "requests" | "urllib" | "http" | "socket" | "subprocess" | "shutil" | "glob" | "tempfile" => "use a tool",
        "logging" => "use `print`",
        _ => return None,
    })
}

/// Replacement for an absent name of a module that can be imported; none if the name may exist.
pub(crate) fn name_replacement(module: &str, name: &str) -> Option<&'static str> {
    Some(match (module, name) {
        ("collections", "OrderedDict") => "a dict keeps its order",
        ("collections", "ChainMap" | "UserDict" | "UserList" | "UserString") => "use a dict, list or str",
        ("collections", "abc") => "leave the base class or annotation out",
        ("dataclasses", "field") => "use plain default values, and give lists as arguments",
        ("dataclasses", "asdict" | "astuple" | "fields" | "replace" | "make_dataclass") => "name the fields one by one",
        ("dataclasses", "KW_ONLY" | "InitVar" | "MISSING") => "use plain fields",
        ("datetime", "UTC") => "use `timezone.utc`",
        ("datetime", "tzinfo") => "use `timezone(timedelta(hours=...))`",
        ("functools", "cache" | "lru_cache" | "cached_property") => "keep results in a dict",
        ("functools", "cmp_to_key") => "sort with a key that is a tuple",
        ("functools", "wraps" | "update_wrapper") => "leave it out",
        ("functools", "partialmethod" | "singledispatch" | "singledispatchmethod" | "total_ordering") => {
            "there are only `partial` and `reduce`"
        }
        ("itertools", "groupby") => "collect into a dict with `setdefault(key, []).append(x)`",
        ("itertools", "product") => "use a comprehension with two `for`",
        ("itertools", "combinations" | "combinations_with_replacement" | "permutations") => {
            "use a comprehension over indexes, or a recursive function"
        }
        ("itertools", "tee") => "use a list twice",
        ("json", "dump") => "use `json.dumps` and a tool that writes",
        ("json", "load") => "use `json.loads` with the text",
        ("json", "JSONEncoder" | "JSONDecoder") => {
            "use `json.dumps` or `json.loads`, and change the values before or after"
        }
        ("math", "prod") => "use `functools.reduce(lambda a, b: a * b, xs, 1)`",
        ("math", "hypot") => "use `math.sqrt(x * x + y * y)`",
        ("math", "dist") => "use `math.sqrt` of the sum of squares",
        ("math", "fsum") => "use `sum`",
        ("math", "sumprod") => "use `sum(a * b for a, b in zip(xs, ys))`",
        ("math", "fma") => "write `x * y + z`",
        ("os", "path") => "use `pathlib.Path`, or `split` and `\"/\".join`",
        ("os", "walk" | "getcwd" | "system" | "popen") => "programs have no system: use a tool",
        ("os", "cpu_count" | "urandom") => "leave it out",
        ("pathlib", "PurePath" | "PurePosixPath" | "PosixPath" | "PureWindowsPath") => "use `pathlib.Path`",
        ("re", "subn") => "use `re.sub`, and `len(re.findall(...))`",
        ("re", "VERBOSE" | "X") => "write the pattern without spaces and comments",
        ("re", "UNICODE" | "U" | "LOCALE" | "L" | "DEBUG") => "leave the flag out",
        ("sys", "exit") => "put the rest of the program into `else` or a function",
        ("sys", "argv" | "stdin" | "path" | "modules") => "write the values into the program",
        ("sys", "maxsize") => "use `float(\"inf\")` or `2**63 - 1`",
        ("sys", "setrecursionlimit" | "getrecursionlimit" | "getsizeof" | "exc_info") => "leave it out",
        ("typing", "NamedTuple") => "use `collections.namedtuple` or `@dataclass`",
        ("typing", "TypedDict") => "use a dict",
        ("typing", "cast") => "leave the call out",
        (
            "typing",
            "AbstractSet" | "AnyStr" | "AsyncGenerator" | "AsyncIterable" | "AsyncIterator" | "Awaitable" | "ChainMap"
            | "Collection" | "Concatenate" | "Container" | "Coroutine" | "Counter" | "DefaultDict" | "Deque"
            | "Hashable" | "IO" | "ItemsView" | "KeysView" | "LiteralString" | "MutableMapping" | "MutableSequence"
            | "MutableSet" | "NewType" | "NotRequired" | "OrderedDict" | "ParamSpec" | "ReadOnly" | "Required"
            | "Reversible" | "Sized" | "SupportsAbs" | "SupportsFloat" | "SupportsIndex" | "SupportsInt"
            | "SupportsRound" | "Text" | "TextIO" | "TypeAlias" | "TypeGuard" | "TypeIs" | "TypeVarTuple" | "Unpack"
            | "ValuesView" | "assert_never" | "final" | "get_args" | "get_origin" | "get_type_hints" | "overload"
            | "override" | "runtime_checkable",
        ) => "leave it and its annotations out",
        ("unicodedata", "bidirectional" | "decimal" | "decomposition" | "digit" | "east_asian_width" | "numeric") => {
            "use `unicodedata.category` or `name`"
        }
        ("binascii", "a2b_qp" | "a2b_uu" | "b2a_qp" | "b2a_uu" | "crc_hqx") => "use base64 or hex",
        _ => return None,
    })
}

/// Replacement for an absent built-in function or type; none if the name may exist.
pub(crate) fn builtin_replacement(name: &str) -> Option<&'static str> {
    Some(match name {
        "ascii" => "use `repr`",
        "bytearray" | "memoryview" => "use a list of integers or `bytes`",
        "callable" | "issubclass" => "use `isinstance`, or know the type",
        "classmethod" | "staticmethod" => "write a function outside of the class",
        "compile" | "eval" | "exec" => "write the code out; for data, use `json.loads`",
        "complex" => "there are no complex numbers: keep two floats",
        "delattr" => "assign `None`",
        "dir" | "globals" | "locals" | "vars" => "keep the values in a dict",
        "exit" | "quit" => "put the rest of the program into `else` or a function",
        "format" => "use an f-string, such as `f\"{x:,.2f}\"`",
        "input" => "write the values into the program",
        "super" => "there is no inheritance: call the function itself",
        "breakpoint" | "help" => "leave it out",
        _ => return None,
    })
}

/// Replacement for a keyword argument that a function refuses.
pub(super) fn keyword_replacement(function: (&str, &str), keyword: &str) -> Option<&'static str> {
    Some(match (function, keyword) {
        (("builtins", "print"), "file") => "leave it out",
        (("json", "dumps"), "default" | "cls") => "change such values to text before",
        (("json", "loads"), "object_hook" | "object_pairs_hook" | "cls") => "change the values afterwards",
        _ => return None,
    })
}

/// Built-in types without public attributes, except for `dict.fromkeys`: methods can only be called on values.
pub(super) const TYPES: [&str; 8] = ["str", "list", "dict", "set", "frozenset", "tuple", "int", "float"];

/// Replacement for a method of a built-in type that values lack too.
pub(super) fn method_replacement(kind: &str, name: &str) -> Option<&'static str> {
    Some(match (kind, name) {
        ("str", "maketrans") => "use `replace`, or `\"\".join(table.get(c, c) for c in s)`",
        ("int", "from_bytes") => "use `int(data.hex(), 16)`",
        ("int", "bit_length") => "use `len(bin(abs(n))) - 2`",
        ("int", "to_bytes") => "use `bytes.fromhex(f\"{n:04x}\")`",
        ("float", "fromhex" | "is_integer" | "hex") => "use arithmetic, such as `x == int(x)`",
        _ => return None,
    })
}

/// Methods of built-in types that programs pass as functions.
pub(super) const METHODS: [&str; 12] =
    ["append", "count", "endswith", "extend", "get", "index", "join", "lower", "split", "startswith", "strip", "upper"];
