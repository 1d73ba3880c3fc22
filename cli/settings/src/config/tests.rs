//! Unit tests of the settings: every key is read, mistakes are told with their place, and the schema agrees with the parser.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use clap::{Arg, ArgAction};

use super::defaults::defaulted;
use super::effect::acts;
use super::key::{ANY, KEYS, OptionOf};
use super::kind::Kind;
use super::*;

const WHOLE: &str = r#"
[permissions]
allow = ["fs_read_*"]
ask = ["fs_write_file(path=out/*)", "fs_rm"]
deny = ["fs_rm(path=*.git*)"]
[masks]
emails = '[a-z]+@[a-z.]+'
[scheduler]
sibling_failure = "cancel_dependent"
step_time = "60s"
step_output = "4MiB"
queue = 256
defer_above = 40
[run]
tags = ["ci"]
[routes]
patch = "apply_patch"
[deny]
net = ["*"]
model = true
[config.summarize]
style = "brief"
most = 3
"#;

fn parse(text: &str, kind: LayerKind) -> anyhow::Result<SettingsText> {
    SettingsText::parse(Path::new("t"), "t", text.to_owned(), kind)
}

fn config(layers: &[(LayerKind, &str)]) -> Config {
    let layer = |(kind, text): &(LayerKind, &str)| parse(text, *kind).unwrap().layer(*kind, true);
    Config::of(&Layers::from_layers(layers.iter().map(layer).collect())).unwrap()
}

#[test]
fn every_section_is_read() {
    let config = config(&[(LayerKind::Project, WHOLE)]);
    let rules: Vec<String> = config.rules.iter().map(|of| of.rule.to_string()).collect();
    assert_eq!(rules.len(), 4);
    assert_eq!(rules[1], "ask fs_write_file(path=out/*) (t)");
    assert_eq!(config.rules[2].place, "t:4:37", "the place of the item, not that of the list");
    assert_eq!(config.masks, [Mask { name: "emails".into(), pattern: "[a-z]+@[a-z.]+".into() }]);
    let scheduler = Scheduler {
        sibling_failure: SiblingFailure::CancelDependent,
        time: Some(Duration::from_secs(60)),
        output: Some(4 << 20),
        queue: 256,
        ..Scheduler::default()
    };
    assert_eq!(config.scheduler, scheduler);
    assert_eq!(config.defer_above, Some(40));
    assert_eq!((config.tags, config.routes), (vec!["ci".into()], vec![("patch".into(), "apply_patch".into())]));
    assert_eq!(config.tools, [("summarize".into(), json!({"style": "brief", "most": 3}))]);
    let denials: Vec<_> = config.denials.iter().map(|denial| (denial.name, denial.values.join(" "))).collect();
    assert_eq!(denials, [("model", "true".to_owned()), ("net", "*".to_owned())]);
    assert_eq!(config.denials[0].origin, "`deny.model` in `t:20`");
}

#[test]
fn rules_denials_and_tags_add_up_and_the_strongest_value_of_another_key_counts() {
    let config = config(&[
        (LayerKind::Project, "[run]\ntags = ['a']\n[scheduler]\nqueue = 1\n[masks]\nx = 'p'"),
        (LayerKind::User, "[permissions]\ndeny = ['u']\n[run]\ntags = ['b']\n[masks]\nx = 'u'\ny = 'u'"),
        (LayerKind::System, "[permissions]\ndeny = ['s']\n[scheduler]\nqueue = 3\n[deny]\nread = ['/srv']"),
    ]);
    let rules: Vec<String> = config.rules.iter().map(|of| of.rule.to_string()).collect();
    assert_eq!(rules, ["deny u (t)", "deny s (t)"]);
    assert_eq!((config.tags, config.scheduler.queue), (vec!["a".to_owned(), "b".to_owned()], 1));
    let masks: Vec<String> = config.masks.iter().map(|mask| format!("{}={}", mask.name, mask.pattern)).collect();
    assert_eq!(masks, ["x=p", "y=u"]);
    assert_eq!(config.denials.len(), 1);
}

