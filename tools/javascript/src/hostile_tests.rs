//! Tests of programs that mean harm, on the host: every limit has a program that exceeds it, and what the session needs cannot be
//! replaced by a program.

use super::tests::{LIMITS, answered, calls, evaluated, failed, run, session, shown, value};
use super::{Limits, Step};
use crate::calls::Reason;
use crate::failure::Kind;
use code_guest::testing::tools;

const MEMORY: Limits = Limits { memory: Some(4 << 20), ..LIMITS };

/// Runs a program that reaches a limit: its session is over. Returns the message.
fn limited(source: &str, limits: Limits) -> String {
    let mut session = session();
    let failure = failed(session.run(source, tools(), limits));
    assert_eq!(failure.kind, Kind::Limit, "{source}: {failure:?}");
    assert_eq!(failed(run(&mut session, "1")).kind, Kind::Misuse, "{source}");
    failure.message
}

#[test]
fn deep_recursion_ends() {
    for source in [
        "function f(n) { return f(n + 1) } f(0)",
        "function f(n) { try { return f(n + 1) } catch (e) { return 1 } finally { f() } } f(0)",
        "function f(n) { return [1].map(() => f(n + 1)) } f(0)",
        "const a = { get b() { return this.b } }; a.b",
        "const a = new Proxy({}, { get: (t, k, r) => r[k] }); a.b",
        "class A { constructor() { new A() } } new A()",
        "function* f() { yield* f() } [...f()]",
        "const f = () => [2, 1].sort(f); f()",
        "const f = () => 'a'.replace(/a/, f); f()",
        "const a = { toJSON() { return JSON.stringify(a) } }; JSON.stringify(a)",
    ] {
        let message = limited(source, LIMITS);
        assert_eq!(message, "Maximum call stack size exceeded", "{source}");
    }
    assert_eq!(evaluated("const f = n => n ? 1 + f(n - 1) : 0; f(80)"), "80");
    limited("async function f() { await f() } await f()", LIMITS);
    // The engine drops this error, and the function never ends.
    let failure = failed(run(&mut session(), "await null; const f = n => f(n + 1); f(0)"));
    assert!(failure.message.contains("too deeply"), "{failure:?}");
}

