//! Checks before the evaluation: refuses expressions that the library would misread, or that would exhaust its stack.
//! Computes nothing.

const MAX_DEPTH: usize = 50;

pub(crate) fn check(expression: &str) -> Result<(), String> {
    // The library reads two divisions in a row as the reciprocal of a reciprocal, not as Python's floor division.
    if expression.contains("//") {
        return Err("`//` is not an operator; use `floor(a / b)`".into());
    }
    // The library skips a comma, so `gcd(4, 6)` would be 46 of a unit.
    for (at, _) in expression.match_indices(',') {
        let after = expression.as_bytes()[at + 1..].iter().take_while(|byte| byte.is_ascii_digit());
        let before = expression[..at].bytes().next_back();
        if after.count() != 3 || !before.is_some_and(|byte| byte.is_ascii_digit()) {
            return Err("a comma only groups thousands; functions take one argument".into());
        }
    }
    nesting(expression)
}

/// Refuses an unclosed parenthesis, which the library would close at the end.
fn nesting(expression: &str) -> Result<(), String> {
    let mut depth = 0_usize;
    for letter in expression.chars() {
        match letter {
            '(' if depth == MAX_DEPTH => {
                return Err(format!("parentheses are nested deeper than {MAX_DEPTH} levels"));
            }
            '(' => depth += 1,
            ')' if depth == 0 => return Err("a `)` has no `(`".into()),
            ')' => depth -= 1,
            _ => {}
        }
    }
    if depth > 0 { Err("a `(` is not closed".into()) } else { Ok(()) }
}

/// Explains why an expression cannot be evaluated that ends with an operator.
pub(crate) fn dangling(expression: &str) -> Option<String> {
    let operator = expression.trim_end().chars().next_back().filter(|last| "+-*/^".contains(*last))?;
    Some(format!("the expression ends with `{operator}`; a value must follow it"))
}

/// `true` if the expression sets the number of places of its result.
pub(crate) fn says_how_to_round(expression: &str) -> bool {
    let mut words = expression.split(|letter: char| !letter.is_alphabetic());
    words.any(|word| matches!(word, "sf" | "dp" | "significant" | "sig" | "decimal" | "fraction"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_only_group_thousands() {
        assert_eq!(check("1,234,567 + 1,000"), Ok(()));
        for refused in ["gcd(4, 6)", "max(1,2)", "1,5", "1,2345", ",123", "(1),000"] {
            assert!(check(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn parentheses_must_balance() {
        assert_eq!(check("((1) + (2))"), Ok(()));
        assert!(check("(1").is_err());
        assert!(check("1)").is_err());
        assert!(check(&format!("{}1{}", "(".repeat(51), ")".repeat(51))).is_err());
    }

    #[test]
    fn an_operator_at_the_end_lacks_a_value() {
        assert_eq!(dangling("1 + ").as_deref(), Some("the expression ends with `+`; a value must follow it"));
        for whole in ["", "1 + 2", "5!", "50%"] {
            assert_eq!(dangling(whole), None, "{whole}");
        }
    }

    #[test]
    fn rounding_words_are_whole_words() {
        assert!(says_how_to_round("1/3 to 2 dp"));
        assert!(!says_how_to_round("1 dpt / 3"));
    }
}