#[test]
fn a_mistake_is_told_with_file_line_column_key_and_what_was_found() {
    for (text, wanted) in [
        ("[permissions]\nalow = []", "t:2:1: unknown key `permissions.alow`"),
        ("[permission]", "t:1:2: unknown key `permission`"),
        ("permissions = 3", "t:1:15: `permissions` must be a table, found `3`"),
        ("[permissions]\nask = 'fs_*'", "t:2:7: `permissions.ask` must be an array, found `'fs_*'`"),
        (
            "[permissions]\nask = [\n 'fs_*',\n 7,\n]",
            "t:4:2: `permissions.ask[1]` must be a text such as \"fs_*\" or \"fs_rm(path=out/*)\", found `7`",
        ),
        ("[permissions]\ndeny = ['x(a']", "t:2:9: `permissions.deny[0]`: `x(a`: the last `)` is missing"),
        ("[masks]\na = '('", "t:2:5: `masks.a`: unclosed group"),
        (
            "[scheduler]\nsibling_failure = 'stop'",
            "t:2:19: `scheduler.sibling_failure` must be `ignore`, `cancel_siblings` or `cancel_dependent`, found `'stop'`",
        ),
        (
            "[scheduler]\nstep_time = '1d'",
            "t:2:13: `scheduler.step_time`: `1d` is not a time such as `30s`, `500ms` or `2m`, up to `24h`",
        ),
        ("[scheduler]\nqueue = 0", "t:2:9: `scheduler.queue` must be a positive whole number, found `0`"),
        (
            "[limits]\nconcurrency = 1001",
            "t:2:15: `limits.concurrency` must be a whole number from 1 to 1000, found `1001`",
        ),
        ("[model]\ntemperature = 3", "t:2:15: `model.temperature` must be a number from 0 to 2, found `3`"),
        ("[allow]\nmodel = 'yes'", "t:2:9: `allow.model` must be `true` or `false`, found `'yes'`"),
        (
            "[network]\nnameservers = ['dns.example']",
            "t:2:16: `network.nameservers[0]`: `dns.example` is not the address of a name server such as `192.0.2.53` or `127.0.0.1:5353`",
        ),
        ("[routes]\na = 1", "t:2:5: `routes.a` must be the name of a tool, found `1`"),
        ("[config]\na = 1", "t:2:5: `config.a` must be a table, found `1`"),
        (
            "[results]\nmax_inline = -1",
            "t:2:14: `results.max_inline` must be a whole number from 1 to 4294967295, found `-1`",
        ),
        ("[allow]\nread = ['a,b']", "t:2:9: `allow.read[0]`: `a,b`: a path with `,` cannot be granted or denied"),
    ] {
        assert_eq!(parse(text, LayerKind::Project).unwrap_err().to_string(), wanted, "{text}");
    }
    for (text, start) in [
        ("[permissions]\nallow = [", "t:2:"),
        ("[permissions]\nallow = []\nallow = []", "t:3:"),
        ("[profile.ci.model]\nname = 'x'", "t:1:2: `profile`: profiles belong in the user's file"),
    ] {
        let error = parse(text, LayerKind::Project).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }
    let error = parse("[allow]\nread = ['notes']", LayerKind::User).unwrap_err().to_string();
    assert!(error.starts_with("t:2:9: `allow.read[0]`: `notes`: this file holds for every folder"), "{error}");
}

#[test]
fn a_text_that_is_too_large_is_refused() {
    let text = format!("[run]\ntags = ['a']\n#{}\n", "x".repeat(1 << 20));
    let error = format!("{:#}", parse(&text, LayerKind::Project).unwrap_err());
    assert_eq!(error, "cannot use the settings in `t`: larger than the 1048576 bytes allowed");
}

#[test]
fn a_profile_has_the_sections_of_the_file() {
    let text = parse("[profile.ci.model]\nname = 'x'\n[profile.ci.routes]\na = 'b'", LayerKind::User).unwrap();
    let names: Vec<&str> = text.profiles[0].1.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!((text.profiles[0].0.as_str(), names), ("ci", vec!["model.name", "routes.a"]));
    let error = parse("[profile.ci.model]\nnam = 'x'", LayerKind::User).unwrap_err().to_string();
    assert_eq!(error, "t:2:1: unknown key `profile.ci.model.nam`");
}

