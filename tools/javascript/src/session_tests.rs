//! Tests of sessions, on the host: how programs start, pause, continue, fail and follow each other.

use super::{Limits, Session, Step};
use crate::calls::{Call, Outcome, Reason};
use crate::failure::{Failure, Kind};
use code_guest::testing::tools;

/// Limits of the tests.
pub(super) const LIMITS: Limits = Limits { memory: None, recursion: 100, printed: 100, value: 1_000, calls: 10 };

pub(super) fn session() -> Session {
    Session::new().expect("a session")
}

pub(super) fn run(session: &mut Session, source: &str) -> Step {
    session.run(source, tools(), LIMITS)
}

pub(super) fn calls(step: Step) -> Vec<Call> {
    match step {
        Step::Calls(calls) => calls,
        other => panic!("no calls: {other:?}"),
    }
}

pub(super) fn value(step: Step) -> String {
    match step {
        Step::Finished(value, false) => value,
        other => panic!("no value: {other:?}"),
    }
}

pub(super) fn shown(step: Step) -> String {
    match step {
        Step::Finished(value, true) => value,
        other => panic!("nothing shown: {other:?}"),
    }
}

pub(super) fn failed(step: Step) -> Failure {
    match step {
        Step::Failed(failure) => failure,
        other => panic!("no failure: {other:?}"),
    }
}

/// Value of a program in a new session.
pub(super) fn evaluated(source: &str) -> String {
    value(run(&mut session(), source))
}

/// Answers calls until the program ends.
pub(super) fn answered(session: &mut Session, mut step: Step, mut answer: impl FnMut(&Call) -> Outcome) -> Step {
    while let Step::Calls(calls) = step {
        let results = calls.iter().map(|call| (call.id, answer(call))).collect();
        step = session.resume(results);
    }
    step
}

/// Value of a program whose calls all have the same outcome.
fn with_outcome(source: &str, outcome: &Outcome) -> String {
    let mut session = session();
    let step = run(&mut session, source);
    value(answered(&mut session, step, |_| outcome.clone()))
}

fn no(reason: Reason) -> Outcome {
    Err((reason, "no".to_owned()))
}

