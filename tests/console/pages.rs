//! Pages: hostile texts are inert in every field, long ones are cut, lists have filters and pages, and a log that was changed is
//! shown where it is.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use super::{Browser, Console, plain};
use crate::crib::Crib;
use crate::screen::Page;

/// Text that would be a script, another element, another direction, or an end of an attribute.
pub(super) const HOSTILE: &str = "<script>alert(1)</script><svg onload=x>\"'>&amp;\u{202e}\u{1b}[2J\u{200b}";

/// Asserts that a page shows hostile texts, and all of them inert.
pub(super) fn assert_inert(page: &str) {
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&lt;svg onload=x&gt;"), "{page}");
    let page = super::live::without_own_script(page);
    for part in ["<script", "<svg onload", "onload=x>", "\u{202e}", "\u{1b}", "\u{200b}"] {
        assert!(!page.contains(part), "{part:?} in {page}");
    }
    assert!(page.contains("\\u{202e}"), "a change of direction is visible: {page}");
}

/// Writes a kept run with these lines after its header.
pub(super) fn keep(crib: &Crib, id: &str, model: &str, lines: &[Value]) {
    let folder = crib.path("home/.local/state/toolcrib/runs");
    fs::create_dir_all(&folder).unwrap();
    let header = json!({ "type": "run", "version": 1, "id": id, "created": "2026-01-31T12:00:00Z", "door": "run",
        "model": model, "folder": model });
    let text: String = [&[header], lines].concat().iter().map(|line| format!("{line}\n")).collect();
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(folder.join(format!("{id}.ndjson"))).unwrap().write_all(text.as_bytes()).unwrap();
}

pub(super) fn message(message: Value) -> Value {
    json!({ "type": "message", "message": message })
}

/// Address of the first run in the list.
pub(super) fn first_run(browser: &Browser<'_>) -> String {
    let page = browser.page("runs");
    let (_, rest) = page.split_once(&format!("{}runs/", browser.path)).unwrap_or_else(|| panic!("{page}"));
    format!("runs/{}", rest.split('"').next().unwrap())
}

#[test]
fn a_run_with_hostile_texts_is_inert() {
    let crib = Crib::new();
    let call = json!({ "id": HOSTILE, "type": "function", "function": { "name": HOSTILE, "arguments": HOSTILE } });
    let lines = [
        message(json!({ "role": "system", "content": HOSTILE })),
        message(json!({ "role": "user", "content": HOSTILE })),
        message(json!({ "role": "assistant", "content": HOSTILE, "tool_calls": [call] })),
        json!({ "type": "calls", "ids": [HOSTILE] }),
        json!({ "type": "message", "message": { "role": "tool", "content": HOSTILE, "tool_call_id": HOSTILE },
            "change": HOSTILE }),
        message(json!({ "role": "assistant", "content": HOSTILE })),
        json!({ "type": "end", "at": "2026-01-31T12:00:00Z", "reason": HOSTILE, "steps": 2, "calls": 1 }),
    ];
    keep(&crib, "7k3md-x0q9a", HOSTILE, &lines);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    assert_inert(&browser.page("runs"));
    let page = browser.page("runs/7k3md-x0q9a");
    assert_inert(&page);
    assert!(page.matches("&lt;svg onload=x&gt;").count() >= 9, "in every field: {page}");
    let query: String = url::form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    for page in ["runs", "calls", "tools"] {
        assert_inert(&browser.page(&format!("{page}?q={query}&state={query}&folder={query}&outcome={query}")));
    }
    assert!(browser.page(&format!("calls?tool={query}&day={query}")).contains("role=\"alert\""));
    assert_eq!(browser.get("runs/x").status, 404);
    assert_eq!(browser.get("runs/00000-00000").status, 404);
}

#[test]
fn waiting_calls_and_tools_with_hostile_texts_are_inert() {
    let crib = Crib::with_guests(&["echo"]);
    super::decisions::prepare(&crib);
    crib.manifest(&json!({ "tools": [{
        "name": "t", "description": HOSTILE, "command": ["./tools/bin/echo"],
        "schema": { "type": "object", "required": [HOSTILE], "properties": {
            HOSTILE: { "type": "string", "description": HOSTILE, "default": HOSTILE, "enum": [HOSTILE] } } },
    }] }));
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.page("decisions");
    assert_inert(&page);
    for field in ["tool", "client", "arguments", "preview", "restsOn", "reason", "source", "fixed", "properties"] {
        assert!(page.contains(field), "{field} in {page}");
    }
    assert_inert(&browser.page("tools"));
    let tool = browser.page("tool?name=t");
    assert_inert(&tool);
    for part in ["required", "one of ", "default", "<dt>Granted</dt>", "<dt>Trust</dt>", "<dt>Limits</dt>"] {
        assert!(tool.contains(part), "{part} in {tool}");
    }
    assert_eq!(browser.get("tool?name=u").status, 404);
}

