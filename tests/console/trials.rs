//! Calls that a person tries by a form: what was shown is what runs, under the same rules, with one record.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use super::pages::HOSTILE;
use super::{Answer, Browser, Console, PATIENCE};
use crate::crib::Crib;

/// Fields of the form of a call on a page, with the values that a browser would send.
fn fields(page: &str) -> Vec<(String, String)> {
    let (_, form) = page.split_once("<form class=\"try\"").unwrap_or_else(|| panic!("no form: {page}"));
    let form = form.split("</form>").next().unwrap();
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        Some(unescaped(rest.split('"').next()?))
    };
    let mut all = Vec::new();
    for part in form.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        let Some(name) = attribute(tag, "name") else {
            if tag.starts_with("option")
                && tag.contains(" selected")
                && let Some((_, value)) = all.last_mut()
            {
                *value = attribute(tag, "value").unwrap();
            }
            continue;
        };
        match tag.split(' ').next().unwrap() {
            "textarea" => all.push((name, unescaped(text.strip_prefix('\n').unwrap()))),
            "input" if tag.contains("type=\"checkbox\"") && !tag.contains(" checked") => {}
            "input" => all.push((name, attribute(tag, "value").unwrap_or_default())),
            // The first option is what a browser sends; of a choice that is required and single, the only one.
            "select" => all.push((name, String::new())),
            _ => {}
        }
    }
    all
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Sends a form with changed fields and a button.
fn press(browser: &Browser<'_>, page: &str, changes: &[(&str, &str)], button: &str) -> Answer {
    let mut all = fields(page);
    for (name, text) in changes {
        all.retain(|(known, _)| known != name);
        all.push(((*name).to_owned(), (*text).to_owned()));
    }
    all.push(("do".to_owned(), button.to_owned()));
    let all: Vec<(&str, &str)> = all.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let origin = format!("origin: http://{}\r\nsec-fetch-site: same-origin\r\n", browser.console.address);
    browser.post("tool/call", &all, &origin)
}

/// Address of the page of a call, below the session.
fn led(browser: &Browser<'_>, answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.header("location").unwrap().strip_prefix(&browser.path).unwrap().to_owned()
}

/// Page of a call once it waits for a click or has ended.
fn settled(browser: &Browser<'_>, address: &str) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let page = browser.page(address);
        if !page.contains("Show its state now") {
            return page;
        }
        assert!(Instant::now() < until, "{page}");
    }
}

/// Presses a button on the page of a call, and returns the next page.
fn click(browser: &Browser<'_>, address: &str, page: &str, button: &str) -> String {
    let field = |name: &str| {
        let (_, rest) =
            page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}: {page}"));
        rest.split('"').next().unwrap().to_owned()
    };
    let (token, id, question) = (field("token"), field("id"), field("question"));
    let origin = format!("origin: http://{}\r\n", browser.console.address);
    let fields = [("token", token.as_str()), ("id", &id), ("question", &question), ("do", button)];
    let answer = browser.post("tool/trial", &fields, &origin);
    assert_eq!(led(browser, &answer), address);
    settled(browser, address)
}

/// Lets the first question of a call go on, with the token of a form and without a look at its page.
fn go(browser: &Browser<'_>, form: &str, address: &str) -> Answer {
    let token = fields(form).into_iter().find(|(name, _)| name == "token").unwrap().1;
    let (_, id) = address.split_once("id=").unwrap();
    let origin = format!("origin: http://{}\r\n", browser.console.address);
    browser.post("tool/trial", &[("token", &token), ("id", id), ("question", "1"), ("do", "go")], &origin)
}

/// Crib with the guest `echo` under a schema.
fn with_schema(schema: &Value) -> Crib {
    let crib = Crib::new();
    let mut tool = crib.entry("echo");
    tool["schema"] = schema.clone();
    crib.manifest(&json!({ "tools": [tool] }));
    crib
}

fn nested() -> Value {
    json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "description": "A name" },
        "n": { "type": "integer", "default": 7, "maximum": 10 },
        "tags": { "type": "array", "items": { "type": "string" } },
        "at": { "type": "object", "properties": { "x": { "type": "number" }, "deep": { "type": "boolean" } } },
        "which": { "oneOf": [{ "type": "string", "title": "a word" }, { "type": "object", "title": "a pair", "required": ["l"],
            "properties": { "l": { "enum": ["one", "two"] } } }] },
    }, "additionalProperties": false })
}

