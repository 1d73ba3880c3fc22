//! Acts as the program of a language: prints its arguments, its standard input and the file that the first argument names.

use std::io::Read;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut input = String::new();
    let _ = std::io::stdin().read_to_string(&mut input);
    let file = arguments.get(2).map(|path| std::fs::read_to_string(path).unwrap_or_else(|error| error.to_string()));
    println!("{}\n{input}\n{}", arguments.join(" "), file.unwrap_or_default());
}
