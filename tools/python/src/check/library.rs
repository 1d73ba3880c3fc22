//! Calls of `re` and `datetime` that have another result here than in Python, as far as the source alone shows it.

use ruff_python_ast::{Expr, ExprCall, ExprFString, InterpolatedStringElement, Operator};
use ruff_text_size::{Ranged as _, TextRange};

use super::findings::Findings;
use super::names::Names;

/// Checks a call.
pub(super) fn call(call: &ExprCall, names: &Names<'_>, found: &mut Findings) {
    let arguments = &call.arguments;
    let argument = |name: &str, position: usize| arguments.find_argument_value(name, position);
    match names.origin(&call.func) {
        Some(("re", function)) => {
            let pattern = argument("pattern", 0).and_then(text);
            if pattern.is_some_and(depends_on_ascii)
                && let Some(flag) = arguments_of(call).find_map(|value| ascii_flag(value, names))
            {
                let message = "`re.ASCII` would be ignored: write the characters, as in `[A-Za-z0-9_]` and `[0-9]`";
                found.feature(flag, message);
            }
            match function {
                "split" if pattern.is_some_and(has_group) => {
                    let message = "`re.split` would drop the text of the groups: use `re.findall`, as in \
                                   `re.findall(\"-|[^-]+\", s)`, or `(?:...)`";
                    found.feature(call.range(), message);
                }
                "sub" => replacement(argument("repl", 1), names, found),
                _ => {}
            }
        }
        _ => dates(call, names, found),
    }
}

/// Checks an f-string.
pub(super) fn f_string(string: &ExprFString, found: &mut Findings) {
    for element in string.value.elements() {
        if let InterpolatedStringElement::Interpolation(element) = element
            && let Some(format) = &element.format_spec
            && format.elements.literals().any(|literal| has_directive(&literal.value, 'f'))
        {
            found.feature(element.range, MICROSECONDS);
        }
    }
}

const MICROSECONDS: &str = "`%f` has nine digits here: use `f\"{d.microsecond:06}\"`";

fn dates(call: &ExprCall, names: &Names<'_>, found: &mut Findings) {
    let Expr::Attribute(attribute) = call.func.as_ref() else { return };
    let name = attribute.attr.as_str();
    if names.is_bound(name) {
        return;
    }
    let format = |position: usize| call.arguments.find_argument_value("format", position).and_then(text);
    match name {
        "strftime" if format(0).is_some_and(|format| has_directive(format, 'f')) => {
            found.feature(call.range(), MICROSECONDS);
        }
        "strptime" => {
            let Some(format) = format(1) else { return };
            if has_directive(format, 'z') {
                found
                    .feature(call.range(), "`strptime` would drop the offset `%z`: use `datetime.fromisoformat(text)`");
            } else if !is_whole_date(format) {
                let message = "`strptime` needs year, month and day: use `text.split(...)` and `int`, or add the missing \
                               parts to the text and the format";
                found.feature(call.range(), message);
            }
        }
        _ => {}
    }
}

/// Checks the replacement of `re.sub`.
fn replacement(value: Option<&Expr>, names: &Names<'_>, found: &mut Findings) {
    let Some(value) = value else { return };
    if value.is_lambda_expr() || value.as_name_expr().is_some_and(|name| names.is_function(name.id.as_str())) {
        let message = "`re.sub` takes no function: build the text in a loop over `re.finditer(pattern, text)`";
        found.feature(value.range(), message);
    }
    let Some(text) = text(value) else { return };
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\\'
            && let Some(escape @ ('n' | 't' | 'r' | 'f' | 'v' | 'a')) = characters.next()
        {
            let message =
                format!("`\\{escape}` would stay two characters in a replacement: write \"\\{escape}\" without r");
            found.feature(value.range(), message);
            return;
        }
    }
}

fn text(expression: &Expr) -> Option<&str> {
    expression.as_string_literal_expr().map(|text| text.value.to_str())
}

fn arguments_of(call: &ExprCall) -> impl Iterator<Item = &Expr> {
    call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|keyword| &keyword.value))
}

/// Place of `re.ASCII` among flags.
fn ascii_flag(flags: &Expr, names: &Names<'_>) -> Option<TextRange> {
    // The chain is as deep as the number of flags: only a few can be there.
    let mut flags = flags;
    for _ in 0..8 {
        match flags {
            Expr::BinOp(operation) if operation.op == Operator::BitOr => {
                if is_ascii(&operation.right, names) {
                    return Some(operation.right.range());
                }
                flags = &operation.left;
            }
            _ => return is_ascii(flags, names).then(|| flags.range()),
        }
    }
    None
}

fn is_ascii(flag: &Expr, names: &Names<'_>) -> bool {
    matches!(names.origin(flag), Some(("re", "ASCII" | "A")))
}

/// Returns `true` if a pattern can match other text with `re.ASCII`.
fn depends_on_ascii(pattern: &str) -> bool {
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && matches!(characters.next(), Some('w' | 'W' | 'd' | 'D' | 's' | 'S' | 'b' | 'B')) {
            return true;
        }
    }
    false
}

/// Returns `true` if a pattern has a group that captures.
fn has_group(pattern: &str) -> bool {
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\\' => rest = rest.chars().next().map_or("", |escaped| &rest[escaped.len_utf8()..]),
            '[' if !in_class => {
                in_class = true;
                // A bracket at the start of a class is a character of it.
                rest = rest.strip_prefix('^').unwrap_or(rest);
                rest = rest.strip_prefix(']').unwrap_or(rest);
            }
            ']' => in_class = false,
            '(' if !in_class && (!rest.starts_with('?') || rest.starts_with("?P<")) => return true,
            _ => {}
        }
    }
    false
}

/// Returns `true` if a date format has a directive.
fn has_directive(format: &str, directive: char) -> bool {
    directives(format).any(|other| other == directive)
}

fn directives(format: &str) -> impl Iterator<Item = char> {
    let mut characters = format.chars();
    std::iter::from_fn(move || {
        while let Some(character) = characters.next() {
            if character == '%' {
                return characters.next();
            }
        }
        None
    })
}

/// Returns `true` if a format can hold year, month and day.
pub(crate) fn is_whole_date(format: &str) -> bool {
    let has = |accepted: &str| directives(format).any(|directive| accepted.contains(directive));
    // A directive that is not known here may be a whole date.
    let known = directives(format).all(|directive| "YymbBhdejHIMSfpAawu%nt".contains(directive));
    !known || has("Yy") && (has("j") || has("mbBh") && has("de"))
}

#[cfg(test)]
mod tests {
    use super::{has_group, is_whole_date};

    #[test]
    fn groups_and_formats_are_read() {
        for pattern in ["(a)", "a|(?P<x>b)", "[]](a)", "[^]](a)", r"\\(a)"] {
            assert!(has_group(pattern), "{pattern}");
        }
        for pattern in ["a", r"\(a\)", "[(]", "[](]", "(?:a)", "(?=a)", "(?i)a", "(?P=x)", r"[\](]", "(?<=a)b", "\\"] {
            assert!(!has_group(pattern), "{pattern}");
        }
        for format in ["%Y-%m-%d", "%d %b %y %H:%M", "%Y-%j", "%F", "%c", "%x %X", "%D"] {
            assert!(is_whole_date(format), "{format}");
        }
        for format in ["%H:%M", "%Y-%m", "%B %d", "", "%%Y-%%m-%d"] {
            assert!(!is_whole_date(format), "{format}");
        }
    }
}