#[test]
fn a_call_by_a_form_runs_as_it_was_shown_and_has_one_record() {
    let crib = with_schema(&nested());
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    assert!(browser.page("tool?name=echo").contains("tool/call?name=echo"));
    let form = browser.page("tool/call?name=echo");
    for part in
        ["A name", "(required)", "value=\"7\"", "Add item", "maximum", "2: a pair", "aria-describedby=\"f.0-about\""]
    {
        assert!(form.contains(part), "{part} in {form}");
    }
    // Each button renders the form anew with what was typed.
    let form = press(&browser, &form, &[("v:f.0", "Ada\r\nB"), ("v:f.3.0", "1.5")], "add:f.2").body;
    let form = press(&browser, &form, &[("v:f.2.0", "first")], "add:f.2").body;
    let form = press(&browser, &form, &[("v:f.2.1", "second")], "remove:f.2:0").body;
    let form = press(&browser, &form, &[("u:f.4", "1")], "show").body;
    let json = press(&browser, &form, &[("v:f.4.u1.0", "1"), ("v:f.3.1", "1")], "json").body;
    let wanted = json!({ "name": "Ada\nB", "n": 7, "tags": ["second"], "at": { "x": 1.5, "deep": false }, "which": { "l": "two" } });
    let text = fields(&json).into_iter().find(|(name, _)| name == "text").unwrap().1;
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wanted);
    let form = press(&browser, &json, &[], "form").body;
    let answer = press(&browser, &form, &[], "preview");
    let address = led(&browser, &answer);
    let page = settled(&browser, &address);
    for part in ["Preview", "Make this call", "no rule asks about it", "second", "<dt>Granted</dt>", "<dt>Limits</dt>"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(crib.records().is_empty(), "nothing has run");
    let done = click(&browser, &address, &page, "go");
    assert!(done.contains("<span class=\"word good\">") && done.contains("Its record in the audit log"), "{done}");
    let records = crib.records();
    assert_eq!((records.len(), &records[0]["outcome"], &records[0]["door"]), (1, &json!("ok"), &json!("console")));
    assert_eq!(records[0]["arguments"]["json"], wanted, "{}", records[0]);
    // The form is filled again with the arguments of the call.
    let (_, id) = address.split_once("id=").unwrap();
    let again = fields(&browser.page(&format!("tool/call?name=echo&from={id}")));
    assert!(again.contains(&("v:f.2.0".to_owned(), "second".to_owned())), "{again:?}");
}

#[test]
fn the_content_of_a_file_can_be_chosen_where_a_schema_wants_it_as_base64() {
    let schema = json!({"type": "object", "properties": {
        "f": {"type": "string", "contentEncoding": "base64"}, "g": {"type": "string", "contentEncoding": "quoted-printable"}}});
    let crib = with_schema(&schema);
    let console = Console::start(&crib, &[]);
    let page = console.browser().page("tool/call?name=echo");
    // Shown by the script alone, and without a name: a browser does not send it.
    assert!(page.contains("<p hidden data-file=\"f.0\"><label>Choose a file <input type=\"file\"></label>"), "{page}");
    assert_eq!(page.matches("type=\"file\"").count(), 1, "{page}");
}

#[test]
fn wrong_arguments_are_shown_at_their_fields() {
    let crib = with_schema(&nested());
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=echo");
    let wrong = press(&browser, &form, &[("v:f.0", "a"), ("v:f.1", "ten")], "preview");
    assert!(wrong.status == 200 && wrong.body.contains("id=\"f.1-problem\""), "{wrong:?}");
    assert!(wrong.body.contains("this is not a number") && wrong.body.contains("value=\"ten\""), "{wrong:?}");
    // The schema is checked by the call itself.
    let answer = press(&browser, &form, &[("v:f.0", "a"), ("v:f.1", "11")], "preview");
    let page = settled(&browser, &led(&browser, &answer));
    assert!(page.contains("id=\"f.1-problem\"") && page.contains("role=\"alert\""), "{page}");
    assert!(page.contains("value=\"11\"") && page.contains("aria-invalid=\"true\""), "{page}");
    assert_eq!(crib.records()[0]["outcome"], "bad-arguments");
}

