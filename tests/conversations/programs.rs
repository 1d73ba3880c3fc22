//! Tasks that a model solves by a program: how many requests they take, and how much the model reads.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::model::{Model, Turn};
use super::place::*;

/// A turn that runs a program.
fn program(code: &str) -> Turn {
    Turn { parts: Vec::new(), calls: vec![("run_code", "c1", json!({ "code": code }))] }
}

/// Bytes of everything that the model was sent; about four are a token.
fn sent(model: &Model) -> usize {
    model.bodies().iter().map(|body| body.to_string().len()).sum()
}

const MAX_TOKENS: usize = 6000;

/// Program that finds the customers whose total rose by more than a fifth.
pub(crate) const COMPARE: &str = "totals, offset, rest = {}, 0, ''\n\
    while offset is not None:\n\
    \x20   part = tools.fs_read_file(path='sales.csv', offset=offset, limit=131072)\n\
    \x20   lines = (rest + part['content']).split('\\n')\n\
    \x20   rest, offset = lines.pop(), part.get('next_offset')\n\
    \x20   for line in lines:\n\
    \x20       customer, month, total = line.split(',')\n\
    \x20       if customer != 'customer':\n\
    \x20           key = (customer, month)\n\
    \x20           totals[key] = totals.get(key, 0) + int(total)\n\
    names = sorted(set(key[0] for key in totals))\n\
    rose = [n for n in names if totals[(n, '2026-05')] > 1.2 * totals[(n, '2026-04')]]\n\
    {'rose': len(rose), 'first': rose[:3]}";

/// Program that replaces a name in all files.
pub(crate) const RENAME: &str = "import asyncio\n\
    async def rename(path):\n\
    \x20   part = await tools.fs_read_file(path=path)\n\
    \x20   text = part['content'].replace('old_name', 'new_name')\n\
    \x20   await tools.fs_write_file(path=path, content=text, overwrite=True)\n\
    found = tools.fs_search(pattern='old_name', max_results=1000)\n\
    paths = sorted(set(match['path'] for match in found['matches']))\n\
    await asyncio.gather(*[rename(path) for path in paths])\n\
    len(paths)";

/// Returns a table of more than 5 MB: of 1,000 customers, each tenth buys half as much again in May.
pub(crate) fn sales() -> String {
    let mut text = String::from("customer,month,total\n");
    for row in 0..250_000_u32 {
        let (customer, month) = (row % 1000, if row % 2000 < 1000 { "2026-04" } else { "2026-05" });
        let total = if month == "2026-05" && customer % 10 == 0 { 15 } else { 10 };
        writeln!(text, "customer-{customer:04},{month},{total}").unwrap();
    }
    assert!(text.len() > 5_000_000);
    text
}

/// Writes 200 files with a name.
pub(crate) fn write_files(folder: &Path) {
    for n in 0..200 {
        let file = folder.join(format!("{}/file_{n}.py", n % 7));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("def caller_{n}():\n    return old_name({n})\n")).unwrap();
    }
}

/// Checks that all these files have the new name and nothing else new.
pub(crate) fn assert_renamed(folder: &Path) {
    for n in 0..200 {
        let text = fs::read_to_string(folder.join(format!("{}/file_{n}.py", n % 7))).unwrap();
        assert_eq!(text, format!("def caller_{n}():\n    return new_name({n})\n"));
    }
}

#[test]
fn a_question_about_a_file_of_five_megabytes_takes_two_requests() {
    let place = Place::new();
    fs::create_dir_all(place.path("work")).unwrap();
    fs::write(place.path("work/sales.csv"), sales()).unwrap();
    let model = Model::start(vec![program(COMPARE), says("100 customers.")], None);
    let flags = ["--code", "--tools=builtin", "--max-memory=256MiB"];
    let ran = place.run(&model, &[&["run", "Which customers' total rose by more than 20 %?"], &flags[..]].concat());
    assert_eq!(ran.stdout, "100 customers.\n", "{ran:?}");
    let bodies = model.bodies();
    let answer = bodies[1].to_string();
    assert!(answer.contains(r#"\"rose\":100"#) && answer.contains("customer-0020"), "{answer}");
    let (requests, tokens) = (bodies.len(), sent(&model) / 4);
    assert!(requests <= 3 && tokens <= MAX_TOKENS, "{requests} requests, {tokens} tokens");
}

#[test]
fn a_name_in_two_hundred_files_is_replaced_by_one_call() {
    let place = Place::new();
    write_files(&place.path("work"));
    let model = Model::start(vec![program(RENAME), says("Renamed.")], None);
    let flags = ["--code", "--tools=builtin", "--ask=never"];
    let ran = place.run(&model, &[&["run", "Rename old_name to new_name."], &flags[..]].concat());
    let bodies = model.bodies();
    let answer = bodies.last().map(Value::to_string).unwrap_or_default();
    assert!(ran.stdout == "Renamed.\n" && answer.contains(r#"\"value\":200"#), "{ran:?} {answer}");
    assert_renamed(&place.path("work"));
    let (requests, tokens) = (bodies.len(), sent(&model) / 4);
    assert!(requests == 2 && tokens <= MAX_TOKENS, "{requests} requests, {tokens} tokens");
}
