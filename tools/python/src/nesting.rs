//! Expressions that are too deep to be parsed. Long flat source, such as a sum of 5,000 numbers, becomes a tree of that depth,
//! and freeing the tree exhausts the stack of the guest. The parser bounds brackets and blocks itself, but not such chains.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// Maximum number of tokens of one expression, without those in brackets that are closed and those before a comma.
const MAX_TOKENS: usize = 2_000;

/// Message if an expression is too long. Its position is unknown: the lexer does not tell it.
pub(crate) fn problem(source: &str) -> Option<String> {
    if source.len() <= MAX_TOKENS {
        return None;
    }
    let mut lexer = lexer::lex(source, Mode::Module);
    // Tokens since the last comma, for each open bracket and the line itself. Their sum bounds the depth of the tree.
    let mut open = vec![0_usize];
    let mut sum = 0;
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return None,
            TokenKind::NonLogicalNewline | TokenKind::Comment => {}
            TokenKind::Newline => {
                open.clear();
                open.push(0);
                sum = 0;
            }
            TokenKind::Comma => sum -= open.last_mut().map_or(0, std::mem::take),
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => open.push(0),
            kind => {
                if matches!(kind, TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace) && open.len() > 1 {
                    sum -= open.pop().unwrap_or(0);
                }
                if let Some(last) = open.last_mut() {
                    *last += 1;
                    sum += 1;
                }
            }
        }
        if sum + open.len() > MAX_TOKENS {
            return Some(format!("an expression is longer than {MAX_TOKENS} names, numbers and operators"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn chains_are_refused_and_lists_are_not() {
        assert!(problem(&["1"; 5_000].join("+")).is_some());
        assert!(problem(&format!("f{}", "()".repeat(5_000))).is_some());
        assert!(problem(&format!("x{}", ".a".repeat(5_000))).is_some());
        assert!(problem(&format!("[{}]", ["-1"; 5_000].join(","))).is_none());
        assert!(problem(&"x = 1 + 1\n".repeat(5_000)).is_none());
        assert!(problem(&format!("f({})", ["a=g(1)[2].b"; 5_000].join(", "))).is_none());
    }
}
