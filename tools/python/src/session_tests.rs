//! Tests of sessions, on the host: how programs start, pause, continue, fail and follow each other.

use super::{Call, Limits, Session, Step};
use crate::answer::Reason;
use crate::failure::Kind;
use code_guest::testing::tools;

const LIMITS: Limits = Limits { memory: None, recursion: 100, printed: 100, value: 1_000, calls: 10 };

fn call(id: u32, arguments: &str) -> Call {
    Call { id, tool: "add".to_owned(), arguments: arguments.to_owned() }
}

fn calls(step: Step) -> Vec<Call> {
    match step {
        Step::Calls(calls) => calls,
        other => panic!("no calls: {other:?}"),
    }
}

fn value(step: Step) -> String {
    match step {
        Step::Finished(value, _) => value,
        other => panic!("no value: {other:?}"),
    }
}

fn failure(step: Step) -> (Kind, String, String) {
    match step {
        Step::Failed(failure) => (failure.kind, failure.exception, failure.message),
        other => panic!("no failure: {other:?}"),
    }
}

#[test]
fn plain_calls_pause_one_at_a_time() {
    let mut session = Session::new();
    let first = calls(session.run("tools.add(1, 2) + tools.add(3, 4)", tools(), LIMITS));
    assert_eq!(first, [call(first[0].id, r#"{"b":1,"a":2}"#)]);
    let second = calls(session.resume(vec![(first[0].id, Ok("3".to_owned()))]));
    assert_eq!(second, [call(second[0].id, r#"{"b":3,"a":4}"#)]);
    assert_eq!(value(session.resume(vec![(second[0].id, Ok("7".to_owned()))])), "10");
}

#[test]
fn gathered_calls_come_together_and_are_answered_in_any_order() {
    let mut session = Session::new();
    let program = "import asyncio\nawait asyncio.gather(tools.add(1, 2), tools.add(3, 4))";
    let both = calls(session.run(program, tools(), LIMITS));
    assert_eq!(both.len(), 2);
    assert_eq!(calls(session.resume(vec![(both[1].id, Ok("7".to_owned()))])), []);
    assert_eq!(value(session.resume(vec![(both[0].id, Ok("3".to_owned()))])), "[3,7]");
}

#[test]
fn failed_calls_can_be_caught() {
    let program = "try:\n    r = tools.any()\nexcept PermissionError as error:\n    r = 'refused ' + str(error)\nexcept \
                   ToolError as error:\n    r = str(error)\nr";
    for (reason, expected) in
        [(Reason::Failed, r#""no""#), (Reason::Refused, r#""refused no""#), (Reason::Timeout, r#""no""#)]
    {
        let mut session = Session::new();
        let paused = calls(session.run(program, tools(), LIMITS));
        assert_eq!(value(session.resume(vec![(paused[0].id, Err((reason, "no".to_owned())))])), expected);
    }
}

#[test]
fn failures_of_gathered_calls_are_caught_where_they_are_awaited() {
    let program = "import asyncio\nasync def safe(call):\n    try:\n        return await call\n    except ToolError as error:\n        \
                   return str(error)\nawait asyncio.gather(safe(tools.any()), safe(tools.any()), safe(tools.add(1, 2)))";
    let mut session = Session::new();
    let paused = calls(session.run(program, tools(), LIMITS));
    assert_eq!(paused.len(), 3);
    let results = vec![
        (paused[0].id, Err((Reason::Failed, "a".to_owned()))),
        (paused[1].id, Err((Reason::Refused, "b".to_owned()))),
        (paused[2].id, Ok("3".to_owned())),
    ];
    assert_eq!(value(session.resume(results)), r#"["a","b",3]"#);
    let gathered = "import asyncio\nawait asyncio.gather(*[tools.any() for i in 'ab'])";
    let paused = calls(session.run(gathered, tools(), LIMITS));
    let results = paused.iter().map(|call| (call.id, Err((Reason::Failed, "no".to_owned())))).collect();
    let Step::Failed(failure) = session.resume(results) else { panic!("no failure") };
    let last = &failure.traceback[0];
    assert_eq!((failure.exception.as_str(), last.line, last.column), ("ToolError", 2, 24));
    let paused = calls(session.run("await tools.any()", tools(), LIMITS));
    let Step::Failed(failure) = session.resume(vec![(paused[0].id, Err((Reason::Failed, "no".to_owned())))]) else {
        panic!("no failure")
    };
    assert_eq!(failure.traceback[0].source.as_deref(), Some("await tools.any()"));
}

#[test]
fn variables_stay_for_the_next_program() {
    let mut session = Session::new();
    value(session.run("import math\nx = 2\ndef f(y): return x * y + tools.add(1, 1)", tools(), LIMITS));
    let saved = session.save().expect("an idle session");
    let mut restored = Session::restore(&saved).expect("a saved session");
    for session in [&mut session, &mut restored] {
        let paused = calls(session.run("f(10) + math.floor(0.5)", tools(), LIMITS));
        assert!(session.save().is_err());
        assert_eq!(value(session.resume(vec![(paused[0].id, Ok("2".to_owned()))])), "22");
        assert_eq!(failure(session.run("1 / 0", tools(), LIMITS)).1, "ZeroDivisionError");
        assert_eq!(value(session.run("x", tools(), LIMITS)), "2");
    }
    assert!(Session::restore(&saved[1..]).is_err());
}

#[test]
fn functions_of_earlier_programs_are_known() {
    let mut session = Session::new();
    assert_eq!(session.functions(), None);
    value(session.run("def f(x): return x\nf(1)", tools(), LIMITS));
    assert!(session.functions().is_some_and(|functions| functions.contains(&"f")));
    let restored = Session::restore(&session.save().expect("a saved session")).expect("a session");
    assert!(restored.functions().is_some_and(|functions| functions.contains(&"f")));
}

#[test]
fn misleading_messages_are_explained() {
    for (program, hint) in [
        ("x = [True]\n1 + x[0]", "use `int(x > 1)`"),
        ("x = iter([1])\ny = [i for i in x]\nf = y.append", "pass a lambda"),
        ("x = '%s'\nx % 1", "use an f-string"),
        ("x = {1}\nx <= x", "use `a.issubset(b)`"),
        ("it = (x for x in [1])\nnext(it)", "use a `for` loop"),
        ("raise ValueError('a', 1)", "an exception takes one string"),
        ("from datetime import datetime\nf = '%H:%M'\ndatetime.strptime('10:30', f)", "needs year, month and day"),
        ("from typing import Optional\nT = Optional[int]", "leave the alias"),
        ("bytes([1, 2])", "use `bytes.fromhex"),
        ("import math\nmath.sqrt(2 ** 70)", "beyond 64 bits"),
    ] {
        let (_, _, message) = failure(Session::new().run(program, tools(), LIMITS));
        assert!(message.contains(hint), "{program}: {message}");
    }
}

#[test]
fn limits_end_a_program_and_its_session() {
    let mut session = Session::new();
    let mut step = session.run(
        "while True:\n    try:\n        tools.any()\n    except BaseException:\n        pass",
        tools(),
        LIMITS,
    );
    while let Step::Calls(calls) = step {
        step = session.resume(calls.into_iter().map(|call| (call.id, Ok("1".to_owned()))).collect());
    }
    assert_eq!(failure(step).0, Kind::Limit);
    assert_eq!(failure(session.run("1", tools(), LIMITS)).0, Kind::Misuse);
}

#[test]
fn mistakes_of_the_host_change_nothing() {
    let mut session = Session::new();
    assert_eq!(failure(session.resume(vec![])).0, Kind::Misuse);
    let paused = calls(session.run("tools.any()", tools(), LIMITS));
    for results in [
        vec![],
        vec![(paused[0].id + 1, Ok("1".to_owned()))],
        vec![(paused[0].id, Ok("{".to_owned()))],
        vec![(paused[0].id, Ok("1".to_owned())), (paused[0].id, Ok("1".to_owned()))],
    ] {
        assert_eq!(failure(session.resume(results)).0, Kind::Misuse);
    }
    assert_eq!(failure(session.run("1", tools(), LIMITS)).0, Kind::Misuse);
    assert_eq!(value(session.resume(vec![(paused[0].id, Ok("1".to_owned()))])), "1");
}

#[test]
fn failures_say_where() {
    let mut session = Session::new();
    let step = session.run("import asyncio\nasync def f():\n    return await tools.nope()\nawait f()", tools(), LIMITS);
    let Step::Failed(failure) = step else { panic!("no failure") };
    assert_eq!((failure.kind, failure.exception.as_str()), (Kind::Uncaught, "AttributeError"));
    let last = failure.traceback.last().expect("a traceback");
    assert_eq!((last.line, last.column, last.function.as_deref()), (3, 12, Some("f")));
    assert_eq!(last.source.as_deref(), Some("return await tools.nope()"));
    assert_eq!(self::failure(session.run("def f(:", tools(), LIMITS)).0, Kind::Invalid);
    assert_eq!(self::failure(session.run("def f():\n    yield 1", tools(), LIMITS)).0, Kind::Invalid);
}

#[test]
fn deep_source_is_refused() {
    let mut session = Session::new();
    assert_eq!(failure(session.run(&["1"; 5_000].join("+"), tools(), LIMITS)).0, Kind::Invalid);
    assert_eq!(value(session.run(&["1"; 20].join("+"), tools(), LIMITS)), "20");
}
