//! `--set`: assignments of the command line, and the options that they replace.

use serde_json::{Value, json};

use super::{json as parsed, write_project, write_user};
use crate::crib::{Crib, Ran};

/// A value that keys of a type accept, as an option and as an assignment take it.
fn sample(key: &Value) -> &'static str {
    match (key["key"].as_str().unwrap(), key["type"].as_str().unwrap()) {
        ("deny.net", _) => "api.example.com",
        ("model.api_key_env", _) => "HOME",
        ("secrets.store", _) => "file",
        ("budgets.price", _) => "0.25/2",
        (_, "time") => "7s",
        (_, "size") => "7MiB",
        (_, "URL") => "http://127.0.0.1:9/v1",
        (_, "list: address") => "192.0.2.53",
        (_, "number") => "1",
        (_, "whole number") => "7",
        _ => "./given",
    }
}

/// Keys whose options are deprecated, each with one of its options as a person types it.
fn deprecated(crib: &Crib) -> Vec<(Value, String)> {
    let ran = crib.run(&["config", "keys", "--json"]);
    let keys: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let mut typed = Vec::new();
    for key in keys.into_iter().filter(|key| key["deprecated"] == true) {
        for option in key["options"].as_array().unwrap() {
            let option = option.as_str().unwrap();
            typed.push(match key["type"].as_str().unwrap() {
                "true | false" => (key.clone(), option.to_owned()),
                _ => (key.clone(), format!("{option}={}", sample(&key))),
            });
        }
    }
    typed
}

/// Values of a run without their origins.
fn values(ran: &Ran) -> Value {
    let mut shown = parsed(ran);
    shown.as_object_mut().unwrap().remove("from");
    shown
}

#[test]
fn each_deprecated_option_names_the_line_that_does_the_same() {
    let crib = Crib::with_guests(&["echo"]);
    let typed = deprecated(&crib);
    assert!(typed.len() > 50, "{}", typed.len());
    for (key, option) in typed {
        let command = ["run", "--print-config"];
        let by_option = crib.run(&[&command[..], &[&option]].concat());
        assert_eq!(by_option.code, Some(0), "{option}: {by_option:?}");
        let name = option.split('=').next().unwrap();
        let warning = by_option.stderr.lines().next().unwrap_or_default();
        let line = warning
            .strip_prefix(&format!("warning: `{name}` is deprecated: use `--set "))
            .map(|line| line.trim_end_matches('`'));
        let line = line.unwrap_or_else(|| panic!("{option}: {by_option:?}")).trim_matches('\'');
        assert!(line.starts_with(&format!("{}=", key["key"].as_str().unwrap())), "{option}: {line}");
        // A value that may hold a secret is not repeated.
        let line = &line.replace("=VALUE", &format!("={}", sample(&key)));
        let by_line = crib.run(&[&command[..], &["--set", line]].concat());
        assert_eq!((by_line.code, by_line.stderr.as_str()), (Some(0), ""), "{option}: {by_line:?}");
        assert_eq!(values(&by_option), values(&by_line), "{option}");
    }
}

#[test]
fn a_deprecated_option_is_reported_once_with_all_its_values() {
    let crib = Crib::with_guests(&["echo"]);
    let args = ["list", "--deny-env=A,B", "--deny-env=echo:C,D", "--deny-net", "--deny-model", "--max-output=1MiB"];
    let ran = crib.run(&args);
    let warnings: Vec<&str> = ran.stderr.lines().collect();
    let expected = [
        "warning: `--deny-env` is deprecated: use `--set deny.env=A --set deny.env=B --set deny.env=echo:C --set deny.env=echo:D`",
        "warning: `--deny-net` is deprecated: use `--set 'deny.net=*'`",
        "warning: `--deny-model` is deprecated: use `--set deny.model=true`",
        "warning: `--max-output` is deprecated: use `--set limits.max_output=1MiB`",
    ];
    let (mut warnings, mut expected) = (warnings, expected.to_vec());
    warnings.sort_unstable();
    expected.sort_unstable();
    assert_eq!((ran.code, warnings), (Some(0), expected));
    // A variable is no option.
    let mut command = crib.toolcrib(&["list"]);
    let ran = Ran::from(command.env("TOOLCRIB_NO_LOG_ARGUMENTS", "1").output().unwrap());
    assert_eq!(ran.stderr, "");
}

