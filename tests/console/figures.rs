//! Figures, the order of calls, and the time line of a run: figures of prepared logs, within limits, and inert.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Console;
use super::pages::{HOSTILE, assert_inert, keep, message};
use crate::crib::Crib;

/// Writes a log of today with these records. Only their own fields matter to the pages.
pub(super) fn log(crib: &Crib, records: &[Value]) {
    let today = Timestamp::now().strftime("%Y%m%d").to_string();
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    fs::create_dir_all(crib.path("audit")).unwrap();
    fs::write(crib.path(format!("audit/{today}.log")), text).unwrap();
}

/// Identifier of the run of the records.
const RUN: &str = "7k3md-x0q9a";

/// A record of a call that has just ended.
pub(super) fn record(tool: &str, outcome: &str, ms: f64, memory: u64) -> Value {
    json!({ "ts": Timestamp::now().to_string(), "tool": tool, "outcome": outcome, "ms": ms, "cpuMs": ms / 2.0,
        "peakMemoryBytes": memory, "callId": tool, "door": "run", "run": RUN, "granted": [], "denied": [] })
}

/// Text of markup.
fn text(markup: &str) -> String {
    let texts = markup.split('<').filter_map(|part| Some(part.split_once('>')?.1));
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Text of the rows of the first table of a page, without markup.
fn rows(page: &str) -> Vec<String> {
    let table = page.split("<tbody").nth(1).unwrap_or_else(|| panic!("{page}")).split("</tbody>").next().unwrap();
    table.split("<tr").skip(1).map(text).collect()
}

#[test]
fn the_slowest_and_the_largest_calls_are_found() {
    let crib = Crib::new();
    let mut records: Vec<Value> = (0..200).map(|at| record("quick", "ok", f64::from(at % 7), 1_000)).collect();
    records[20] = record("slow", "deadline", 90_000.0, 2_000);
    records[40] = record("large", "ok", 3.0, 500 << 20);
    records[60] = record("slow", "ok", 80_000.0, 2_000);
    log(&crib, &records);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let newest = rows(&browser.page("calls"));
    assert!(newest.len() == 50 && newest.iter().all(|row| row.contains("quick")), "{newest:?}");
    let longest = browser.page("calls?sort=duration");
    assert!(
        longest.contains("Logged calls by duration, descending")
            && longest.contains("sort=duration&amp;page=2")
            && longest.contains("aria-sort=\"descending\""),
        "{longest}"
    );
    let longest = rows(&longest);
    assert!(longest[0].contains("slow") && longest[0].contains("90.00"), "{longest:?}");
    assert!(longest[1].contains("80.00") && longest[2].contains("0.01"), "{longest:?}");
    let largest = rows(&browser.page("calls?sort=memory"));
    assert!(largest[0].contains("large") && largest[0].contains("500.0"), "{largest:?}");
    let filtered = rows(&browser.page("calls?sort=duration&outcome=ok&tool=slow"));
    assert!(filtered.len() == 1 && filtered[0].contains("80.00"), "{filtered:?}");
    let by_tool = rows(&browser.page("calls?sort=tool"));
    assert!(by_tool[0].contains("large") && by_tool[1].contains("quick"), "{by_tool:?}");
    let shortest = rows(&browser.page("calls?sort=duration&order=up"));
    assert!(shortest.len() == 50 && shortest[0].contains("0.0"), "{shortest:?}");
    assert_eq!(rows(&browser.page("calls?sort=duration&page=4")).len(), 50);
}

#[test]
fn figures_show_tools_times_and_denials_by_capability() {
    let crib = Crib::new();
    let mut records: Vec<Value> = (0..99).map(|_| record("quick", "ok", 2.0, 1 << 20)).collect();
    records.extend((0..3).map(|_| record("slow", "deadline", 30_000.0, 8 << 20)));
    let mut denied = record("reader", "denied", 1.0, 0);
    denied["denied"] = json!([{ "capability": "read:/srv/a.txt", "flag": "--allow-read=/srv" }]);
    records.extend([denied.clone(), denied]);
    let mut old = record("ancient", "ok", 1.0, 0);
    old["ts"] = json!((Timestamp::now() - SignedDuration::from_hours(24 * 60)).to_string());
    records.insert(0, old);
    log(&crib, &records);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.page("figures");
    assert!(page.contains("104 calls, 5 failures (outcomes other than ok)"), "{page}");
    let tools = rows(&page);
    assert!(tools[0].starts_with("slow 3 3 30.00 30.00 30.00 90.00 8,192.0"), "the slowest is first: {tools:?}");
    assert!(tools.len() == 3 && tools[1].starts_with("quick 99 0 "), "{tools:?}");
    assert!(rows(&browser.page("figures?sort=calls"))[0].starts_with("quick"));
    assert!(rows(&browser.page("figures?sort=failures"))[0].starts_with("slow"));
    for part in [
        "Each row is 30 minutes",
        "role=\"img\" aria-label=\"Calls over time: at most 104 in one of ",
        "<rect class=\"bad\"",
        "99th percentile (s)",
        "Denied capabilities, most denials first",
        "read:/srv/a.txt",
        "--allow-read=/srv",
        "calls?q=read%3A%2Fsrv%2Fa.txt",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("ancient") && browser.page("figures?span=all").contains("ancient"));
    for span in ["1+hour", "30+days"] {
        let page = browser.page(&format!("figures?span={span}"));
        assert!(page.contains("104 calls") && !page.contains("ancient"), "{span}: {page}");
    }
    let one = browser.page("figures?tool=quick");
    assert!(one.contains("99 calls, 0 failures") && one.contains("Nothing was denied in this time."), "{one}");
    assert!(browser.page("figures?tool=none").contains("No call is logged in this time"));
}

#[test]
fn figures_of_a_hostile_log_are_bounded_and_inert() {
    let crib = Crib::new();
    let mut records: Vec<Value> = (0..3_000).map(|at| record(&format!("tool-{at}"), "ok", 1.0, 1)).collect();
    let mut worst = record(HOSTILE, HOSTILE, 1e300, u64::MAX);
    let denied = |at: usize| json!({ "capability": format!("{HOSTILE}{at}"), "flag": HOSTILE });
    worst["denied"] = (0..3_000).map(denied).collect();
    records[0] = worst;
    for (at, time) in ["", "9999-12-31T23:59:59Z", "-009999-01-02T00:00:00Z", "1970-01-01T00:00:00Z"].iter().enumerate()
    {
        records[at + 1]["ts"] = json!(time);
    }
    records.push(record(&"y".repeat(100_000), "ok", -5.0, 0));
    log(&crib, &records);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    for span in ["1+hour", "24+hours", "30+days", "all"] {
        for by in ["99th+percentile", "calls"] {
            let page = browser.page(&format!("figures?span={span}&sort={by}"));
            assert!(page.len() < 300_000, "{span}: {}", page.len());
            if by == "99th+percentile" {
                assert_inert(&page);
            }
        }
    }
    assert_inert(&browser.page("calls?sort=duration"));
    assert!(browser.page("calls?sort=memory").contains("<h1>Calls</h1>"));
}

#[test]
fn a_run_shows_its_calls_as_a_time_line() {
    let crib = Crib::new();
    let call =
        |id: &str, name: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
    let calls = json!([call("quick", "quick"), call("slow", "slow"), call(HOSTILE, HOSTILE), call("other", "none")]);
    let result = |id: &str| message(json!({ "role": "tool", "content": "x", "tool_call_id": id }));
    let lines = [
        message(json!({ "role": "user", "content": "go" })),
        message(json!({ "role": "assistant", "content": "", "tool_calls": calls })),
        result("quick"),
        result("slow"),
        result(HOSTILE),
        result("other"),
    ];
    keep(&crib, RUN, "m", &lines);
    let mut slow = record("slow", "deadline", 60_000.0, 4 << 20);
    slow["waitedMs"] = json!(2_000.0);
    slow["fuel"] = json!(77);
    slow["parts"] = json!(3);
    log(&crib, &[record("quick", "ok", 5.0, 1 << 20), slow, record(HOSTILE, HOSTILE, 1.0, 0)]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.page("runs/7k3md-x0q9a");
    assert_inert(&page);
    let rows = rows(&page);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows[0].contains("quick") && rows[0].contains(" &lt;0.01 ") && rows[0].contains("ok"), "{rows:?}");
    assert!(rows[1].contains(" 60.00 2.00 30.00 "), "{rows:?}");
    for part in [
        "href=\"#call-1-1\"",
        "<section class=\"call\" id=\"call-1-1\"",
        "<svg class=\"span\"",
        "took too long",
        "1 more call without",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(page.contains(", fuel 77") && page.contains("showed 3 parts"), "{page}");
}
