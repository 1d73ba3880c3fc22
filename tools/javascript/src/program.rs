//! Source of a program, and the script that runs it. The language has no `await` and no `return` outside of functions, so that
//! a program is the body of an asynchronous function. Two things are added to it: the first line makes its variables global,
//! and `return` stands before the last statement if that is an expression.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use boa_engine::ast::declaration::LexicalDeclaration;
use boa_engine::ast::expression::{Expression, Identifier};
use boa_engine::ast::function::FunctionBody;
use boa_engine::ast::operations::{lexically_declared_names, var_declared_names};
use boa_engine::ast::pattern::Pattern;
use boa_engine::ast::visitor::{VisitWith as _, Visitor};
use boa_engine::ast::{Declaration, Position, Spanned as _, Statement, StatementListItem};
use boa_engine::interner::Interner;
use boa_engine::parser::{Error, Parser, Source};

use crate::nesting;

/// Error in the source, with its line and column; 0 if unknown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// Message.
    pub(crate) message: String,
    /// Line.
    pub(crate) line: u32,
    /// Column, in characters.
    pub(crate) column: u32,
}

/// Parses a program.
///
/// # Errors
/// The first error in the source.
pub(crate) fn parse(source: &str) -> Result<(FunctionBody, Interner), Invalid> {
    if let Some(message) = nesting::problem(source) {
        return Err(Invalid { message, line: 0, column: 0 });
    }
    let mut interner = Interner::default();
    // The parser also ends at a bracket that closes nothing: only if the added statement is the last one, it read everything.
    let ended = format!("{source}\n{DECLARE}");
    let body = Parser::new(Source::from_bytes(&ended)).parse_function_body(&mut interner, false, true);
    let body = body.map_err(|error| invalid(&error))?;
    let end = places(&ended).last().map_or(1, |(_, line, _)| line);
    let read = match body.statements().last() {
        Some(StatementListItem::Statement(statement)) => match statement.as_ref() {
            Statement::Expression(Expression::Identifier(last)) => last.span().start() == Position::new(end, 1),
            _ => false,
        },
        _ => false,
    };
    if !read {
        let message = "the program ends too early, or has a `}` too many".to_owned();
        return Err(Invalid { message, line: 0, column: 0 });
    }
    // The parser does not compare the names of a body.
    let mut lexical = HashSet::new();
    let twice = lexically_declared_names(&body).into_iter().find(|name| !lexical.insert(*name));
    let twice = twice.or_else(|| var_declared_names(&body).into_iter().find(|name| lexical.contains(name)));
    match twice {
        Some(name) => {
            let message = format!("`{}` is declared twice", interner.resolve_expect(name));
            Err(Invalid { message, line: 0, column: 0 })
        }
        None => Ok((body, interner)),
    }
}

fn invalid(error: &Error) -> Invalid {
    let (message, position) = match error {
        Error::Expected { span, context: "import.meta", .. } => {
            ("there are no modules to import".to_owned(), Some(span.start()))
        }
        Error::Expected { span, .. } | Error::Unexpected { span, .. } => (error.to_string(), Some(span.start())),
        Error::General { message, position } => (message.to_string(), Some(*position)),
        Error::Lex { err: boa_engine::parser::lexer::Error::Syntax(message, position) } => {
            (message.to_string(), Some(*position))
        }
        Error::AbruptEnd => ("the program ends too early: is a bracket or a quote open?".to_owned(), None),
        other => (other.to_string(), None),
    };
    // The position has its own fields.
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    let (line, column) = position.map_or((0, 0), |position| (position.line_number(), position.column_number()));
    Invalid { message, line, column }
}

/// Program that can run.
#[derive(Debug)]
pub(crate) struct Program {
    /// Source as given.
    pub(crate) source: String,
    /// Text of a script whose value is the function of the program.
    pub(crate) script: String,
    /// Path of the script in the engine's tracebacks.
    pub(crate) path: String,
    /// Line and column of the last statement, before which `return` was added.
    returned: Option<(u32, u32)>,
}