#[test]
fn the_value_is_that_of_the_last_expression() {
    for (source, expected) in [
        ("1 + 1", "2"),
        ("const x = 2; x * 3;", "6"),
        ("return 5; 6", "5"),
        ("if (true) { return [1, 'a'] }", r#"[1,"a"]"#),
        ("let x = 1", "null"),
        ("if (1) { 5 }", "null"),
        ("undefined", "null"),
        ("await Promise.resolve(3)", "3"),
        ("Promise.resolve({ a: 1 })", r#"{"a":1}"#),
        ("({ b: 1, a: undefined, 1: null })", r#"{"1":null,"b":1}"#),
        ("[undefined, , true]", "[null,null,true]"),
        ("[0.1, 1e21, -0, 1e300, 123456789012345680000]", "[0.1,1e+21,0,1e+300,123456789012345680000]"),
        ("new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
        ("({ toJSON() { return { a: 1 } } })", r#"{"a":1}"#),
        ("'é\\u{1F600}\\n\\u0001'", "\"é😀\\n\\u0001\""),
        ("new (class { constructor() { this.a = 1 } b() {} })", r#"{"a":1}"#),
        ("'use strict'; x = function () { return this }; 1 // end", "1"),
        ("'abcdef'.substr(1, 2)", r#""bc""#),
        ("for await (const x of [1, 2]) { var y = x } y", "2"),
    ] {
        assert_eq!(evaluated(source), expected, "{source}");
    }
}

#[test]
fn values_without_json_are_shown() {
    for (source, expected) in [
        ("10n", r#""10n""#),
        ("NaN", r#""NaN""#),
        ("(function f() {})", r#""[Function: f]""#),
        ("x = { a: [1] }; x.x = x; x", r#""{ a: [ 1 ], x: [Circular] }""#),
        ("new Map([['a', new Set([1])]])", r#""Map(1) { \"a\" => Set(1) { 1 } }""#),
        ("[Symbol('s'), /a/g, -0, 'x']", r#""[ Symbol(s), /a/g, -0, \"x\" ]""#),
        ("({ get a() { throw 1 }, f: () => 1, 'b-c': null })", r#""{ a: [Getter], f: [Function: f], \"b-c\": null }""#),
        ("[new TypeError('no')]", r#""[ TypeError: no ]""#),
        ("[class A {}, new (class B { x = 1n })]", r#""[ [Function: A], B { x: 1n } ]""#),
        ("[tools.any().catch(() => 1)].concat(1)", r#""[ Promise { 1 }, 1 ]""#),
        ("[new Promise(() => {}), 1n]", r#""[ Promise { <pending> }, 1n ]""#),
        ("'\\ud800'", "\"\\\"\u{fffd}\\\"\""),
    ] {
        let mut session = session();
        let step = run(&mut session, source);
        let step = answered(&mut session, step, |_| Ok("1".to_owned()));
        assert_eq!(shown(step), expected, "{source}");
    }
    let long = shown(run(&mut session(), "'é'.repeat(2000)"));
    assert!(long.len() <= 1_010 && long.starts_with("\"\\\"é"), "{long}");
}

#[test]
fn awaited_calls_pause_one_at_a_time() {
    let mut session = session();
    let first = calls(run(&mut session, "await tools.add({ a: 1, b: 2 }) + await tools.add({ a: 3, b: 4 })"));
    let call = |id, arguments: &str| Call { id, tool: "add".to_owned(), arguments: arguments.to_owned() };
    assert_eq!(first, [call(first[0].id, r#"{"a":1,"b":2}"#)]);
    let second = calls(session.resume(vec![(first[0].id, Ok("3".to_owned()))]));
    assert_eq!(second, [call(second[0].id, r#"{"a":3,"b":4}"#)]);
    assert_eq!(value(session.resume(vec![(second[0].id, Ok("7".to_owned()))])), "10");
}

#[test]
fn calls_together_are_answered_in_any_order() {
    let mut session = session();
    let both = calls(run(&mut session, "await Promise.all([1, 2].map(a => tools.add({ a, b: a })))"));
    assert_eq!(both.len(), 2);
    assert_eq!(calls(session.resume(vec![(both[1].id, Ok("4".to_owned()))])), []);
    assert_eq!(value(session.resume(vec![(both[0].id, Ok("2".to_owned()))])), "[2,4]");
}

#[test]
fn failed_calls_can_be_caught() {
    let caught = "try { await tools.any() } catch (e) { \
                  [e instanceof ToolError, e instanceof Error, e.name, e.reason, e.message, String(e)] }";
    let program = caught.replace("[e", "r = [e") + "; r";
    for (reason, name) in [
        (Reason::Failed, "failed"),
        (Reason::Refused, "refused"),
        (Reason::Timeout, "timeout"),
        (Reason::Invalid, "invalid"),
    ] {
        let expected = format!(r#"[true,true,"ToolError","{name}","no","ToolError: no"]"#);
        assert_eq!(with_outcome(&program, &no(reason)), expected);
    }
    let settled = "(await Promise.allSettled([tools.any(), tools.any()])).map(r => r.status)";
    assert_eq!(with_outcome(settled, &no(Reason::Failed)), r#"["rejected","rejected"]"#);
    assert_eq!(with_outcome("await tools.any().catch(e => e.message)", &no(Reason::Failed)), r#""no""#);
}

#[test]
fn results_are_data() {
    let result = |text: &str, source: &str| with_outcome(source, &Ok(text.to_owned()));
    assert_eq!(
        result(
            r#"{"__proto__":{"x":1},"constructor":2}"#,
            "r = await tools.any(); [r.x === undefined, Object.keys(r), r]"
        ),
        r#"[true,["__proto__","constructor"],{"__proto__":{"x":1},"constructor":2}]"#
    );
    assert_eq!(result("9007199254740993", "await tools.any()"), "9007199254740992");
    assert_eq!(result("123456789012345678901234567890", "await tools.any()"), "1.2345678901234568e+29");
    assert_eq!(result(r#"{"then":1,"toJSON":2}"#, "await tools.any()"), r#"{"then":1,"toJSON":2}"#);
    assert_eq!(result(r#"["é😀\u0000"]"#, "(await tools.any())[0].length"), "4");
    assert_eq!(result(r#"{"b":1,"a":[true,null,1.5]}"#, "await tools.any()"), r#"{"b":1,"a":[true,null,1.5]}"#);
}

#[test]
fn arguments_are_one_plain_object() {
    for (argument, problem) in [
        ("1", "not a number"),
        ("'x'", "not a string"),
        ("[1]", "not an array"),
        ("null", "not null"),
        ("() => 1", "not a function"),
        ("new Map()", "not a Map"),
        ("tools.any", "not a function"),
        ("Promise.resolve({})", "not a promise: use `await`"),
        ("{ a: 1n }", "is a BigInt"),
        ("{ a: NaN }", "is NaN"),
        ("{ a: [() => 1] }", "is a function"),
        ("{ a: Promise.resolve(1) }", "is a promise: use `await`"),
        ("{ a: Symbol() }", "is a symbol"),
        ("{ a: '\\ud800' }", "surrogate"),
        ("(() => { const a = {}; a.a = a; return a })()", "contains itself"),
        ("{ a: 'x'.repeat(1000) }", "longer than 1000 bytes"),
        ("{}, {}", "one object"),
        ("{ toJSON() { return 1 } }", "`toJSON` returned"),
    ] {
        let source = format!("try {{ await tools.any({argument}); r = 'called' }} catch (e) {{ r = `${{e}}` }} r");
        let message = evaluated(&source);
        assert!(message.starts_with("\"TypeError: tools.any ") && message.contains(problem), "{argument}: {message}");
    }
    let mut session = session();
    for (arguments, expected) in [
        ("", "{}"),
        ("undefined", "{}"),
        ("{}", "{}"),
        (
            "{ a: undefined, b: new Date(0), c: { d: [1, , 'é'] } }",
            r#"{"b":"1970-01-01T00:00:00.000Z","c":{"d":[1,null,"é"]}}"#,
        ),
        ("new Proxy({ a: 1 }, {})", r#"{"a":1}"#),
        ("{ get a() { return 2 } }", r#"{"a":2}"#),
        ("Object.create(null)", "{}"),
        ("{ a: new Number(1), b: new String('x'), c: new Boolean(true) }", r#"{"a":1,"b":"x","c":true}"#),
    ] {
        let paused = calls(run(&mut session, &format!("await tools.any({arguments})")));
        assert_eq!(paused[0].arguments, expected, "{arguments}");
        value(session.resume(vec![(paused[0].id, Ok("1".to_owned()))]));
    }
    let thrown = "try { await tools.any({ get a() { throw new RangeError('x') } }) } catch (e) { r = e.name } r";
    assert_eq!(evaluated(thrown), r#""RangeError""#);
}

#[test]
fn variables_stay_for_the_next_program() {
    let mut session = session();
    value(run(
        &mut session,
        "let count = 1; const c = 2; var v = 3; function f() { return ++count }; class A {} \nconst { a, b: [d] } = { a: 4, b: [5] }; s = 6",
    ));
    assert_eq!(value(run(&mut session, "[f(), count, c, v, typeof A, a, d, s]")), r#"[2,2,2,3,"function",4,5,6]"#);
    assert_eq!(value(run(&mut session, "count = 10; f(); count")), "11");
    assert_eq!(failed(run(&mut session, "c = 3")).exception, "TypeError");
    assert_eq!(value(run(&mut session, "let c = 7; function f() { return 'new' }; [c, f()]")), r#"[7,"new"]"#);
    assert_eq!(value(run(&mut session, "[c, f()]")), r#"[7,"new"]"#);
    assert_eq!(failed(run(&mut session, "const early = 1; null.x; const late = 2")).exception, "TypeError");
    assert_eq!(value(run(&mut session, "early")), "1");
    assert_eq!(failed(run(&mut session, "late")).exception, "ReferenceError");
    assert_eq!(
        value(run(
            &mut session,
            "const v1 = 1, w = 2, undefined_ = 3, name = 'x'; var tools_ = tools; [typeof tools.add, name]"
        )),
        r#"["function","x"]"#
    );
    let paused = calls(run(&mut session, "const again = tools.add; await again({ a: 1, b: 2 })"));
    value(session.resume(vec![(paused[0].id, Ok("3".to_owned()))]));
    let step = session.run("await again({ a: 1, b: 2 })", code_guest::tools::Tools::default(), LIMITS);
    assert!(failed(step).message.contains("there is no tool `add`"), "tools of earlier programs are replaced");
}

#[test]
fn printed_text_is_readable_and_bounded() {
    let mut session = session();
    value(run(
        &mut session,
        "console.log('a', 1, { b: ['c'] }); console.error(new Error('x'), undefined); console.log()",
    ));
    assert_eq!(session.take_output(), ("a 1 { b: [ \"c\" ] }\nError: x undefined\n\n".to_owned(), 0));
    value(run(&mut session, "console.log('x'.repeat(99)); console.log('yy'); console.log('y'.repeat(1000))"));
    assert_eq!(session.take_output(), (format!("{}\n", "x".repeat(99)), 3 + 1_001));
}

#[test]
fn floating_calls_are_made_and_their_failures_count() {
    let mut session = session();
    let paused = calls(run(&mut session, "tools.any(); 5"));
    assert_eq!(value(session.resume(vec![(paused[0].id, Ok("1".to_owned()))])), "5");
    let paused = calls(run(&mut session, "tools.any(); 5"));
    let failure = failed(session.resume(vec![(paused[0].id, no(Reason::Failed))]));
    assert_eq!(
        (failure.kind, failure.exception.as_str(), failure.message.as_str()),
        (Kind::Uncaught, "ToolError", "no")
    );
    assert_eq!(failed(run(&mut session, "Promise.reject(new RangeError('r')); 5")).exception, "RangeError");
    assert_eq!(value(run(&mut session, "const p = Promise.reject(1); await null; p.catch(() => 2); 5")), "5");
    assert_eq!(value(run(&mut session, "(async () => { await null; x = 8 })(); 5")), "5");
    assert_eq!(value(run(&mut session, "x")), "8");
}

#[test]
fn a_program_that_ends_before_its_results_is_given_a_note() {
    let mut session = session();
    for (source, note) in [
        ("const t = tools.any(); t.time", "the result of `tools.any`; to use a result, write `await`\n"),
        ("tools.any(); tools.add({ a: 1, b: 2 }); tools.any(); 5", "`tools.any` and of 2 more calls;"),
        ("tools.any()", ""),
        ("await tools.any(); 5", ""),
    ] {
        let paused = calls(session.run(source, tools(), Limits { printed: 200, ..LIMITS }));
        value(session.resume(paused.iter().map(|call| (call.id, Ok("1".to_owned()))).collect()));
        let printed = session.take_output().0;
        assert!(printed.contains(note) && printed.is_empty() == note.is_empty(), "{source}: {printed}");
    }
}

#[test]
fn a_promise_that_nothing_settles_is_a_failure() {
    let mut session = session();
    for source in ["await new Promise(() => {})", "new Promise(() => {})", "for (;;) await { then() {} }"] {
        let failure = failed(run(&mut session, source));
        assert!(failure.kind == Kind::Uncaught && failure.message.contains("nothing can settle"), "{source}");
    }
    assert_eq!(value(run(&mut session, "1")), "1");
}

#[test]
fn mistakes_of_the_host_change_nothing() {
    let mut session = session();
    assert_eq!(failed(session.resume(vec![])).kind, Kind::Misuse);
    let paused = calls(run(&mut session, "await tools.any()"));
    let id = paused[0].id;
    let deep = format!("{}{}", "[".repeat(140), "]".repeat(140));
    for results in [
        vec![],
        vec![(id + 1, Ok("1".to_owned()))],
        vec![(id, Ok("{".to_owned()))],
        vec![(id, Ok(r#"{"a":1,"a":2}"#.to_owned()))],
        vec![(id, Ok(r#""\ud800""#.to_owned()))],
        vec![(id, Ok(deep))],
        vec![(id, Ok("1".to_owned())), (id, Ok("1".to_owned()))],
    ] {
        assert_eq!(failed(session.resume(results)).kind, Kind::Misuse);
    }
    assert_eq!(failed(run(&mut session, "1")).kind, Kind::Misuse);
    assert_eq!(value(session.resume(vec![(id, Ok("1".to_owned()))])), "1");
    assert_eq!(failed(session.resume(vec![(id, Ok("1".to_owned()))])).kind, Kind::Misuse);
}

#[test]
fn failures_say_where() {
    let mut session = session();
    let source = "const a = 1\nfunction f(x) {\n  return x.y.z\n}\n\nf(a)";
    let failure = failed(run(&mut session, source));
    assert_eq!((failure.kind, failure.exception.as_str()), (Kind::Uncaught, "TypeError"));
    let frames: Vec<_> = failure
        .traceback
        .iter()
        .map(|frame| (frame.line, frame.function.as_deref(), frame.source.as_deref()))
        .collect();
    assert_eq!(frames, [(6, None, Some("f(a)")), (3, Some("f"), Some("return x.y.z"))], "{failure:?}");
    let failure = failed(run(&mut session, "throw { a: 1 }"));
    assert_eq!((failure.exception.as_str(), failure.message.as_str()), ("object", "{ a: 1 }"));
    let failure = failed(run(&mut session, "await setTimeout(() => 1, 5)"));
    assert!(failure.message.ends_with("there are no timers"), "{failure:?}");
    let failure = failed(run(&mut session, "throw new Error('x'.repeat(10000))"));
    assert_eq!(failure.message.chars().count(), 4_001);
    let failure = failed(run(&mut session, "let x = 1\nlet = = 2"));
    assert_eq!((failure.kind, failure.traceback[0].line), (Kind::Invalid, 2));
    let failure = failed(run(&mut session, "let x = 1\nlet x = 2"));
    assert_eq!(failure.kind, Kind::Invalid, "{failure:?}");
    let paused = calls(run(&mut session, "async function g() {\n  await tools.any()\n}\nawait g()"));
    let failure = failed(session.resume(vec![(paused[0].id, no(Reason::Refused))]));
    assert_eq!((failure.exception.as_str(), failure.message.as_str()), ("ToolError", "no"));
    assert_eq!(failure.traceback[0].source.as_deref(), Some("await tools.any()"), "{failure:?}");
}
