//! The language that scripts are written in: Starlark with statements at the top, keyword-only parameters and f-strings,
//! without `load`. It owns the bounds that a text has to keep before the parser, which recurses, may read it.

use starlark::codemap::{CodeMap, Pos, Span};
use starlark::syntax::{AstModule, Dialect};
use starlark_syntax::lexer::{Lexer, Token};
use starlark_syntax::syntax::ast::Stmt;

use crate::bindings::exports::toolcrib::script::interpreter::Problem;

/// Bytes that a script may have.
const MAX_SOURCE: usize = 1 << 20;

/// Brackets and blocks that may be open at once.
const MAX_OPEN: usize = 100;

/// Tokens that may stand in one expression on the way to its deepest part, which bounds how deep it nests.
const MAX_TOKENS: usize = 1000;

/// A shorter text cannot nest too deep, and need not be read twice.
const SHORT: usize = 512;

const DIALECT: Dialect = Dialect {
    // It is parsed so that it can be refused in words that help.
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
    Ok(AstModule::parse(name, source.to_owned(), &DIALECT)?)
}

/// Parses a hook's condition, which is one expression.
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

/// Every `load` of a script, each of them refused.
pub(crate) fn loads(parsed: &AstModule) -> Vec<Problem> {
    let refused = "load is not available: a script is one file; what it needs is built in";
    parsed.loads().iter().map(|load| Problem::at(&load.span, refused)).collect()
}

/// A bracket, a block or the whole text, while it is open.
#[derive(Default)]
struct Open {
    /// Tokens since the last comma or line.
    tokens: usize,
    /// Tokens that a comma does not end: a lambda's parameters have commas too.
    lasting: usize,
}

/// Refuses a text whose parts are nested too deep. Each token deepens an expression by one at most, so the tokens of all open
/// brackets bound the depth of the tree.
fn bounded(source: &str) -> Result<(), Problem> {
    let file = CodeMap::new("script".to_owned(), source.to_owned());
    let refused = |start: usize, message: String| {
        let at = Pos::new(u32::try_from(start).unwrap_or(u32::MAX));
        Err(Problem::at(&file.file_span(Span::new(at, at)), message))
    };
    let mut open = vec![Open::default()];
    let mut elifs = 0;
    // The parser tells what the lexer finds wrong.
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
            return refused(start, format!("an expression is longer than {MAX_TOKENS} tokens; split it into statements"));
        }
        if elifs > MAX_TOKENS {
            return refused(start, format!("there are more than {MAX_TOKENS} `elif`"));
        }
    }
    Ok(())
}
