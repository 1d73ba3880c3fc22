//! Skills as sources of the built program: text and files, scripts in the sandbox, bundles, trust, and the extension of MCP.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::crib::{Crib, guest};
use crate::mcp::{Client, modern};

const TEXT: &str = "---\nname: tally\ndescription: Counts words.\nallowed-tools: Bash(rm:*)\n---\n# Steps\n";
const COUNT: &str = "def run(args):\n    return {\"words\": len(args[\"stdin\"].split())}\n";

fn write(folder: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Crib with the skill `tally`.
fn crib() -> Crib {
    let crib = Crib::new();
    write(&crib.path("skills"), "tally/SKILL.md", TEXT);
    write(&crib.path("skills"), "tally/count.star", COUNT);
    write(&crib.path("skills"), "tally/scripts/a.py", "print(1)\n");
    write(&crib.path("skills"), "tally/scripts/b.sh", "echo 1\n");
    write(&crib.path("skills"), "tally/logo.bin", [0, 159, 1]);
    crib
}

const TOOLS: &str = "--tools=skills";

#[test]
fn a_skill_returns_its_text_its_files_and_the_results_of_its_scripts() {
    let crib = crib();
    let line = crib.call("tally", &json!({}), &[TOOLS]);
    assert_eq!(
        (&line["result"]["instructions"], &line["result"]["scriptsAreRunBy"]),
        (&json!("# Steps\n"), &json!("tally_run"))
    );
    assert_eq!(line["result"]["files"][3], json!({"path": "scripts/a.py", "bytes": 9, "script": "Python"}));
    assert_eq!(line["result"]["files"][4], json!({"path": "scripts/b.sh", "bytes": 7, "notRun": "a shell script"}));
    assert_eq!(line["receipt"]["label"]["integrity"], "untrusted", "{line}");
    let read = |arguments: Value| crib.call("tally", &arguments, &[TOOLS]);
    assert_eq!(read(json!({"file": "SKILL.md"}))["result"]["text"], TEXT);
    assert_eq!(read(json!({"file": "logo.bin", "binary": true}))["result"]["base64"], "AJ8B");
    for (arguments, outcome, why) in [
        (json!({"file": "logo.bin"}), "failed", "is a binary file of 3 bytes"),
        (json!({"file": "../../../etc/passwd"}), "bad-arguments", "has no file"),
        (json!({"file": "./SKILL.md"}), "bad-arguments", "did you mean `SKILL.md`?"),
    ] {
        let line = read(arguments);
        assert_eq!(line["receipt"]["outcome"], outcome, "{line}");
        assert!(line["error"].as_str().is_some_and(|error| error.contains(why)), "{line}");
    }
    let run = |arguments: Value| crib.call("tally_run", &arguments, &[TOOLS]);
    assert_eq!(run(json!({"script": "count.star", "stdin": "a b"}))["result"], json!({"words": 2}));
    for (script, outcome, why) in [
        ("scripts/a.py", "bad-component", "`toolcrib install cpython`"),
        ("scripts/b.sh", "bad-arguments", "is a shell script, and only Python"),
        ("../../x.py", "bad-arguments", "has no file"),
    ] {
        let line = run(json!({ "script": script }));
        assert_eq!(line["receipt"]["outcome"], outcome, "{line}");
        assert!(line["error"].as_str().is_some_and(|error| error.contains(why)), "{line}");
    }
    let shown = crib.run(&["inspect", "tally", TOOLS]);
    assert!(shown.stdout.contains("\"Bash(rm:*)\", which grants nothing"), "{shown:?}");
}

#[test]
fn a_script_finds_a_copy_of_its_skill_beside_the_granted_folders() {
    let crib = crib();
    fs::copy(guest("script_runner"), crib.path("python.wasm")).unwrap();
    write(&crib.path("data"), "own.txt", "granted");
    let flags = [TOOLS, "--set=sources.python=python.wasm", "--allow-read=data"];
    let call = |file: &str, flags: &[&str]| {
        let arguments = json!({"script": "scripts/a.py", "arguments": [file, "-x"], "stdin": "in"});
        crib.call("tally_run", &arguments, flags)
    };
    let line = call("/skill/scripts/a.py", &flags);
    assert_eq!(line["result"], "python /skill/scripts/a.py /skill/scripts/a.py -x\nin\nprint(1)\n\n", "{line}");
    assert!(call("/own.txt", &flags)["result"].as_str().unwrap().contains("granted"));
    let alone = call("/scripts/b.sh", &flags[..2]);
    assert!(alone["result"].as_str().unwrap().contains("echo 1"), "{alone}");
    write(&crib.path("skill"), "x.txt", "");
    let taken = call("/own.txt", &[&flags[..], &["--allow-read=skill"]].concat());
    assert!(taken["error"].as_str().unwrap().contains("could not be granted at `/skill`"), "{taken}");
    let copies = crib.path("home/.cache/toolcrib/skills");
    assert_eq!(fs::read_dir(copies).unwrap().count(), 0, "a copy lives as long as its call");
    write(&crib.path("skills"), "tally/scripts/a.py", "print(2)\n");
    assert!(call("/skill/scripts/a.py", &flags)["result"].as_str().unwrap().contains("print(2)"), "loaded anew");
}

#[test]
fn a_bundle_of_skills_packs_every_file_and_runs() {
    let crib = crib();
    let packed = crib.run(&["bundle", "pack", "skills", "-o", "skills.tar"]);
    assert_eq!(packed.code, Some(0), "{packed:?}");
    fs::remove_dir_all(crib.path("skills")).unwrap();
    let flags = ["--tools=skills.tar"];
    assert_eq!(crib.call("tally", &json!({"file": "scripts/b.sh"}), &flags)["result"]["text"], "echo 1\n");
    let line = crib.call("tally_run", &json!({"script": "count.star", "stdin": "a"}), &flags);
    assert_eq!(line["result"], json!({"words": 1}), "{line}");
}

#[test]
fn trust_covers_every_file_of_a_skill() {
    let crib = crib();
    let digest = |crib: &Crib| {
        let shown = crib.run(&["trust", "skills", "--json"]);
        serde_json::from_str::<Value>(shown.stdout.trim()).unwrap()["digest"].as_str().unwrap().to_owned()
    };
    let before = digest(&crib);
    let trust = format!("--trust={before}");
    let label = |crib: &Crib| crib.call("tally", &json!({}), &[TOOLS, &trust])["receipt"]["label"].clone();
    assert!(label(&crib).is_null() || label(&crib)["integrity"] == "trusted", "a person answers for it");
    write(&crib.path("skills"), "tally/logo.bin", "other");
    assert_ne!(digest(&crib), before);
    assert_eq!(label(&crib)["integrity"], "untrusted");
}

#[test]
fn skills_are_served_by_the_extension_of_mcp() {
    let crib = crib();
    write(&crib.path("skills"), "Loud/SKILL.md", "---\nname: LOUD\ndescription: x\n---\n");
    write(&crib.path("skills"), "closed/SKILL.md", "---\nname: closed\ndescription: x\n---\n");
    let mut client = Client::start(&crib, &[TOOLS, "--deny-tool=closed"]);
    let mut ask = |method: &str, params: Value| client.ask(method, &modern(params, &json!({})));
    let found = ask("server/discover", json!({}));
    let capabilities = &found["result"]["capabilities"];
    assert_eq!(capabilities["extensions"]["io.modelcontextprotocol/skills"], json!({"directoryRead": true}), "{found}");
    let list = ask("skills/list", json!({}));
    let skills = list["result"]["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 1, "a name that the format does not allow, and a denied skill: {list}");
    assert_eq!(skills[0]["uri"], "skill://tally/SKILL.md");
    assert_eq!(skills[0]["frontmatter"]["allowed-tools"], "Bash(rm:*)");
    assert_eq!(skills[0]["resources"].as_array().unwrap().len(), 5);
    assert_eq!(skills[0]["resources"][2]["size"], 3);
    assert!(list["result"]["ttlMs"].is_u64() && list["result"]["resultType"] == "complete", "{list}");
    let one = ask("skills/get", json!({"uri": "skill://tally/SKILL.md"}));
    assert_eq!(one["result"]["skill"], skills[0]);
    let read = ask("resources/read", json!({"uri": "skill://tally/SKILL.md"}));
    assert_eq!(read["result"]["contents"][0]["text"], TEXT, "{read}");
    assert_eq!(read["result"]["contents"][0]["mimeType"], "text/markdown");
    let read = ask("resources/read", json!({"uri": "skill://tally/logo.bin"}));
    assert_eq!(read["result"]["contents"][0]["blob"], "AJ8B", "{read}");
    let children = ask("resources/directory/read", json!({"uri": "skill://tally/scripts"}));
    assert_eq!(children["result"]["resources"][1]["uri"], "skill://tally/scripts/b.sh", "{children}");
    let resources = ask("resources/list", json!({}));
    assert_eq!(resources["result"]["resources"][0]["description"], "Counts words.", "{resources}");
    for (method, uri) in [
        ("skills/get", "skill://closed/SKILL.md"),
        ("resources/read", "skill://closed/SKILL.md"),
        ("resources/read", "skill://tally/../closed/SKILL.md"),
        ("resources/read", "skill://tally/none"),
        ("resources/directory/read", "skill://tally/SKILL.md"),
    ] {
        assert_eq!(ask(method, json!({ "uri": uri }))["error"]["code"], -32602, "{method} {uri}");
    }
    write(&crib.path("skills"), "tally/count.star", "changed");
    let read = ask("resources/read", json!({"uri": "skill://tally/count.star"}));
    assert!(read["error"]["message"].as_str().is_some_and(|why| why.contains("has changed")), "{read}");
    assert_eq!(client.leave(), Some(0));
    let records = crib.records();
    let outcomes: Vec<&str> = records.iter().filter_map(|record| record["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["ok", "ok", "failed"], "one record for each read: {records:?}");
}