#[test]
fn all_that_trust_grants_is_requested_and_denials_are_recorded() {
    let subject = parse(WHOLE, LayerKind::Project).unwrap().subject();
    let (denials, requests): (Vec<_>, Vec<_>) = subject.items.iter().partition(|item| item.requests.is_empty());
    let names: Vec<&str> = requests.iter().map(|item| item.name.as_str()).collect();
    assert!(names.contains(&"permissions.allow") && names.contains(&"masks.emails"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("deny") || name.ends_with("ask")), "{names:?}");
    assert!(denials.iter().any(|item| item.name == "permissions.ask"), "{denials:?}");
    assert!(denials.iter().all(|item| !item.restrictions.is_empty()), "{denials:?}");
    let subject =
        parse("[allow]\nread = []\n[config]\na = {}\n[deny]\nread = []", LayerKind::Project).unwrap().subject();
    let requests: Vec<&String> = subject.items.iter().flat_map(|item| &item.requests).collect();
    assert_eq!(requests, ["setting:allow.read = []", "setting:config.a = {}"], "they replace values of weaker layers");
}

#[test]
fn the_keys_of_the_host_are_refused_in_a_project_and_listed_in_the_book() {
    let book = include_str!("../../../docs/src/configuration.md");
    let (_, listed) = book.split_once("The file of a project cannot have these keys").unwrap();
    let listed = listed.split("\n\n").next().unwrap();
    for key in KEYS.iter().filter(|key| key.name != ANY) {
        let text = format!("[{}]\n{} = {}\n", key.section, key.name, samples(&key.kind).0);
        let of_project = parse(&text, LayerKind::Project).map(drop).map_err(|error| error.to_string());
        match key.is_of_host {
            true => assert!(of_project.is_err_and(|error| error.contains("a project cannot set this")), "{key}"),
            false => assert_eq!(of_project, Ok(()), "{key}"),
        }
        assert_eq!(listed.contains(&format!("`{key}`")), key.is_of_host, "{key} in the book");
    }
}

#[test]
fn the_defaults_of_limits_are_those_of_the_library() {
    let limits = toolcrib::tool::Limits::with_deadline(Duration::from_secs(30));
    let default = |name| find(name).and_then(Key::default_value).unwrap();
    let bytes = |name| size(default(name)).unwrap() as u64;
    assert_eq!(bytes("limits.max_memory"), limits.memory as u64);
    assert_eq!(bytes("limits.max_output"), limits.stdout as u64);
    assert_eq!(bytes("limits.max_disk"), limits.disk_bytes);
    assert_eq!(bytes("limits.max_received"), limits.received as u64);
    assert_eq!(default("limits.max_disk_entries"), limits.disk_entries.to_string());
    assert_eq!(default("limits.max_requests"), limits.requests.to_string());
    let scheduler = Scheduler::default();
    assert_eq!(default("scheduler.queue"), scheduler.queue.to_string());
    assert_eq!(SiblingFailure::from_word(default("scheduler.sibling_failure")), Some(scheduler.sibling_failure));
}

/// A value that a kind accepts, and one that it refuses.
fn samples(kind: &Kind) -> (String, String) {
    match kind {
        Kind::Text { wanted, .. } => match *wanted {
            wanted if wanted.starts_with("a time") => ("'2m'".into(), "'soon'".into()),
            wanted if wanted.starts_with("a size") => ("'4MiB'".into(), "'large'".into()),
            wanted if wanted.starts_with("a URL") => ("'http://h/v1'".into(), "'h/v1'".into()),
            wanted if wanted.starts_with("an address with") => ("'127.0.0.1:80'".into(), "'dns.example'".into()),
            wanted if wanted.starts_with("a host") => ("'h.example'".into(), "'a b'".into()),
            wanted if wanted.starts_with("an origin") => ("'https://h.example'".into(), "'h.example'".into()),
            wanted if wanted.starts_with("an address over") => ("'https://h.example'".into(), "'h.example'".into()),
            wanted if wanted.starts_with("an address") => ("'192.0.2.53'".into(), "'dns.example'".into()),
            wanted if wanted.starts_with("the address of a database") => ("'postgres://u@h/d'".into(), "'h/d'".into()),
            wanted if wanted.starts_with("a destination") => ("'api.example.com'".into(), "''".into()),
            wanted if wanted.starts_with("a price") => ("'0.25/2'".into(), "'1'".into()),
            wanted if wanted.starts_with("a tool with its calls") => ("'fs_*=10'".into(), "'fs_*'".into()),
            wanted if wanted.starts_with("a regular") => ("'a+'".into(), "3".into()),
            _ => ("'name'".into(), "''".into()),
        },
        Kind::Path(_) => ("'./x'".into(), "''".into()),
        Kind::Word(words) => (format!("'{}'", words[0]), "'other'".into()),
        Kind::Count(min, max) => (min.to_string(), if *max == u64::MAX { "-1".into() } else { (max + 1).to_string() }),
        Kind::Number(max) => (max.to_string(), (max + 1.0).to_string()),
        Kind::Bool => ("true".into(), "'true'".into()),
        Kind::List(of) => (format!("[{}]", samples(of).0), format!("[{}]", samples(of).1)),
        Kind::Object => ("{a = 1}".into(), "1".into()),
    }
}

