//! Checks of a script without running it: syntax, names, recursive functions, and a missing or unusable entry.

use std::collections::{HashMap, HashSet};

use starlark::analysis::AstModuleLint;
use starlark::codemap::Span;
use starlark::syntax::AstModule;
use starlark_syntax::syntax::ast::{
    AssignTarget, AstExpr, AstNoPayload, AstParameter, AstStmt, DefP, Expr, Parameter, Stmt,
};
use starlark_syntax::syntax::uniplate::Visit;

use crate::bindings::exports::toolcrib::script::interpreter::{Entry, Problem, Script};
use crate::{dialect, evaluate, globals};

type Def = DefP<AstNoPayload>;

/// Maximum problems that are reported for one script.
const MAX_PROBLEMS: usize = 100;

/// Lists all problems in the order of the text; those of the condition come last.
pub(crate) fn check(script: &Script, entry: Entry, when: Option<&str>) -> Vec<Problem> {
    let mut problems = match dialect::parse(&script.name, &script.source) {
        Ok(parsed) => in_module(&parsed, script, entry),
        Err(problem) => vec![problem],
    };
    problems.sort_by_key(|problem| (problem.line, problem.column));
    if let Some(when) = when {
        problems.extend(match dialect::expression(when) {
            Ok(parsed) => unknown_names(&parsed, &["event", "payload"]).map(|problem| problem.of("when")).collect(),
            Err(problem) => vec![problem],
        });
    }
    problems.truncate(MAX_PROBLEMS);
    problems
}

fn in_module(parsed: &AstModule, script: &Script, entry: Entry) -> Vec<Problem> {
    let mut problems = dialect::loads(parsed);
    problems.extend(unknown_names(parsed, &[]));
    let mut functions = Vec::new();
    definitions(parsed.statement(), &mut functions);
    problems.extend(recursion(parsed, &functions));
    problems.extend(entry_problem(parsed, script, entry, &functions));
    problems
}

/// Names that are neither defined in the text nor built in.
fn unknown_names(parsed: &AstModule, given: &[&str]) -> impl Iterator<Item = Problem> {
    let built_in = globals::get().names().map(|name| name.as_str().to_owned());
    let known: HashSet<String> = built_in.chain(given.iter().map(|&name| name.to_owned())).collect();
    let found = parsed.lint(Some(&known)).into_iter().filter(|lint| lint.short_name == "using-undefined");
    found.map(move |lint| {
        let name = &lint.original;
        let near = known.iter().map(|known| (strsim::damerau_levenshtein(name, known), known)).min();
        let hint = match near {
            Some((distance, near)) if distance <= 2 && distance * 3 <= name.chars().count() => {
                format!("; did you mean `{near}`?")
            }
            _ => String::new(),
        };
        Problem::at(&lint.location, format!("`{name}` is not defined{hint}"))
    })
}

/// Functions at the top level of a module, including those in its `if` and `for`.
fn definitions<'a>(statement: &'a AstStmt, functions: &mut Vec<&'a Def>) {
    match &statement.node {
        Stmt::Def(function) => functions.push(function),
        other => other.visit_stmt(|statement| definitions(statement, functions)),
    }
}

/// Functions that call themselves, directly or through others.
fn recursion(parsed: &AstModule, functions: &[&Def]) -> Vec<Problem> {
    let names: HashSet<&str> = functions.iter().map(|function| function.name.node.ident.as_str()).collect();
    let mut calls: HashMap<&str, Vec<(&str, Span)>> = HashMap::new();
    for function in functions {
        let own: HashSet<&str> = function.params.iter().filter_map(|parameter| parameter_name(parameter)).collect();
        let found = calls.entry(&function.name.node.ident).or_default();
        called(Visit::Stmt(&function.body), &mut |name, place| {
            if names.contains(name) && !own.contains(name) {
                found.push((name, place));
            }
        });
    }
    let mut problems = Vec::new();
    for function in functions {
        let name = function.name.node.ident.as_str();
        let Some((through, place)) = way_back(name, &calls) else { continue };
        let through = if through == name { String::new() } else { format!(" through `{through}`") };
        let message =
            format!("function `{name}` calls itself{through}: recursion is not available; rewrite it as a loop");
        problems.push(Problem::at(&parsed.file_span(place), message));
    }
    problems
}

/// First call in a function that leads back to it.
fn way_back<'a>(name: &'a str, calls: &HashMap<&'a str, Vec<(&'a str, Span)>>) -> Option<(&'a str, Span)> {
    let of = |name: &str| calls.get(name).map(Vec::as_slice).unwrap_or_default();
    of(name).iter().copied().find(|&(first, _)| {
        let mut seen = HashSet::from([first]);
        let mut open = vec![first];
        while let Some(next) = open.pop() {
            if next == name {
                return true;
            }
            open.extend(of(next).iter().map(|&(callee, _)| callee).filter(|&callee| seen.insert(callee)));
        }
        false
    })
}

/// Passes every call of a plain name to `tell`.
fn called<'a>(part: Visit<'a, AstNoPayload>, tell: &mut impl FnMut(&'a str, Span)) {
    if let Visit::Expr(expression) = &part
        && let Expr::Call(callee, _) = &expression.node
        && let Expr::Identifier(name) = &callee.node
    {
        tell(&name.node.ident, expression.span);
    }
    part.visit_children(|child| called(child, tell));
}

