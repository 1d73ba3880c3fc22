//! Hints for messages of the interpreter that mislead: what to write instead. Other messages stay as they are.

use crate::check;

/// Start of the message about an exception with other arguments than one string.
const EXCEPTION_ARGUMENTS: &str = "Internal error in monty: exceptions can only be called with";

/// Parts that a message has, and the hint. The first that fits is taken.
const HINTS: [(&[&str], &str); 15] = [
    (&["unsupported operand type(s) for", "'bool'"], "there is no arithmetic with bool: use `int(x > 1)`"),
    (&["unsupported operand type(s) for %", "'str' and"], "there is no `%` on strings: use an f-string"),
    (&["unsupported operand type(s) for |", "'dict'"], "write `{**a, **b}`"),
    (&["indices must be integers or slices, not slice"], "a slice cannot be assigned: write `a = a[:1] + [9] + a[3:]`"),
    (
        &["'list' object is not an iterator"],
        "generators, map, filter, zip and enumerate are lists here: use a `for` loop with `break`",
    ),
    (&["not supported between instances of 'set' and 'set'"], "use `a.issubset(b)`"),
    (&["not supported between instances of 'frozenset'"], "use `a.issubset(b)`"),
    (&["callable replacement is not yet supported in re.sub()"], "build the text in a loop over `re.finditer`"),
    (&["real number, not 'int'"], "the integer is beyond 64 bits"),
    (&["must be real number, not int"], "the integer is beyond 64 bits"),
    (
        &["is not yet supported in this context"],
        "tools cannot be called inside `map`, `filter`, a sort key or a method such as `__repr__`: use a `for` loop",
    ),
    (&["JSONEncoder.__init__() got an unexpected keyword argument"], "change such values to text before"),
    (&["'typing.", "object is not subscriptable"], "leave the alias of the type out: only annotations can have it"),
    (&["cannot convert 'list' object to bytes"], "use `bytes.fromhex(\"\".join(f\"{n:02x}\" for n in numbers))`"),
    (&["print() 'file' argument is not supported"], "leave it out"),
];

/// Methods of built-in types that programs pass as functions.
const METHODS: [(&str, &[&str]); 9] = [
    ("list", &["append", "count", "extend", "index", "insert", "pop", "remove"]),
    ("dict", &["get", "items", "keys", "pop", "setdefault", "update", "values"]),
    ("Counter", &["elements", "get", "items", "keys", "most_common", "pop", "update", "values"]),
    ("collections.defaultdict", &["get", "items", "keys", "pop", "update", "values"]),
    ("collections.deque", &["append", "appendleft", "extend", "pop", "popleft"]),
    ("re.Pattern", &["findall", "finditer", "fullmatch", "match", "search", "split", "sub"]),
    ("tuple", &["count", "index"]),
    ("set", &["add", "discard", "pop", "remove", "update"]),
    ("str", &["endswith", "format", "join", "lower", "replace", "split", "startswith", "strip", "title", "upper"]),
];

/// Returns a message with its hint; none if there is no hint.
pub(crate) fn explained(message: &str) -> Option<String> {
    if message.starts_with(EXCEPTION_ARGUMENTS) {
        return Some("an exception takes one string, as in `ValueError(f\"{a} {b}\")`".to_owned());
    }
    let table = HINTS.iter().find(|(parts, _)| parts.iter().all(|part| message.contains(part))).map(|(_, hint)| *hint);
    let hint = table.or_else(|| method(message)).or_else(|| absent(message)).or_else(|| date(message))?;
    Some(format!("{message}; {hint}"))
}

/// Hint for a method that exists, but only for calls.
fn method(message: &str) -> Option<&'static str> {
    let (kind, name) = quoted(message, "", " object has no attribute ")
        .or_else(|| quoted(message, "type object ", " has no attribute "))?;
    let (_, methods) = METHODS.iter().find(|(other, _)| *other == kind)?;
    methods
        .contains(&name)
        .then_some("a method can only be called on a value: pass a lambda, as in `lambda x: x.strip()`")
}

/// Hint for a name that this Python lacks.
fn absent(message: &str) -> Option<&'static str> {
    if let Some(name) = message.strip_prefix("name '").and_then(|rest| rest.strip_suffix("' is not defined")) {
        return check::builtin_replacement(name);
    }
    let (module, name) = match quoted(message, "module ", " has no attribute ") {
        Some(names) => names,
        None => {
            let message = message.strip_suffix(" (unknown location)").unwrap_or(message);
            let (name, module) = quoted(message, "cannot import name ", " from ")?;
            (module, name)
        }
    };
    check::name_replacement(module, name)
}

/// Hint for a date format that the interpreter refuses though it fits.
fn date(message: &str) -> Option<&'static str> {
    let (_, format) = quoted(message, "time data ", " does not match format ")?;
    (!check::is_whole_date(format)).then_some("`strptime` needs year, month and day")
}

/// The two names of `START'FIRST'MIDDLE'SECOND'`.
fn quoted<'a>(message: &'a str, start: &str, middle: &str) -> Option<(&'a str, &'a str)> {
    let rest = message.strip_prefix(start)?.strip_prefix('\'')?;
    let (first, rest) = rest.split_once(&format!("'{middle}'"))?;
    Some((first, rest.strip_suffix('\'')?))
}

#[cfg(test)]
mod tests {
    use super::explained;

    #[test]
    fn misleading_messages_have_a_hint() {
        for (message, hint) in [
            ("unsupported operand type(s) for +=: 'int' and 'bool'", "int(x > 1)"),
            ("'list' object has no attribute 'append'", "lambda"),
            ("type object 'str' has no attribute 'lower'", "lambda"),
            ("name 'format' is not defined", "f-string"),
            ("cannot import name 'groupby' from 'itertools' (unknown location)", "setdefault"),
            ("module 'math' has no attribute 'prod'", "reduce"),
            ("time data '10:30' does not match format '%H:%M'", "year, month and day"),
            ("Internal error in monty: exceptions can only be called with zero or one string argument", "one string"),
        ] {
            let explained = explained(message).expect(message);
            assert!(explained.contains(hint) && !explained.contains("monty"), "{explained}");
        }
        for message in [
            "'list' object has no attribute 'lower'",
            "'A' object has no attribute 'append'",
            "name 'x' is not defined",
            "time data 'x' does not match format '%Y-%m-%d'",
            "unsupported operand type(s) for +: 'int' and 'str'",
            "",
        ] {
            assert_eq!(explained(message), None, "{message}");
        }
    }
}