impl Program {
    /// Start of the paths of all programs.
    pub(crate) const PATH: &'static str = "program-";
    const RETURN: &'static str = "return ";

    /// Makes the script of a program, the `number`th of its session.
    ///
    /// # Errors
    /// The first error in the source.
    pub(crate) fn new(source: &str, number: u32) -> Result<Self, Invalid> {
        let (body, interner) = parse(source)?;
        let empty = |item: &&StatementListItem| matches!(item, StatementListItem::Statement(it) if matches!(**it, Statement::Empty));
        let last = match body.statements().iter().rev().skip(1).find(|item| !empty(item)) {
            Some(StatementListItem::Statement(statement)) => match statement.as_ref() {
                Statement::Expression(expression) => Some(start(expression)),
                _ => None,
            },
            _ => None,
        };
        let declared = names(&body, &interner);
        let declare = if declared.iter().any(|name| name == DECLARE) { "$declare_" } else { DECLARE };
        let list: Vec<String> = declared.iter().map(|name| accessors(name)).collect();
        let head = format!("(async function ({declare}) {{ {declare}({});\n", list.join(","));
        let (before, after, returned) = match last.and_then(|start| Some((start, offset(source, start)?))) {
            Some((start, at)) => (&source[..at], &source[at..], Some((start.line_number(), start.column_number()))),
            None => (source, "", None),
        };
        let added = if returned.is_some() { Self::RETURN } else { "" };
        // A comment may end the source.
        let script = format!("{head}{before}{added}{after}\n}})");
        Ok(Self { source: source.to_owned(), script, path: format!("{}{number}", Self::PATH), returned })
    }

    /// Place in the source of a place in the script; none for what was added.
    pub(crate) fn place(&self, line: u32, column: u32) -> Option<(u32, u32)> {
        let line = line.checked_sub(1).filter(|line| *line > 0)?;
        let added = Self::RETURN.len() as u32;
        let column = match self.returned {
            Some((last, start)) if last == line && column >= start + added => column - added,
            _ => column,
        };
        Some((line, column))
    }
}

/// Start of an expression. The span of a call, among others, starts after the function.
pub(crate) fn start(expression: &Expression) -> Position {
    let mut first = First(expression.span().start());
    let _ = first.visit_expression(expression);
    first.0
}

struct First(Position);

impl<'ast> Visitor<'ast> for First {
    type BreakTy = Infallible;

    fn visit_expression(&mut self, expression: &'ast Expression) -> ControlFlow<Infallible> {
        self.0 = self.0.min(expression.span().start());
        expression.visit_with(self)
    }

    fn visit_identifier(&mut self, identifier: &'ast Identifier) -> ControlFlow<Infallible> {
        self.0 = self.0.min(identifier.span().start());
        ControlFlow::Continue(())
    }

    fn visit_pattern(&mut self, pattern: &'ast Pattern) -> ControlFlow<Infallible> {
        self.0 = self.0.min(pattern.span().start());
        pattern.visit_with(self)
    }
}

/// Name of the function that makes variables global.
const DECLARE: &str = "$declare";