/// Problem with the function that the host will call.
fn entry_problem(parsed: &AstModule, script: &Script, entry: Entry, functions: &[&Def]) -> Option<Problem> {
    let (_, name) = evaluate::names(entry);
    let function = functions.iter().rfind(|function| function.name.node.ident == name);
    let Some(function) = function else {
        return match assigned(parsed.statement(), name) {
            None => Some(Problem::whole(evaluate::missing(script, entry))),
            // Any other assigned value may be a function: only running it can decide.
            Some(value) => is_data(&value.node)
                .then(|| Problem::at(&parsed.file_span(value.span), evaluate::no_function(script, entry))),
        };
    };
    let expected: &[&str] = match entry {
        Entry::Run => &["args"],
        Entry::Handle => &["event", "payload"],
    };
    if takes(&function.params, expected.len()) {
        return None;
    }
    let place = parsed.file_span(function.name.span);
    let message = format!("'{name}' must take {} positional parameters ({})", expected.len(), expected.join(", "));
    Some(Problem::at(&place, message.replace("take 1 positional parameters", "take one positional parameter")))
}

/// `true` if a function accepts this number of positional arguments and no others.
fn takes(parameters: &[AstParameter], count: usize) -> bool {
    let (mut required, mut accepted, mut named_only) = (0, 0, false);
    for parameter in parameters {
        match &parameter.node {
            Parameter::Normal(_, _, None) if named_only => return false,
            Parameter::Normal(_, _, default) if !named_only => {
                accepted += 1;
                required += usize::from(default.is_none());
            }
            Parameter::Args(..) => {
                accepted = usize::MAX / 2;
                named_only = true;
            }
            Parameter::NoArgs => named_only = true,
            Parameter::Normal(..) | Parameter::KwArgs(..) | Parameter::Slash => {}
        }
    }
    (required..=accepted).contains(&count)
}

fn parameter_name(parameter: &AstParameter) -> Option<&str> {
    parameter.node.ident().map(|name| name.node.ident.as_str())
}

/// Value that a module assigns to a name at its top level.
fn assigned<'a>(statement: &'a AstStmt, name: &str) -> Option<&'a AstExpr> {
    if let Stmt::Assign(assign) = &statement.node
        && let AssignTarget::Identifier(target) = &assign.lhs.node
        && target.node.ident == name
    {
        return Some(&assign.rhs);
    }
    let mut found = None;
    if !matches!(statement.node, Stmt::Def(_)) {
        statement.node.visit_stmt(|statement| found = assigned(statement, name).or(found));
    }
    found
}

/// `true` if an expression can never be a function.
fn is_data(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Literal(_)
            | Expr::Tuple(_)
            | Expr::List(_)
            | Expr::Dict(_)
            | Expr::ListComprehension(..)
            | Expr::DictComprehension(..)
            | Expr::FString(_)
            | Expr::Not(_)
            | Expr::Minus(_)
            | Expr::Plus(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, entry: Entry, when: Option<&str>) -> Vec<String> {
        let script = Script { name: "t".to_owned(), source: source.to_owned() };
        let output = |problem: Problem| format!("{}:{}: {}", problem.line, problem.column, problem.message);
        check(&script, entry, when).into_iter().map(output).collect()
    }

    #[test]
    fn every_problem_of_a_script_is_told_with_its_place() {
        let source = "load('a', 'b')\n\ndef run(args):\n    pritn(args)\n    return jsn.encode(zzz)\n";
        assert_eq!(
            found(source, Entry::Run, None),
            [
                "1:6: load is not available: a script is one file and uses only built-in modules",
                "4:5: `pritn` is not defined; did you mean `print`?",
                "5:12: `jsn` is not defined; did you mean `json`?",
                "5:23: `zzz` is not defined",
            ]
        );
    }

    #[test]
    fn functions_that_call_themselves_are_refused() {
        let source = "def f(): return g()\ndef g(): return f()\ndef h(x): return h(x)\n\
                      def ok(f): return f()\ndef run(args): return ok(h)";
        let tail = "recursion is not available; rewrite it as a loop";
        assert_eq!(
            found(source, Entry::Run, None),
            [
                format!("1:17: function `f` calls itself through `g`: {tail}"),
                format!("2:17: function `g` calls itself through `f`: {tail}"),
                format!("3:18: function `h` calls itself: {tail}"),
            ]
        );
    }

    #[test]
    fn the_entry_must_be_there_and_take_what_it_is_given() {
        for (source, entry, problem) in [
            ("x = 1", Entry::Run, "0:0: tool script \"t\" must define a 'run' function"),
            ("handle = 'x'", Entry::Handle, "1:10: hook script \"t\": 'handle' must be a function"),
            ("def run(): return 1", Entry::Run, "1:5: 'run' must take one positional parameter (args)"),
            ("def run(a, *, b): return 1", Entry::Run, "1:5: 'run' must take one positional parameter (args)"),
            (
                "def handle(event): return 1",
                Entry::Handle,
                "1:5: 'handle' must take 2 positional parameters (event, payload)",
            ),
        ] {
            assert_eq!(found(source, entry, None), [problem], "{source}");
        }
        for source in [
            "def run(args): return 1",
            "def run(a, b = 2, *, c = 3, **d): return 1",
            "def run(*args): return 1",
            "run = lambda args: 1",
            "if True:\n    def run(args): return 1",
        ] {
            assert!(found(source, Entry::Run, None).is_empty(), "{source}");
        }
    }

    #[test]
    fn a_condition_is_checked_like_a_script() {
        let checked = |when| found("def handle(event, payload): return allow()", Entry::Handle, Some(when));
        assert!(checked("event == 'tool.pre' and len(payload) > 0").is_empty());
        assert_eq!(
            checked("event == 'x' and paylod"),
            ["1:18: when: `paylod` is not defined; did you mean `payload`?"]
        );
        assert_eq!(checked("1 +"), ["1:4: when: Parse error: unexpected new line, expected expression"]);
    }
}