#[test]
fn the_schema_accepts_and_refuses_what_the_parser_does() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let as_json = |text: &str| -> Value {
        let table = |(name, field): (String, Field<'_>)| (name, field.object().unwrap());
        Value::Object(Table::parse("t", text).unwrap().fields().map(table).collect())
    };
    for key in KEYS {
        let name = if key.name == ANY { "any" } else { key.name };
        let (good, bad) = samples(&key.kind);
        for (value, fits) in [(good, true), (bad, false)] {
            for (table, kind) in [("", LayerKind::Named), ("profile.ci.", LayerKind::User)] {
                let text = format!("[{table}{}]\n{name} = {value}\n", key.section);
                assert_eq!(parse(&text, kind).is_ok(), fits, "{text}");
                assert_eq!(validator.is_valid(&as_json(&text)), fits, "{text}");
            }
        }
        let text = format!("[{}]\nunheard_of = 'x'\n", key.section);
        assert_eq!(parse(&text, LayerKind::Named).is_ok(), validator.is_valid(&as_json(&text)), "{text}");
    }
    assert!(!validator.is_valid(&json!({"unheard_of": {}})));
}

/// A command with the options of a key, and no others.
fn command_of(key: &Key) -> clap::Command {
    let action = if matches!(key.option, OptionOf::Flags(_)) { ArgAction::SetTrue } else { ArgAction::Append };
    let option = |name: &&'static str| Arg::new(*name).long(*name).action(action.clone());
    let name = ["call", "run", "mcp"].into_iter().find(|name| key.is_of(name)).expect("a command with options");
    clap::Command::new(name).args(key.options().iter().map(option))
}

#[test]
fn each_assignment_is_the_value_of_its_option_and_is_refused_without_it() {
    for key in KEYS.iter().filter(|key| key.name != ANY) {
        let text = format!("[{}]\n{} = {}\n", key.section, key.name, samples(&key.kind).0);
        let layer = parse(&text, LayerKind::Set).unwrap().layer(LayerKind::Set, true);
        let (command, other) = (command_of(key), clap::Command::new("runs"));
        let (of_all, setting) = (clap::Command::new("list").arg(Arg::new("config").long("config")), &layer.settings[0]);
        let values = layer.texts(setting);
        let is_default = match key.option {
            OptionOf::None | OptionOf::Adds(_) => {
                assert!(acts(&other, &of_all, &layer, setting) && !acts(&other, &command, &layer, setting), "{key}");
                continue;
            }
            OptionOf::Flags(flags) => !flags.iter().any(|(value, _)| *value == values[0]),
            OptionOf::Value(_) => false,
        };
        assert!(acts(&other, &command, &layer, setting), "{key}");
        assert!(!acts(&other, &of_all, &layer, setting) || is_default, "{key}");
        let layers = Layers::from_layers(vec![layer]);
        let given = defaulted(command, &layers).try_get_matches_from(["run"]).unwrap();
        let named = |name: &&str| given.get_raw(name).is_some_and(|mut raw| raw.all(|value| *value == *values[0]));
        let set: Vec<&str> = match key.option {
            OptionOf::Flags(flags) => flags.iter().map(|(_, flag)| *flag).filter(|flag| given.get_flag(flag)).collect(),
            _ => key.options().into_iter().filter(named).collect(),
        };
        assert_eq!(set.len(), usize::from(!is_default), "{key}: {set:?}");
    }
}