#[test]
fn a_call_that_nobody_lets_go_on_does_not_run() {
    let crib = with_schema(&nested());
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=echo");
    let address = led(&browser, &press(&browser, &form, &[("v:f.0", "a")], "preview"));
    let page = settled(&browser, &address);
    let ended = click(&browser, &address, &page, "no");
    assert!(ended.contains("cancelled"), "{ended}");
    assert_eq!(crib.records()[0]["outcome"], "cancelled");
    let late = go(&browser, &form, &address);
    assert_eq!(late.status, 404, "{late:?}");
    assert_eq!(crib.records().len(), 1);
    // Each call has a gate of its own.
    for _ in 0..2 {
        let page = settled(&browser, &led(&browser, &press(&browser, &form, &[("v:f.0", "b")], "preview")));
        assert!(page.contains("Make this call"), "{page}");
    }
    assert_eq!(crib.records().len(), 1);
}

#[test]
fn a_fifth_call_ends_the_one_that_has_waited_longest() {
    let crib = with_schema(&nested());
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=echo");
    let begin = || led(&browser, &press(&browser, &form, &[("v:f.0", "a")], "preview"));
    let waits = |address: &str| settled(&browser, address).contains("Make this call");
    let first = begin();
    assert!(waits(&first));
    let others: Vec<String> = (0..4).map(|_| begin()).collect();
    let until = Instant::now() + PATIENCE;
    while waits(&first) {
        assert!(Instant::now() < until, "the first call ends");
    }
    assert!(settled(&browser, &first).contains("cancelled"));
    assert!(others.iter().all(|address| waits(address)));
    assert_eq!(crib.records().len(), 1);
    assert_eq!(crib.records()[0]["outcome"], "cancelled");
}