#[test]
fn logged_calls_are_filtered_and_show_denials_with_their_flags() {
    let crib = Crib::with_guests(&["echo", "file_io"]);
    crib.call("echo", &json!({ "text": HOSTILE }), &[]);
    crib.call("file_io", &json!({ "op": "read", "path": "secret.txt" }), &[]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.page("calls");
    assert_inert(&page);
    assert!(page.find(">file_io<") < page.find(">echo<"), "newest first: {page}");
    let only = |query: &str| browser.page(&format!("calls?{query}"));
    assert!(only("tool=ec*").contains(">echo<") && !only("tool=ec*").contains(">file_io<"));
    assert!(only("q=SECRET.TXT").contains(">file_io<") && !only("q=SECRET.TXT").contains(">echo<"));
    assert!(only("day=2026-01-01").contains("No call matches") && only("day=today").contains(">echo<"));
    let (_, rows) = page.split_once("<tbody").unwrap();
    let (_, rest) = rows.split_once(&format!("{}calls/", browser.path)).unwrap();
    let record = browser.page(&format!("calls/{}", rest.split('"').next().unwrap()));
    for part in ["--allow-read=", "secret.txt", "<dt>Decision</dt>", "<dt>Chain</dt>"] {
        assert!(record.contains(part), "{part} in {record}");
    }
    for nowhere in ["calls/20260101/1", "calls/x/y", "calls/..%2f..%2fx/1"] {
        assert_eq!(browser.get(nowhere).status, 404, "{nowhere}");
    }
}

#[test]
fn a_log_that_was_changed_is_shown_where_it_was() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    for at in 0..4 {
        crib.call("echo", &json!({ "n": at }), &[]);
    }
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let sound = browser.page("verify");
    page.text("a sound log", plain(&sound));
    let file = crib.logs().remove(0);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("{\"n\":1}", "{\"n\":7}", 1)).unwrap();
    let changed = browser.page("verify");
    page.text("a changed record", plain(&changed));
    assert!(changed.contains("<li aria-current=\"true\"><span class=\"quiet\">line 2: "), "{changed}");
    let without: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| line).collect();
    fs::write(&file, without.join("\n") + "\n").unwrap();
    let removed = browser.page("verify");
    page.text("without a record", plain(&removed));
    fs::write(&file, text.replacen("{\"n\":1}", "{\"n\":", 1)).unwrap();
    let calls = browser.page("calls");
    assert!(calls.contains("1 line of the log cannot be read") && calls.contains("Verify the log"), "{calls}");
    // A log that would take too long is not begun.
    fs::File::create(crib.path("audit/20260101.log")).unwrap().set_len(1 << 30).unwrap();
    let large = browser.page("verify");
    page.text("a large log", plain(&large));
    page.matches("console/changed-log");
}

#[test]
fn long_texts_are_cut_and_long_lists_have_pages() {
    let crib = Crib::new();
    let long = "y".repeat(1 << 20);
    let call = json!({ "id": "a", "type": "function", "function": { "name": long, "arguments": long } });
    let lines = [
        message(json!({ "role": "user", "content": long })),
        message(json!({ "role": "assistant", "content": long, "tool_calls": [call] })),
    ];
    keep(&crib, "7k3md-x0q9a", "m", &lines);
    for at in 0..60 {
        let lines = [message(json!({ "role": "user", "content": format!("prompt number {at}") }))];
        keep(&crib, &format!("00000-000{at:02}"), "m", &lines);
    }
    let many: Vec<Value> =
        (0..1_000).map(|at| message(json!({ "role": "user", "content": format!("word {at};") }))).collect();
    keep(&crib, "zzzzz-zzzzz", "m", &many);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.page("runs/7k3md-x0q9a");
    assert!(page.len() < 40_000 && page.contains("1044576 more characters"), "{}", page.len());
    let pages = [browser.page("runs"), browser.page("runs?page=2"), browser.page("runs?page=3")];
    let rows = pages.each_ref().map(|page| page.matches("<tr role=\"row\">").count());
    assert_eq!(rows, [51, 13, 0], "62 runs, with a row of headings a page");
    assert!(pages[0].contains("?page=2") && pages[0].len() < 60_000, "{}", pages[0].len());
    let found = browser.page("runs?q=NUMBER+59&state=killed");
    assert!(found.contains("prompt number 59") && found.matches("<tr role=\"row\">").count() == 2, "{found}");
    assert!(browser.page("runs?state=answer").contains("No run matches"));
    let first = |query: &str| {
        let page = browser.page(&format!("runs?q=prompt+number&{query}"));
        page.split("prompt number ").nth(1).unwrap_or_else(|| panic!("{page}")).split('<').next().unwrap().to_owned()
    };
    assert_eq!([first("sort=prompt"), first("sort=prompt&order=down")], ["0", "9"]);
    assert_eq!(first("sort=prompt&page=2"), "54", "every run is sorted, and not the page alone");
    let talk = browser.page("runs/zzzzz-zzzzz");
    assert!(talk.contains("word 99;") && !talk.contains("word 100;") && talk.contains("?from=100"), "{}", talk.len());
    let later = browser.page("runs/zzzzz-zzzzz?from=900");
    assert!(later.contains("word 999;") && !later.contains("Later messages"), "{}", later.len());
    assert!(browser.page("runs/zzzzz-zzzzz?from=99999").contains("Conversation"));
}