/// Names that the top level of a program declares.
fn names(body: &FunctionBody, interner: &Interner) -> Vec<String> {
    // Disposed of at the end of the program.
    let using = body.statements().iter().any(|item| match item {
        StatementListItem::Declaration(declaration) => matches!(
            declaration.as_ref(),
            Declaration::Lexical(LexicalDeclaration::Using(_) | LexicalDeclaration::AwaitUsing(_))
        ),
        StatementListItem::Statement(_) => false,
    });
    if using {
        return Vec::new();
    }
    let mut names: Vec<String> = lexically_declared_names(body)
        .into_iter()
        .chain(var_declared_names(body))
        .map(|name| interner.resolve_expect(name).to_string())
        .filter(|name| !matches!(name.as_str(), "arguments" | "eval" | "let" | "tools" | "yield"))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Name of a variable and functions that get and set it. The parameter must not hide the variable.
fn accessors(name: &str) -> String {
    let parameter = if name == "v" { "w" } else { "v" };
    format!("[\"{name}\",()=>{name},{parameter}=>{{{name}={parameter}}}]")
}

/// Offset in bytes of a position.
fn offset(source: &str, position: Position) -> Option<usize> {
    let wanted = (position.line_number(), position.column_number());
    places(source).find(|(_, line, column)| (*line, *column) == wanted).map(|(at, ..)| at)
}

/// Offset, line and column of every character, and of the end.
fn places(source: &str) -> impl Iterator<Item = (usize, u32, u32)> {
    let mut characters = source.char_indices().peekable();
    let mut next = Some((1, 1));
    std::iter::from_fn(move || {
        let (line, column) = next?;
        let Some((at, character)) = characters.next() else {
            next = None;
            return Some((source.len(), line, column));
        };
        let returned = character == '\r' && characters.peek().is_some_and(|(_, next)| *next == '\n');
        next = match character {
            '\n' | '\r' | '\u{2028}' | '\u{2029}' if !returned => Some((line + 1, 1)),
            _ => Some((line, column + 1)),
        };
        Some((at, line, column))
    })
}

#[cfg(test)]
mod tests {
    use super::{Program, parse};

    #[test]
    fn the_last_expression_is_returned() {
        for expression in [
            "a.b.c()",
            "await x",
            "`t${1}`",
            "x => y",
            "async () => 1",
            "async x => 1",
            "new A().b",
            "[1][0]",
            "!x",
            "x++",
            "++x",
            "(1, 2)",
            "1, 2",
            "a ? b : c",
            "a = 5",
            "[a, b] = c",
            "({ a: 1 }).a",
            "({ a } = b)",
            "/re/.test('x')",
            "tag`x`",
            "1 + 1",
            "a?.b",
            "this",
            "'é'.length",
            "typeof x",
            "-x ** 2".trim_start_matches('-'),
            "void 0",
            "delete a.b",
            "#x in y".trim_start_matches("#x in "),
            "a in b",
            "(function () {})()",
            "(async () => { await 1 })()",
            "new.target",
            "import('x')",
            "a && b || c",
            "a ?? b",
            "a += 1",
            "a[0].b.c",
            "super_",
            "null",
            "1n",
            "await tools.add({ a: 1 })",
            "(await x).y",
            "(a)",
            "((a)).b",
            "a\n  .b()\n  .c()",
            "a /* c */ + 1",
        ] {
            for (before, after) in [
                ("", ""),
                ("é; ", ";"),
                ("const c = 1;\n", " // end"),
                ("if (a) { b() }\r\n  ", ";\n\n"),
                ("/* é */ ", "\n;"),
            ] {
                let program = Program::new(&format!("{before}{expression}{after}"), 1).expect(expression);
                let expected = format!("{before}return {expression}{after}\n}})");
                assert!(program.script.ends_with(&expected), "{expression}: {}", program.script);
            }
        }
    }

    #[test]
    fn places_are_those_of_the_source() {
        let program = Program::new("x = 1\n  foo(x)", 1).expect("a program");
        assert_eq!(program.place(2, 5), Some((1, 5)));
        assert_eq!(program.place(3, 3 + 7), Some((2, 3)));
        assert_eq!(program.place(1, 9), None);
    }

    #[test]
    fn errors_have_a_place() {
        let place = |source: &str| {
            let invalid = parse(source).expect_err(source);
            assert!(!invalid.message.contains("line"), "{invalid:?}");
            (invalid.line, invalid.column)
        };
        assert_eq!(place("let a = 1\n  let = = 2"), (2, 9));
        assert_eq!(place("'é' )"), (1, 5));
        assert!(parse("const a = 'x\n'").is_err());
        assert!(parse("let a; let a").expect_err("twice").message.contains("`a` is declared twice"));
        assert!(parse("let a; { var a }").is_err() && parse("var a; var a; function b() {} function b() {}").is_ok());
        assert!(parse("import a from 'b'").expect_err("no modules").message.contains("no modules"));
        assert!(parse("(").is_err() && parse("return 1; await 2").is_ok());
        assert!(parse("}); (async () => {").is_err(), "the function of a program cannot be left");
    }
}
