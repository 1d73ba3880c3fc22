//! Language of scripts: Starlark with statements at the top level, keyword-only parameters and f-strings, without
//! `load`. Owns the limits that are checked before the parser, which is recursive, reads a text.

use starlark::codemap::{CodeMap, Pos, Span};
use starlark::syntax::{AstModule, Dialect};
use starlark_syntax::lexer::{Lexer, Token};
use starlark_syntax::syntax::ast::{AstNoPayload, Stmt};
use starlark_syntax::syntax::uniplate::Visit;

use crate::bindings::exports::toolcrib::script::interpreter::Problem;

/// Maximum size of a script, in bytes.
const MAX_SOURCE: usize = 1 << 20;

/// Maximum brackets and blocks that are open at once.
const MAX_OPEN: usize = 100;

/// Maximum tokens in one expression on the way to its deepest part, so that the parser returns.
const MAX_TOKENS: usize = 1000;

/// Maximum depth of the parsed text: the compiler needs more stack for each level than the parser.
const MAX_DEPTH: usize = 200;

/// Length below which a text cannot nest too deep and need not be read twice.
const SHORT: usize = 512;

const DIALECT: Dialect = Dialect {
    // Parsed only to be refused with a helpful message.
    enable_load: true,
    enable_keyword_only_arguments: true,
    enable_top_level_stmt: true,
    enable_f_strings: true,
    ..Dialect::Standard
};

/// Parses a script.
pub(crate) fn parse(name: &str, source: &str) -> Result<AstModule, Problem> {
    if source.len() > MAX_SOURCE {
        return Err(Problem::whole(format!("the script is {} bytes, over the limit of {MAX_SOURCE}", source.len())));
    }
    if source.len() > SHORT {
        bounded(source)?;
    }
    let parsed = AstModule::parse(name, source.to_owned(), &DIALECT)?;
    match too_deep(&Visit::Stmt(parsed.statement()), 0) {
        Some(place) => {
            let message = format!("the text nests deeper than {MAX_DEPTH} here; split it into statements or functions");
            Err(Problem::at(&parsed.file_span(place), message))
        }
        None => Ok(parsed),
    }
}

/// First part that is nested too deep.
fn too_deep(part: &Visit<AstNoPayload>, depth: usize) -> Option<Span> {
    if depth > MAX_DEPTH {
        return Some(match part {
            Visit::Stmt(statement) => statement.span,
            Visit::Expr(expression) => expression.span,
        });
    }
    let mut found = None;
    part.visit_children(|child| found = found.or_else(|| too_deep(&child, depth + 1)));
    found
}

/// Parses the condition of a hook, which is one expression.
pub(crate) fn expression(when: &str) -> Result<AstModule, Problem> {
    let parsed = parse("when", when).map_err(|problem| problem.of("when"))?;
    let mut statement = parsed.statement();
    while let Stmt::Statements(statements) = &statement.node
        && let [only] = statements.as_slice()
    {
        statement = only;
    }
    match statement.node {
        Stmt::Expression(_) => Ok(parsed),
        _ => Err(Problem::at(&parsed.file_span(statement.span), "when: it must be one expression")),
    }
}

/// Refuses every `load` of a script.
pub(crate) fn loads(parsed: &AstModule) -> Vec<Problem> {
    let refused = "load is not available: a script is one file and uses only built-in modules";
    parsed.loads().iter().map(|load| Problem::at(&load.span, refused)).collect()
}

/// Open bracket, open block, or the whole text.
#[derive(Default)]
struct Open {
    /// Tokens since the last comma or line.
    tokens: usize,
    /// Tokens that a comma does not end: the parameters of a lambda have commas too.
    lasting: usize,
}

/// Refuses a text with parts that are nested too deep. Each token deepens an expression by at most one level, so the
/// tokens of all open brackets limit the depth of the tree.
fn bounded(source: &str) -> Result<(), Problem> {
    let file = CodeMap::new("script".to_owned(), source.to_owned());
    let refused = |start: usize, message: String| {
        let at = Pos::new(u32::try_from(start).unwrap_or(u32::MAX));
        Err(Problem::at(&file.file_span(Span::new(at, at)), message))
    };
    let mut open = vec![Open::default()];
    let mut elifs = 0;
    // The parser reports the errors of the lexer.
    for (start, token, _) in Lexer::new(file.source(), &DIALECT, file.clone()).map_while(Result::ok) {
        let Some(innermost) = open.last_mut() else { break };
        match token {
            Token::Comment(_) => {}
            Token::Newline | Token::Semicolon => *innermost = Open::default(),
            Token::Comma => innermost.tokens = 0,
            Token::Lambda => innermost.lasting += 1,
            Token::OpeningRound
            | Token::OpeningSquare
            | Token::OpeningCurly
            | Token::FStringExprStart
            | Token::Indent => {
                innermost.tokens += 1;
                open.push(Open::default());
            }
            Token::ClosingRound
            | Token::ClosingSquare
            | Token::ClosingCurly
            | Token::FStringExprEnd
            | Token::Dedent => {
                if open.len() > 1 {
                    open.pop();
                }
            }
            other => {
                elifs += usize::from(matches!(other, Token::Elif));
                innermost.tokens += 1;
            }
        }
        if open.len() > MAX_OPEN {
            return refused(start, format!("brackets and blocks are nested deeper than {MAX_OPEN}"));
        }
        if open.iter().map(|open| open.tokens + open.lasting).sum::<usize>() > MAX_TOKENS {
            return refused(
                start,
                format!("an expression is longer than {MAX_TOKENS} tokens; split it into statements"),
            );
        }
        if elifs > MAX_TOKENS {
            return refused(start, format!("there are more than {MAX_TOKENS} `elif`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &str) -> String {
        parse("t", source).err().map(|problem| problem.message).unwrap_or_default()
    }

    #[test]
    fn a_text_that_nests_too_deep_is_refused_before_it_is_parsed() {
        assert!(refused(&"[".repeat(100_000)).contains("brackets and blocks are nested deeper than"));
        for part in ["not ", "1 +", "- ", "lambda x, y: ", "1 if x else ", "f()."] {
            let message = refused(&format!("x = {}1", part.repeat(50_000)));
            assert!(message.contains("an expression is longer than"), "{part}: {message}");
        }
        let elifs = format!("if x:\n  pass\n{}", "elif x:\n  pass\n".repeat(50_000));
        assert!(refused(&elifs).contains("`elif`"));
        assert!(refused(&" ".repeat(MAX_SOURCE + 1)).contains("over the limit of"));
    }

    #[test]
    fn a_parsed_text_may_nest_as_deep_as_the_limit() {
        let nested = |levels: usize| format!("x = {}1", "not ".repeat(levels));
        // The module and the assignment are levels too.
        assert_eq!(refused(&nested(MAX_DEPTH - 2)), "");
        assert!(refused(&nested(MAX_DEPTH)).contains("nests deeper than 200"));
    }

    #[test]
    fn long_but_flat_texts_are_fine() {
        assert_eq!(refused(&format!("x = [{}]", "1, ".repeat(100_000))), "");
        assert_eq!(refused(&"x = f(1)[2]\n".repeat(50_000)), "");
    }
}
