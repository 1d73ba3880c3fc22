//! Acts as the program of a language: prints its arguments, its standard input and the file that the first argument names.

use std::io::{Read, Write};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut input = String::new();
    let _ = std::io::stdin().read_to_string(&mut input);
    let file = arguments.get(2).map(|path| std::fs::read_to_string(path).unwrap_or_else(|error| error.to_string()));
    let text = format!("{}\n{input}\n{}\n", arguments.join(" "), file.unwrap_or_default());
    // A pipe that is closed misses it.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
