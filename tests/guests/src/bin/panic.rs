//! Panics.

fn main() {
    panic!("this guest panics on purpose");
}