#[test]
fn each_denial_of_an_assignment_is_that_of_its_option() {
    let crib = Crib::with_guests(&["file_io", "http"]);
    let entry = |name, guest, capabilities: Value| json!({ "name": name, "command": [format!("./tools/bin/{guest}")], "capabilities": capabilities });
    let files = entry("all", "file_io", json!({ "files": "write", "env": ["TZ"] }));
    crib.manifest(&json!({ "tools": [files, entry("web", "http", json!({ "network": ["api.example.com"] }))] }));
    let granted = ["--allow-read=work", "--allow-write=work", "--allow-env=TZ", "--allow-net=api.example.com"];
    let listed = |more: &[&str]| {
        let mut command = crib.toolcrib(&[&["list", "--json"], &granted[..], more].concat());
        let ran = Ran::of(command.env("TZ", "UTC"));
        assert_eq!(ran.code, Some(0), "{more:?}: {ran:?}");
        ran.stdout
    };
    let allowed = listed(&[]);
    for (option, line) in [
        ("--deny-read=work", "deny.read=work"),
        ("--deny-read", "deny.read=*"),
        ("--deny-write=work", "deny.write=work"),
        ("--deny-write=all:work", "deny.write=all:work"),
        ("--deny-env=TZ", "deny.env=TZ"),
        ("--deny-net=api.example.com", "deny.net=api.example.com"),
        ("--deny-net", "deny.net=*"),
    ] {
        let denied = listed(&[option]);
        assert_eq!(denied, listed(&["--set", line]), "{option}");
        assert_ne!(denied, allowed, "{option}");
    }
    // A denial for a tool that is not loaded would deny nothing, from either.
    for more in [["--deny-read=al:work"].as_slice(), &["--set", "deny.read=al:work"]] {
        let ran = crib.run(&[&["list"], more].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains("no such tool is loaded"), "{ran:?}");
    }
    for more in [["--deny-tool=eco"].as_slice(), &["--set", "permissions.deny=eco"]] {
        let crib = Crib::with_guests(&["echo"]);
        let ran = crib.run(&[&["list"], more].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains("matches no loaded tool: nothing was run"), "{ran:?}");
    }
}

#[test]
fn an_assignment_is_above_variables_and_files_and_below_its_option() {
    let crib = Crib::with_guests(&["echo"]);
    write_user(
        &crib,
        "[model]\nname = \"of-file\"\nhttp_timeout = \"3s\"\ntemperature = 0.5\n[records]\nlog_arguments = false\n",
    );
    let shown = |args: &[&str]| {
        let mut command = crib.toolcrib(&[&["run", "--print-config"], args].concat());
        command.env("OAI_MODEL", "of-variable").env("OAI_HTTP_TIMEOUT", "5s").env("OAI_NO_CUSTOM_TOOLS", "1");
        parsed(&Ran::from(command.output().unwrap()))
    };
    let set = ["--set", "model.name=assigned", "--set=model.http_timeout=7s", "--set=model.custom_tools=true"];
    let above = shown(&set);
    assert_eq!(
        (&above["model"], &above["httpTimeout"], &above["customTools"]),
        (&json!("assigned"), &json!("7s"), &json!(true))
    );
    assert_eq!(above["from"]["model"], "--set model.name");
    let below = shown(&[&set[..], &["--model=typed"]].concat());
    assert_eq!((&below["model"], &below["from"]["model"]), (&json!("typed"), &json!("--model")));
    // The value of a file does not conflict with the other way to sample, which is assigned.
    let sampled = shown(&["--set=model.top_p=0.25"]);
    assert_eq!((&sampled["topP"], &sampled["temperature"]), (&json!(0.25), &Value::Null));
    // The last value of a key holds; the items of a list add up.
    assert_eq!(shown(&["--set=model.name=a", "--set=model.name=b"])["model"], "b");
    let ran = crib.run(&["config", "get", "permissions.deny", "--set=permissions.deny=a", "--set=permissions.deny=b"]);
    assert_eq!(ran.stdout, "a\nb\n");
}

#[test]
fn an_assignment_grants_as_an_option_does_and_no_more() {
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    let entry = json!({ "name": "all", "command": ["./tools/bin/echo"], "capabilities": { "files": "read" } });
    crib.manifest(&json!({ "tools": [entry] }));
    let listed = |more: &[&str]| {
        let ran = crib.run(&[&["list", "--json", "--tools=tools.json"], more].concat());
        (ran.code, ran.stdout, ran.stderr.lines().next().unwrap_or_default().to_owned())
    };
    let by_option = listed(&["--allow-read=work"]);
    assert_eq!(by_option, listed(&["--set", "allow.read=work"]), "also a source that is not trusted");
    // A missing folder stops the command, as one of an option does.
    let (missing, assigned) = (listed(&["--allow-read=gone"]), listed(&["--set", "allow.read=gone"]));
    assert_eq!((missing.0, assigned.0), (Some(1), Some(1)), "{assigned:?}");
    // A denial of a file holds, and the file of a project that nobody trusts grants nothing.
    write_project(&crib, "[deny]\nread = [\"work\"]\n[allow]\nread = [\".\"]\n");
    let ran = crib.run(&["list", "--json", "--tools=tools.json", "--set=allow.read=work", "--set=deny.read=[]"]);
    assert!(ran.code == Some(0) && !ran.stdout.contains("\"read:"), "{ran:?}");
    assert!(by_option.1.contains("\"read:"), "without the file it is granted: {by_option:?}");
}

