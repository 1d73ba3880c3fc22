//! Component of plain functions: one for each type of WIT, one for each way to end, and some that JSON cannot call.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a guest's streams are what is tested")]

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({ path: "wit", world: "typed" });
    use super::Typed;
    export!(Typed);
}

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bindings::exports::test::typed::echo::{Guest as Echo, Item, Level, Rights, Shape};
use bindings::exports::test::typed::ends::{Guest as Ends, Problem, Reason};
use bindings::exports::test::typed::things::{Guest as Things, GuestThing, Thing, ThingBorrow};

struct Typed;

impl bindings::Guest for Typed {
    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
}

/// Defines functions that return their argument.
macro_rules! echo {
    ($($name:ident: $ty:ty,)*) => {
        $(fn $name(value: $ty) -> $ty {
            value
        })*
    };
}

impl Echo for Typed {
    echo! {
        a_bool: bool,
        a_u8: u8,
        a_u16: u16,
        a_u32: u32,
        a_u64: u64,
        a_s8: i8,
        a_s16: i16,
        a_s32: i32,
        a_s64: i64,
        a_f32: f32,
        a_f64: f64,
        a_char: char,
        a_string: String,
        a_list: Vec<u16>,
        some_bytes: Vec<u8>,
        a_tuple: (bool, String, u8),
        a_record: Item,
        items: Vec<Item>,
        a_variant: Shape,
        an_enum: Level,
        some_flags: Rights,
        an_option: Option<u32>,
        a_nested_option: Option<Option<u32>>,
        a_result: (Result<u32, String>,),
        a_bare_result: (Result<(), ()>,),
    }

    fn many(first: u8, second_one: String, third: Option<bool>) -> String {
        format!("{first} {second_one} {third:?}")
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);

impl Ends for Typed {
    fn with_text(fail: bool) -> Result<String, String> {
        if fail { Err("no such thing".to_owned()) } else { Ok("well".to_owned()) }
    }

    fn with_variant(fail: bool) -> Result<u32, Problem> {
        if fail { Err(Problem::NotFound("it".to_owned())) } else { Ok(7) }
    }

    fn with_enum(fail: bool) -> Result<(), Reason> {
        if fail { Err(Reason::Tired) } else { Ok(()) }
    }

    fn with_nothing(fail: bool) -> Result<(), ()> {
        if fail { Err(()) } else { Ok(()) }
    }

    fn quietly() {}

    fn crash() {
        panic!("for a test");
    }

    fn for_ever() {
        loop {
            std::hint::spin_loop();
        }
    }

    fn long(length: u32) -> String {
        "x".repeat(length as usize)
    }

    fn many_bytes(length: u32) -> Vec<u8> {
        vec![7; length as usize]
    }

    fn deeply(depth: u32) -> u32 {
        if depth == 0 { 0 } else { 1 + Self::deeply(std::hint::black_box(depth - 1)) }
    }

    fn speak(text: String) {
        println!("out: {text}");
        eprintln!("err: {text}");
    }

    fn read_file(path: String) -> Result<String, String> {
        std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    }

    fn state() -> u32 {
        CALLS.fetch_add(1, Relaxed)
    }
}

struct Named(String);

impl GuestThing for Named {
    fn new(name: String) -> Self {
        Self(name)
    }

    fn name(&self) -> String {
        self.0.clone()
    }

    fn make() -> Thing {
        Thing::new(Self("made".to_owned()))
    }
}

impl Things for Typed {
    type Thing = Named;

    fn take(it: ThingBorrow<'_>) -> String {
        it.get::<Named>().0.clone()
    }

    fn plain() -> String {
        "plain".to_owned()
    }
}