#[test]
fn pages_without_anything_say_how_to_begin() {
    let page = Page::new();
    let crib = Crib::new();
    fs::remove_dir_all(crib.path("audit")).unwrap();
    let console = Console::start(&crib, &["--tools=missing.json"]);
    let browser = console.browser();
    for path in ["", "calls", "figures", "verify", "decisions"] {
        page.text(&format!("/{path}"), plain(&browser.page(path)));
    }
    let tools = browser.get("tools");
    assert_eq!(tools.status, 409, "{tools:?}");
    page.text("/tools", plain(&tools.body));
    assert!(!crib.path("audit").exists(), "looking creates nothing");
    page.matches("console/empty");
}

#[test]
fn pages_name_their_parts_for_screen_readers() {
    let crib = Crib::new();
    keep(&crib, "7k3md-x0q9a", "m", &[message(json!({ "role": "user", "content": "go" }))]);
    let console = Console::start(&crib, &["--tools=builtin"]);
    let browser = console.browser();
    let run = first_run(&browser);
    for page in ["runs", "calls", "figures", "verify", "tools", "decisions", "tool?name=fs_read_file", &run] {
        let text = browser.page(page);
        for part in [
            "<html lang=\"en\">",
            "<a class=\"skip\" href=\"#main\">",
            "<main id=\"main\"",
            "<nav aria-label=",
            "<title>",
        ] {
            assert!(text.contains(part), "{page}: {part} in {text}");
        }
        assert_eq!(text.matches("<h1").count(), 1, "{page}: {text}");
        assert_eq!(text.matches("<table").count(), text.matches("<caption>").count(), "{page}: {text}");
        assert!(text.contains("aria-current=\"page\""), "{page}: {text}");
        assert!(!text.contains(" style=") && !text.contains(" onclick"), "{page}: {text}");
    }
    let style = console.get("/style.css", "");
    assert!(style.body.len() < 20_000 && style.header("content-type").is_some_and(|it| it.starts_with("text/css")));
}

#[test]
fn calls_that_tools_made_are_shown_with_the_call_of_the_model() {
    let crib = Crib::new();
    fs::copy(crate::crib::guest("rich"), crib.path("rich.wasm")).unwrap();
    let arguments = json!({"name": "echo", "arguments": {"value": "inner"}, "times": 2});
    let turns = json!([{"tool_calls": [{"name": "calls", "arguments": arguments}]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let flags = ["--tools", "rich.wasm", "--allow-call=echo"];
    let ran = crib.run(&[&["run", "--script", "script.json"][..], &flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(crib.records().len(), 3);
    let console = Console::start(&crib, &flags);
    let browser = console.browser();
    let page = browser.page(&first_run(&browser));
    assert_eq!(page.matches("made by a tool").count(), 2, "in the time line: {page}");
    let (_, about) = page.split_once("It called").unwrap_or_else(|| panic!("{page}"));
    let about = about.split("</dd>").next().unwrap();
    assert_eq!(about.matches(">record<").count(), 2, "{about}");
    let address = about.split("href=\"").nth(1).unwrap().split('"').next().unwrap();
    let record = browser.page(address.strip_prefix(&browser.path).unwrap());
    for part in ["Call of <bdi>echo</bdi>", "inner", "<dt>Limits</dt>", "of the tool with this name now"] {
        assert!(record.contains(part), "{part} in {record}");
    }
}

#[test]
fn what_calls_showed_is_kept_with_the_run_and_shown() {
    let crib = Crib::new();
    fs::copy(crate::crib::guest("rich"), crib.path("rich.wasm")).unwrap();
    let calls = ["stream", "picture"].map(|name| json!({"name": name, "arguments": {}}));
    let flood = json!({"name": "flood", "arguments": {"count": 60}});
    let turns = json!([{"tool_calls": calls}, {"tool_calls": [flood]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let flags = ["--tools", "rich.wasm"];
    let ran = crib.run(&[&["run", "--script", "script.json", "--set=records.redact=two"][..], &flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let console = Console::start(&crib, &flags);
    let browser = console.browser();
    let page = browser.page(&first_run(&browser));
    let shown = page.split("<h5>Shown to the user</h5>").skip(1);
    let shown: Vec<&str> = shown.map(|part| part.split("<h5>Result</h5>").next().unwrap()).collect();
    assert_eq!(shown.len(), 3, "{page}");
    assert!(shown[0].contains("one") && shown[0].contains("three") && !shown[0].contains("two"), "{}", shown[0]);
    assert!(shown[1].contains("<img src=\"data:image/png;base64,") && shown[1].contains("dot.png"), "{}", shown[1]);
    assert!(shown[2].contains("49") && shown[2].contains("and 10 more parts"), "{}", shown[2]);
    // The model gets none of it.
    let exported = crib.run(&["runs", "list", "--json"]);
    let runs: Value = serde_json::from_str(&exported.stdout).unwrap();
    let exported = crib.run(&["runs", "export", runs[0]["id"].as_str().unwrap()]);
    assert!(!exported.stdout.contains("three") && !exported.stdout.contains("base64"), "{exported:?}");
}
