//! A tool for language-model agents. A model sees its name, its comments and its arguments.

use toolcrib_guest::{Result, tool, tools};

/// Greet someone by name.
#[ATTRIBUTE]
fn FUNCTION(
    /// Whom to greet
    name: String,
) -> Result<String> {
    Ok(format!("hello, {name}"))
}

tools!(FUNCTION);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_greets() {
        assert_eq!(FUNCTION("Ada".to_owned()).expect("a greeting"), "hello, Ada");
    }
}