#[test]
fn the_twelve_latest_calls_are_kept() {
    let crib = with_schema(&nested());
    let console = Console::start(&crib, &["--deny-tool=echo"]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=echo");
    let denied = |_| {
        let address = led(&browser, &press(&browser, &form, &[("v:f.0", "a")], "preview"));
        assert!(settled(&browser, &address).contains("denied"));
        address
    };
    let all: Vec<String> = (0..13).map(denied).collect();
    assert_eq!(browser.get(&all[0]).status, 404);
    assert!(all[1..].iter().all(|address| browser.get(address).status == 200));
}

#[test]
fn a_call_that_was_prepared_under_other_permissions_does_not_go_on() {
    let crib = with_schema(&nested());
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=echo");
    let address = led(&browser, &press(&browser, &form, &[("v:f.0", "a")], "preview"));
    assert!(settled(&browser, &address).contains("Make this call"));
    // Another process gives trust, or takes it back.
    let file = crib.path("home/.local/state/toolcrib/trusted.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, json!({ "trusted": [] }).to_string()).unwrap();
    let refused = go(&browser, &form, &address);
    assert!(refused.status == 409 && refused.body.contains("permissions have changed"), "{refused:?}");
    assert!(settled(&browser, &address).contains("cancelled"));
    assert_eq!(crib.records()[0]["outcome"], "cancelled");
}

#[test]
fn rules_deny_and_ask_as_they_do_elsewhere() {
    let crib = Crib::with_guests(&["echo", "file_io"]);
    let console = Console::start(&crib, &["--ask-tool=echo", "--deny-tool=file_io"]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=file_io");
    let denied = press(&browser, &form, &[], "preview");
    let page = settled(&browser, &led(&browser, &denied));
    assert!(page.contains("--deny-tool") && !page.contains("Make this call") && !page.contains("Allow once"), "{page}");
    assert_eq!(crib.records()[0]["outcome"], "denied");
    let form = browser.page("tool/call?name=echo");
    let address =
        led(&browser, &press(&browser, &press(&browser, &form, &[], "json").body, &[("text", "{\"n\":1}")], "preview"));
    let page = settled(&browser, &address);
    for part in ["Allow once and call", "ask echo (--ask-tool)", "<dt>Arguments</dt>"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let done = click(&browser, &address, &page, "go");
    assert!(done.contains("<span class=\"word good\">"), "{done}");
    let decision = &crib.records()[1]["decision"];
    assert_eq!((&decision["behavior"], &decision["reason"]), (&json!("allow"), &json!("once")), "{decision}");
    let address = led(&browser, &press(&browser, &form, &[], "preview"));
    let page = settled(&browser, &address);
    click(&browser, &address, &page, "no");
    assert_eq!(crib.records()[2]["decision"]["reason"], "refused");
}

#[test]
fn a_denied_capability_is_shown_with_its_flag() {
    let crib = Crib::with_guests(&["file_io"]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let json = press(&browser, &browser.page("tool/call?name=file_io"), &[], "json").body;
    let address =
        led(&browser, &press(&browser, &json, &[("text", r#"{"op":"read","path":"secret.txt"}"#)], "preview"));
    let page = settled(&browser, &address);
    let done = click(&browser, &address, &page, "go");
    assert!(done.contains("<dt>Denied</dt>") && done.contains("--allow-read="), "{done}");
}

#[test]
fn a_picture_of_the_chart_tool_is_an_image_in_which_nothing_runs() {
    let crib = Crib::new();
    let console = Console::start(&crib, &["--tools=builtin"]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=chart");
    let json = press(&browser, &form, &[], "json").body;
    let arguments = json!({ "title": HOSTILE, "labels": ["a", "b"], "series": [{ "name": "s", "values": [1, 3] }] });
    let form = press(&browser, &json, &[("text", &arguments.to_string())], "form").body;
    assert!(form.contains("Remove item 2"), "{form}");
    let address = led(&browser, &press(&browser, &form, &[], "preview"));
    let page = settled(&browser, &address);
    let done = click(&browser, &address, &page, "go");
    for part in ["<img src=\"data:image/svg+xml;base64,", "alt=\"chart.svg", "mean"] {
        assert!(done.contains(part), "{part} in {done}");
    }
    let [page, done] = [page, done].map(|page| super::live::without_own_script(&page));
    for part in ["<script", "<svg", "\u{202e}", "\u{1b}"] {
        assert!(!page.contains(part) && !done.contains(part), "{part:?} in {done}");
    }
}

#[test]
fn hostile_schemas_and_results_are_inert() {
    let text = json!({ "type": "string", "title": HOSTILE, "description": HOSTILE, "default": HOSTILE });
    let crib = with_schema(&json!({ "type": "object", "properties": {
        HOSTILE: text, "e": { "enum": [HOSTILE, "b"], "default": HOSTILE }, "c": { "const": HOSTILE },
        "u": { "anyOf": [{ "title": HOSTILE, "type": "string" }, { "const": HOSTILE }] },
        "o": { "type": "object", "title": HOSTILE, "properties": { HOSTILE: { "type": "boolean", "description": HOSTILE } } },
        "m": { "type": "object", "additionalProperties": { "type": "string", "default": HOSTILE } },
    } }));
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=echo");
    let inert = |page: &str| {
        let page = super::live::without_own_script(page);
        for part in ["<script", "<svg", "onload=x>", "\u{202e}", "\u{1b}", "\u{200b}"] {
            assert!(!page.contains(part), "{part:?} in {page}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    };
    inert(&form);
    let address = led(&browser, &press(&browser, &form, &[("v:f.1", "0")], "preview"));
    let page = settled(&browser, &address);
    inert(&page);
    inert(&click(&browser, &address, &page, "go"));
    // A message about a wrong value may have text of the schema.
    let json = press(&browser, &form, &[], "json").body;
    let wrong = press(&browser, &json, &[("text", &json!({ "c": HOSTILE.to_owned() + "x" }).to_string())], "preview");
    // What a person typed stays as it is in its field.
    inert(settled(&browser, &led(&browser, &wrong)).split("<textarea").next().unwrap());
}

#[test]
fn forms_are_bounded_and_only_for_those_who_decide() {
    let crib = with_schema(&nested());
    let console = Console::start(&crib, &["--share-read"]);
    let (decides, looks) = (console.browser(), console.open(&console.tokens[1]));
    for page in ["tool/call?name=echo", "tool/trial?id=x"] {
        assert_eq!(looks.get(page).status, 403, "{page}");
    }
    assert!(!looks.page("tool?name=echo").contains("tool/call"));
    let form = decides.page("tool/call?name=echo");
    let own = format!("origin: http://{}\r\n", console.address);
    let token = fields(&form).into_iter().find(|(name, _)| name == "token").unwrap().1;
    let sent = [("token", token.as_str()), ("name", "echo"), ("do", "preview")];
    assert_eq!(looks.post("tool/call", &sent, &own).status, 403);
    assert_eq!(decides.post("tool/call", &sent, "").status, 403, "no origin");
    assert_eq!(decides.post("tool/call", &sent[1..], &own).status, 403, "no token");
    let large = "x".repeat(900_000);
    assert_eq!(press(&decides, &form, &[("v:f.0", &large)], "show").status, 200);
    let larger = "x".repeat(2 << 20);
    assert!([0, 413].contains(&press(&decides, &form, &[("v:f.0", &larger)], "show").status));
    let many = press(&decides, &form, &[("n:f.2", "999999999")], "show");
    assert!(many.status == 200 && many.body.matches("Remove item").count() == 100, "{}", many.body.len());
    // A form of another schema begins anew.
    let stale = press(&decides, &form, &[("schema", "sha256:00"), ("v:f.0", "typed")], "preview");
    assert!(stale.status == 200 && stale.body.contains("The tool has changed since this form was shown"), "{stale:?}");
    assert!(crib.records().is_empty());
}

#[test]
fn a_running_call_lets_pages_be_shown_and_can_be_stopped() {
    let crib = Crib::with_guests(&["sleep"]);
    let console = Console::start(&crib, &["--set=limits.max_timeout=1h"]);
    let browser = console.browser();
    let address = led(&browser, &press(&browser, &browser.page("tool/call?name=sleep"), &[], "preview"));
    let page = settled(&browser, &address);
    let field = |name: &str| {
        let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let own = format!("origin: http://{}\r\n", console.address);
    let (token, id, question) = (field("token"), field("id"), field("question"));
    let with = |button: &str| {
        let fields = [("token", token.as_str()), ("id", &id), ("question", &question), ("do", button)];
        assert_eq!(browser.post("tool/trial", &fields, &own).status, 303);
    };
    with("go");
    assert!(browser.page("runs").contains("<h1>Runs</h1>"));
    with("stop");
    assert!(settled(&browser, &address).contains("cancelled"));
    assert_eq!(crib.records()[0]["outcome"], "cancelled");
}

#[cfg(unix)]
#[test]
fn the_end_of_the_console_ends_its_calls_with_their_records() {
    use rustix::process::{Pid, Signal, kill_process};

    let crib = Crib::with_guests(&["echo", "sleep"]);
    let console = Console::start(&crib, &["--set=limits.max_timeout=1h", "--ask-tool=sleep"]);
    let browser = console.browser();
    for name in ["echo", "sleep"] {
        let form = browser.page(&format!("tool/call?name={name}"));
        settled(&browser, &led(&browser, &press(&browser, &form, &[], "preview")));
    }
    kill_process(Pid::from_child(&console.child), Signal::INT).unwrap();
    assert_eq!(console.end().code(), Some(130));
    let outcomes: Vec<Value> = crib.records().into_iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!("cancelled"), json!("cancelled")]);
}

#[test]
fn text_of_a_tool_that_takes_text_is_sent_as_it_is() {
    let crib = Crib::new();
    fs::create_dir_all(crib.path("work")).unwrap();
    let console = Console::start(&crib, &["--tools=builtin", "--allow-write=work"]);
    let browser = console.browser();
    let form = browser.page("tool/call?name=apply_patch");
    let patch = "*** Begin Patch\r\n*** Add File: new.txt\r\n+hello\r\n*** End Patch\r\n";
    let address = led(&browser, &press(&browser, &form, &[("text", patch)], "preview"));
    let page = settled(&browser, &address);
    assert!(!crib.path("work/new.txt").exists(), "a preview changes nothing");
    click(&browser, &address, &page, "go");
    assert_eq!(fs::read_to_string(crib.path("work/new.txt")).unwrap(), "hello\n");
}