#[test]
fn a_wrong_assignment_runs_nothing() {
    let crib = Crib::with_guests(&["echo"]);
    for (line, words) in [
        ("limits.feul=1", "unknown key `limits.feul`; did you mean `limits.fuel`?"),
        ("fuel=1", "did you mean `limits.fuel`?"),
        ("limits.fuel", "a value is missing: write `NAME=VALUE`"),
        ("limits.max_memory=large", "`limits.max_memory`: `large` is not a size"),
        ("model.api=other", "`model.api` must be `chat` or `responses`, found `\"other\"`"),
        ("profile.ci.model.name=x", "unknown key `profile.ci.model.name`"),
    ] {
        let ran = crib.run(&["call", "echo", "--set", line]);
        assert!(ran.code == Some(2) && ran.stdout.is_empty() && ran.stderr.contains(words), "{line}: {ran:?}");
    }
    assert!(crib.logs().is_empty());
    // Those before the name of the command would be lost without a word.
    let ran = crib.run(&["--set", "permissions.deny=echo", "call", "echo", "--set", "limits.fuel=1"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("after the name of the command"), "{ran:?}");
    let ran = crib.run(&["--set", "permissions.deny=echo", "call", "echo"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("deny echo (--set)"), "{ran:?}");
}

#[test]
fn an_assignment_that_the_command_does_not_use_is_an_error() {
    let crib = Crib::with_guests(&["echo"]);
    for args in [
        &["call", "echo", "{}", "--set=approvals.ask=writes"][..],
        &["call", "echo", "{}", "--set=display.stream=true"],
        &["runs", "list", "--set=records.redact=key"],
        &["mcp", "--set=budgets.calls=10"],
        &["mcp", "config", "cursor", "--set=limits.fuel=1"],
        &["completions", "bash", "--set=cache.dir=elsewhere"],
        &["install", "--set=deny.net=*"],
        &["test", "--set=limits.tool_timeout=2s"],
    ] {
        let ran = crib.run(args);
        let key = args.last().unwrap().split('=').nth(1).unwrap();
        let message = format!("error: --set: `toolcrib {}", args[0]);
        assert!(ran.code == Some(2) && ran.stdout.is_empty(), "{args:?}: {ran:?}");
        assert!(ran.stderr.starts_with(&message) && ran.stderr.contains(&format!("does not use `{key}`")), "{ran:?}");
    }
    let ran = crib.run(&["run", "--json", "--answers", "--set=approvals.wait=5m", "x"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("cannot be used with `--answers`"), "{ran:?}");
    let ran = crib.run(&["list", "--set=deny.call=ech"]);
    let warning = "`--set deny.call=ech` matches no loaded tool; did you mean `echo`?";
    assert!(ran.code == Some(0) && ran.stderr.contains(warning), "{ran:?}");
}

#[test]
fn commands_without_settings_files_take_assignments_for_their_options() {
    let crib = Crib::with_guests(&["echo"]);
    write_user(&crib, "[model\n");
    let explained = crib.run(&["config", "explain", "cache.dir", "--set", "cache.dir=elsewhere"]);
    assert!(explained.stdout.contains("elsewhere"), "{explained:?}");
    let doctor = crib.run(&["doctor", "--json", "--set", "cache.dir=./elsewhere"]);
    assert!(doctor.stdout.contains("elsewhere"), "{doctor:?}");
}

#[test]
fn the_book_lists_every_key_with_its_type_its_default_and_its_options() {
    let crib = Crib::new();
    let keys: Vec<Value> = serde_json::from_str(&crib.run(&["config", "keys", "--json"]).stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('|', "\\|");
    let code = |text: String| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let row = |key: &Value| {
        let options: Vec<String> = key["options"].as_array().unwrap().iter().map(|option| code(text(option))).collect();
        let options = options.join(", ") + if key["deprecated"] == true { ", deprecated" } else { "" };
        let variables: Vec<String> = key["variables"].as_array().unwrap().iter().map(|name| code(text(name))).collect();
        let cells = [
            code(text(&key["key"])),
            text(&key["type"]),
            text(&key["default"]),
            options,
            variables.join(", "),
            text(&key["purpose"]),
        ];
        format!("| {} |", cells.join(" | "))
    };
    let rows: Vec<String> = keys.iter().map(row).collect();
    let book = include_str!("../../cli/docs/src/settings.md");
    let listed: Vec<&str> = book.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(
        listed.join("\n"),
        rows.join("\n"),
        "the table of cli/docs/src/settings.md must be:\n{}\n",
        rows.join("\n")
    );
}

#[test]
fn the_completion_of_a_shell_offers_visible_options_alone() {
    let crib = Crib::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = crib.run(&["completions", shell]).stdout;
        for (option, is_offered) in
            [("max-memory", true), ("set", true), ("max-disk", false), ("deny-net", false), ("uncompiled", false)]
        {
            let written = match shell {
                "fish" => script.contains(&format!("-l {option} ")) || script.contains(&format!("-l {option}\n")),
                _ => script.contains(&format!("--{option}")),
            };
            assert_eq!(written, is_offered, "{shell}: {option}");
        }
    }
}