#[test]
fn memory_ends() {
    // A loop without a call, a job or one of these functions ends with the memory of its instance.
    for source in [
        "const a = []; const f = () => { a.push('x'.repeat(1e6) + a.length); f.call() }; for (;;) try { f() } catch (e) {}",
        "'x'.repeat(2 ** 30)",
        "'é'.padEnd(2 ** 30)",
        "new Array(2 ** 32 - 1).fill(0)",
        "Array(1e9).join()",
        "const f = async () => { for (;;) { await null; g.push(new Array(1000).fill(1)) } }; const g = []; await f()",
    ] {
        let message = limited(source, MEMORY);
        assert!(message.contains("memory"), "{source}: {message}");
    }
    let mut session = session();
    let step = session.run("try { new ArrayBuffer(2 ** 30) } catch (e) { r = e.name } r", tools(), MEMORY);
    assert_eq!(value(step), r#""RangeError""#);
}

#[test]
fn garbage_is_no_memory() {
    let source = "let n = 0; const big = Array.from({ length: 20000 }, (_, i) => i); \
                  for (let i = 0; i < 40; i++) n += big.map(x => x + 1).length; n";
    assert_eq!(value(session().run(source, tools(), MEMORY)), "800000");
    let source = "let n = 0; for (let i = 0; i < 40; i++) n += JSON.parse('[' + '1,'.repeat(50000) + '1]').length; n";
    assert_eq!(value(session().run(source, tools(), MEMORY)), "2000040");
}

#[test]
fn calls_end() {
    let source = "for (;;) try { await tools.any() } catch (e) {}";
    let mut session = session();
    let mut step = run(&mut session, source);
    let mut made = 0;
    while let Step::Calls(calls) = step {
        made += calls.len();
        let no = calls.into_iter().map(|call| (call.id, Err((Reason::Failed, "no".to_owned()))));
        step = session.resume(no.collect());
    }
    assert_eq!((made, failed(step).kind), (10, Kind::Limit));
    assert_eq!(failed(run(&mut session, "1")).kind, Kind::Misuse);
    let message =
        limited("await Promise.all(Array.from({ length: 100000 }, () => tools.any().catch(() => 1)))", LIMITS);
    assert_eq!(message, "the program made more than 10 tool calls");
    let many = Limits { calls: 100_000, ..LIMITS };
    let mut session = self::session();
    let step =
        session.run("(await Promise.all(Array.from({ length: 100000 }, () => tools.any()))).length", tools(), many);
    let paused = calls(step);
    assert_eq!(paused.len(), 100_000);
    let results = paused.into_iter().map(|call| (call.id, Ok("1".to_owned()))).collect();
    assert_eq!(value(session.resume(results)), "100000");
}

#[test]
fn deep_values_are_no_json() {
    let deep = |levels: usize| format!("let a = 1; for (let i = 0; i < {levels}; i++) a = [a]; a");
    assert_eq!(evaluated(&deep(128)), format!("{}1{}", "[".repeat(128), "]".repeat(128)));
    for levels in [129, 100_000] {
        assert_eq!(shown(run(&mut session(), &deep(levels))), r#""[ [ [ [ [ [ [Array] ] ] ] ] ] ]""#);
    }
    let source = "let a = {}; for (let i = 0; i < 1000; i++) a = { a }; try { await tools.any(a) } catch (e) { r = e.message } r";
    assert!(evaluated(source).contains("more than 128 deep"));
    let source = "try { JSON.parse('['.repeat(100000)) } catch (e) { r = e.name } r";
    assert_eq!(evaluated(source), r#""SyntaxError""#);
    assert_eq!(evaluated("JSON.parse('{\"a\":1,\"a\":2}', (k, v) => v).a + JSON.parse('{\"a\":1,\"a\":2}').a"), "4");
}

#[test]
fn deep_source_is_refused() {
    for source in
        ["(".repeat(100_000), "[".repeat(100_000), vec!["1"; 5_000].join("+"), "a.".repeat(5_000), "!".repeat(5_000)]
    {
        assert_eq!(failed(run(&mut session(), &source)).kind, Kind::Invalid);
        let source = format!("try {{ eval('{source}') }} catch (e) {{ r = e.name }} r");
        assert_eq!(evaluated(&source), r#""SyntaxError""#);
    }
    assert_eq!(evaluated(&["1"; 100].join("+")), "100");
    assert_eq!(evaluated("new Function('a', 'return a + 1')(1) + eval('1 + 1')"), "4");
}

#[test]
fn what_the_session_needs_cannot_be_replaced() {
    let vandal = "const O = Object, A = Array; Object.prototype.toJSON = () => 'no'; Object.prototype.x = 1; Array.prototype[Symbol.iterator] = null; \
                  JSON.parse = JSON.stringify = Object.keys = () => { throw 1 }; Promise.prototype.then = () => 1; \
                  globalThis.Promise = globalThis.JSON = globalThis.Object = globalThis.ToolError = 5; \
                  tools.add = tools.x = 1; globalThis.tools = 3; O.prototype.get = O.prototype.set = () => 1; \
                  Function.prototype.call = null; Error.prototype.stack = 1; globalThis.$declare = 1; delete Array.prototype.map; 1";
    let mut session = session();
    assert_eq!(value(run(&mut session, vandal)), "1");
    assert_eq!(value(run(&mut session, "delete Reflect.getPrototypeOf({}).toJSON; 1")), "1");
    let step = run(&mut session, "[await tools.add({ a: 1, b: 2 }), { y: 2 }]");
    let step = answered(&mut session, step, |call| Ok(call.arguments.clone()));
    assert_eq!(value(step), r#"[{"a":1,"b":2},{"y":2}]"#);
    let step = run(&mut session, "await tools.add({ a: 1, b: 2 })");
    let failure = failed(answered(&mut session, step, |_| Err((Reason::Failed, "no".to_owned()))));
    assert_eq!((failure.exception.as_str(), failure.message.as_str()), ("ToolError", "no"));
    let step = run(&mut session, "O.freeze(globalThis); 1");
    assert_eq!(value(step), "1");
    assert_eq!(failed(run(&mut session, "1")).kind, Kind::Uncaught, "the session of such a program is of no use");
}

#[test]
fn errors_can_be_forged_only_as_labels() {
    let mut session = session();
    for source in [
        "throw new ToolError('x', 'limit')",
        "throw Object.assign(new Error('Maximum call stack size exceeded'), { name: 'RangeError' })",
        "throw new Error('a\\n    at f (program-1:1:1)')",
        "throw Object.create(Error.prototype, { message: { get() { throw 1 } } })",
        "throw Object.defineProperty(new Error('x'), 'name', { get() { for (;;); } })",
        "throw new Proxy({}, { get() { throw 1 }, ownKeys() { throw 1 } })",
        "throw null",
        "let e = new Error('x'); e.__proto__ = null; throw e",
        "throw { toString() { throw 1 }, toJSON() { throw 1 } }",
    ] {
        let failure = failed(run(&mut session, source));
        assert_eq!(failure.kind, Kind::Uncaught, "{source}: {failure:?}");
    }
    assert_eq!(shown(run(&mut session, "new Proxy({}, { ownKeys() { throw 1 } })")), r#""[object]""#);
    assert_eq!(shown(run(&mut session, "({ toJSON() { throw 1 } })")), r#""{ toJSON: [Function: toJSON] }""#);
    assert_eq!(value(run(&mut session, "1")), "1");
}

#[test]
fn the_function_of_a_program_cannot_be_left() {
    for source in ["}); (async () => {", "})(); 1; (function () {", "*/", "`", "`${", "//\u{2028}})", "/*", "'"] {
        let step = run(&mut session(), source);
        assert!(matches!(&step, Step::Failed(failure) if failure.kind == Kind::Invalid), "{source}: {step:?}");
    }
    assert_eq!(evaluated("1 //"), "1");
    assert_eq!(evaluated("this === globalThis"), "true");
    assert_eq!(
        evaluated("typeof require + typeof process + typeof fetch + typeof setTimeout + typeof Deno"),
        r#""undefinedundefinedundefinedundefinedundefined""#
    );
    assert!(failed(run(&mut session(), "await import('fs')")).kind == Kind::Uncaught);
}

#[test]
fn calls_of_values_that_are_written_do_no_harm() {
    let mut session = session();
    let source = "({ toJSON() { tools.any(); Promise.resolve().then(() => tools.any()); return 1 } })";
    assert_eq!(value(run(&mut session, source)), "1");
    assert_eq!(value(run(&mut session, "2")), "2");
    let paused = calls(run(&mut session, "await tools.any({ get a() { tools.any({ b: 1 }); return 1 } })"));
    let arguments: Vec<_> = paused.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, [r#"{"b":1}"#, r#"{"a":1}"#]);
}
