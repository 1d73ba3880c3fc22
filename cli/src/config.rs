//! Settings in a `toolcrib.toml`: rules, masks, scheduler, results and more. A file that the user names is their own. The
//! file of the current folder can only ask and deny until a person trusts it. Every mistake is an error, since a file about permissions must not be
//! applied partially.
//!
//! ```toml
//! [permissions]                # rules over calls; `--allow-tool`, `--ask-tool` and `--deny-tool` say the same
//! allow = ["fs_read_*"]
//! ask = ["fs_write_file(path=out/*)", "fs_rm", "@destructive"]
//! deny = ["fs_rm(path=*.git*)"]
//!
//! [masks]                      # named regular expressions, to which a tool's `redaction_policy_refs` refer
//! emails = '[a-z]+@[a-z.]+'
//!
//! [scheduler]
//! sibling_failure = "ignore"   # or `cancel_siblings`, `cancel_dependent`
//! step_time = "60s"            # all calls of one step together
//! step_output = "4MiB"         # the same, in bytes
//! queue = 256                  # the most calls that wait
//! defer_above = 40             # with more tools, the model is sent those that are always loaded
//!
//! [results]
//! max_inline = 65536           # characters that the model is given whole
//!
//! [run]
//! tags = ["ci"]                # tools can need tags, or refuse them; `--tag` adds more
//!
//! [routes]                     # which tool answers to a name that a model calls, whatever tools claim
//! patch = "apply_patch"
//!
//! [config.summarize]           # what a rich tool finds under `config`, and others through `wasi:config`
//! style = "brief"
//!
//! [network]
//! nameservers = ["192.0.2.53"] # asked about hosts, and not the system's; `--dns` says the same
//! ```

mod table;
mod trust;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use regex::Regex;
use serde_json::Value;
use toolcrib::Scheduler;
use toolcrib::call::Behavior;
use toolcrib::policy::{Pattern, PatternError, Rule};
use toolcrib::tool::SiblingFailure;

use crate::input;
use crate::parse::{duration, name_server, not_allowed, size};
use crate::render;
use crate::trust::Trusted;

pub(crate) use table::{Field, Place, Table};
pub(crate) use trust::default_file;

/// Default settings file.
pub(crate) const DEFAULT_FILE: &str = "./toolcrib.toml";

/// Settings of a `toolcrib.toml`.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The file, if one was loaded.
    pub(crate) path: Option<PathBuf>,
    /// Text of the file.
    text: String,
    /// Rules over calls, in the order of the file.
    pub(crate) rules: Vec<Rule>,
    /// Named masks, sorted by name.
    pub(crate) masks: Vec<Mask>,
    pub(crate) scheduler: Scheduler,
    /// See [`toolcrib::Builder::defer_above`].
    pub(crate) defer_above: Option<usize>,
    /// See [`toolcrib::Builder::max_inline`].
    pub(crate) max_inline: Option<usize>,
    /// See [`toolcrib::Builder::name_servers`].
    pub(crate) name_servers: Vec<SocketAddr>,
    /// See [`toolcrib::Builder::tag`].
    pub(crate) tags: Vec<String>,
    /// See [`toolcrib::Builder::route`].
    pub(crate) routes: Vec<(String, String)>,
    /// See [`toolcrib::Builder::configure`].
    pub(crate) tools: Vec<(String, Value)>,
}

/// A named mask for tool answers, referenced by tool definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mask {
    pub(crate) name: String,
    /// A regular expression that compiles.
    pub(crate) pattern: String,
}

impl Config {
    /// Loads the named file, or [`DEFAULT_FILE`] if it exists; without trust, only the part that restricts.
    pub(crate) fn load(named: Option<&Path>, trusted: &Trusted) -> anyhow::Result<Self> {
        let default = Path::new(DEFAULT_FILE);
        match named {
            Some(path) => Self::read(path),
            // An inaccessible file is read, which reports the error.
            None if default.try_exists().unwrap_or(true) => {
                let config = Self::read(default)?;
                let subject = config.subject(default);
                match trusted.admits(&subject, default) {
                    true => Ok(config),
                    false => Ok(config.untrusted()),
                }
            }
            None => Ok(Self::default()),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first mistake in the file, with its line and its field.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = render::from_here(path).display().to_string();
        if path.metadata().is_ok_and(|file| !file.is_file()) {
            bail!("cannot read the settings in `{name}`: not a regular file");
        }
        let text = input::file(path).with_context(|| format!("cannot read the settings in `{name}`"))?;
        let config = Self::parse(&name, &text)?;
        Ok(Self { path: Some(path.to_path_buf()), text, ..config })
    }

    /// Parses `text`; `file` is its name in messages.
    fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        let mut top = Table::parse(file, text)?;
        let mut config = Self {
            rules: top.table("permissions")?.map_or(Ok(Vec::new()), rules)?,
            masks: top.table("masks")?.map_or(Ok(Vec::new()), masks)?,
            ..Self::default()
        };
        if let Some(table) = top.table("scheduler")? {
            config.schedule(table)?;
        }
        if let Some(mut table) = top.table("results")? {
            config.max_inline = table.count("max_inline")?;
            table.end()?;
        }
        if let Some(mut table) = top.table("network")? {
            for server in table.take("nameservers").map_or(Ok(Vec::new()), Field::items)? {
                config.name_servers.push(server.read("an address as text, such as \"192.0.2.53\"", name_server)?);
            }
            table.end()?;
        }
        if let Some(mut table) = top.table("run")? {
            for tag in table.take("tags").map_or(Ok(Vec::new()), Field::items)? {
                config.tags.push(tag.read("a tag as text", |tag| Ok(tag.to_owned()))?);
            }
            table.end()?;
        }
        if let Some(table) = top.table("routes")? {
            let route = |(name, field): (String, Field<'_>)| {
                Ok((name, field.read("the name of a tool", |tool| Ok(tool.to_owned()))?))
            };
            config.routes = table.fields().map(route).collect::<anyhow::Result<_>>()?;
        }
        if let Some(table) = top.table("config")? {
            let tool = |(name, field): (String, Field<'_>)| Ok((name, field.object()?));
            config.tools = table.fields().map(tool).collect::<anyhow::Result<_>>()?;
        }
        top.end()?;
        Ok(config)
    }

    fn schedule(&mut self, mut table: Table<'_>) -> anyhow::Result<()> {
        let word = |text: &str| SiblingFailure::from_word(text).ok_or_else(String::new);
        let default = Scheduler::default();
        let stated = table.read("sibling_failure", "`ignore`, `cancel_siblings` or `cancel_dependent`", word)?;
        self.scheduler = Scheduler {
            sibling_failure: stated.unwrap_or(default.sibling_failure),
            time: table.read("step_time", "a time as text, such as \"60s\"", duration)?,
            output: table.read("step_output", "a size as text, such as \"4MiB\"", size)?,
            queue: table.count("queue")?.unwrap_or(default.queue),
            ..default
        };
        self.defer_above = table.count("defer_above")?;
        table.end()
    }
}

fn rules(mut table: Table<'_>) -> anyhow::Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for behavior in [Behavior::Allow, Behavior::Ask, Behavior::Deny] {
        for field in table.take(behavior.as_str()).map_or(Ok(Vec::new()), Field::items)? {
            let pattern = field.read("a text such as \"fs_*\" or \"fs_rm(path=out/*)\"", |text| {
                let pattern: Pattern = text.parse().map_err(|error: PatternError| error.to_string())?;
                match behavior == Behavior::Allow && pattern.is_class() {
                    true => Err(not_allowed(&pattern)),
                    false => Ok(pattern),
                }
            })?;
            rules.push(Rule::new(behavior, pattern, field.file()));
        }
    }
    table.end()?;
    Ok(rules)
}

fn masks(table: Table<'_>) -> anyhow::Result<Vec<Mask>> {
    let mask = |(name, field): (String, Field<'_>)| {
        let compiled = |text: &str| match Regex::new(text) {
            Ok(_) => Ok(text.to_owned()),
            // The last line is the message; those above show the position.
            Err(error) => Err(error.to_string().lines().last().unwrap_or_default().replace("error: ", "")),
        };
        Ok(Mask { pattern: field.read("a regular expression as text", compiled)?, name })
    };
    table.fields().map(mask).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
[results]
max_inline = 65_536
[network]
nameservers = ["127.0.0.1:5353"]
[run]
tags = ["ci"]
[routes]
patch = "apply_patch"
[config.summarize]
style = "brief"
most = 3
"#;

    #[test]
    fn every_section_is_read() {
        let config = Config::parse("toolcrib.toml", WHOLE).unwrap();
        let rules: Vec<String> = config.rules.iter().map(ToString::to_string).collect();
        assert_eq!(rules.len(), 4);
        assert_eq!(rules[1], "ask fs_write_file(path=out/*) (toolcrib.toml)");
        assert_eq!(config.masks, [Mask { name: "emails".into(), pattern: "[a-z]+@[a-z.]+".into() }]);
        let scheduler = Scheduler {
            sibling_failure: SiblingFailure::CancelDependent,
            time: Some(Duration::from_secs(60)),
            output: Some(4 << 20),
            queue: 256,
            ..Scheduler::default()
        };
        assert_eq!(config.scheduler, scheduler);
        assert_eq!((config.defer_above, config.max_inline), (Some(40), Some(65_536)));
        assert_eq!(config.name_servers, ["127.0.0.1:5353".parse().unwrap()]);
        assert_eq!((config.tags, config.routes), (vec!["ci".into()], vec![("patch".into(), "apply_patch".into())]));
        assert_eq!(config.tools, [("summarize".into(), serde_json::json!({"style": "brief", "most": 3}))]);
        assert!(Config::parse("toolcrib.toml", "").is_ok_and(|config| config.rules.is_empty()));
    }

    #[test]
    fn a_slip_is_told_with_file_line_field_and_what_was_found() {
        for (text, wanted) in [
            ("[permissions]\nalow = []", "t:2: unknown key `permissions.alow`"),
            ("[permission]", "t:1: unknown key `permission`"),
            ("permissions = 3", "t:1: `permissions` must be a table, found `3`"),
            ("[permissions]\nask = 'fs_*'", "t:2: `permissions.ask` must be an array, found `'fs_*'`"),
            (
                "[permissions]\nask = [\n 'fs_*',\n 7,\n]",
                "t:4: `permissions.ask[1]` must be a text such as \"fs_*\" or \"fs_rm(path=out/*)\", found `7`",
            ),
            ("[permissions]\ndeny = ['x(a']", "t:2: `permissions.deny[0]`: `x(a`: the last `)` is missing"),
            ("[masks]\na = '('", "t:2: `masks.a`: unclosed group"),
            (
                "[scheduler]\nsibling_failure = 'stop'",
                "t:2: `scheduler.sibling_failure` must be `ignore`, `cancel_siblings` or `cancel_dependent`, found `'stop'`",
            ),
            (
                "[scheduler]\nstep_time = '1d'",
                "t:2: `scheduler.step_time`: `1d` is not a time such as `30s`, `500ms` or `2m`, up to `24h`",
            ),
            ("[scheduler]\nqueue = 0", "t:2: `scheduler.queue` must be a positive whole number, found `0`"),
            (
                "[network]\nnameservers = ['dns.example']",
                "t:2: `network.nameservers[0]`: `dns.example` is not the address of a name server such as `192.0.2.53` or `127.0.0.1:5353`",
            ),
            ("[routes]\na = 1", "t:2: `routes.a` must be the name of a tool, found `1`"),
            ("[config]\na = 1", "t:2: `config.a` must be a table, found `1`"),
            ("[results]\nmax_inline = -1", "t:2: `results.max_inline` must be a positive whole number, found `-1`"),
        ] {
            assert_eq!(Config::parse("t", text).unwrap_err().to_string(), wanted, "{text}");
        }
        let error = Config::parse("t", "[permissions]\nallow = [").unwrap_err().to_string();
        assert!(error.starts_with("t:2: "), "{error}");
        let error = Config::parse("t", "[permissions]\nallow = []\nallow = []").unwrap_err().to_string();
        assert!(error.starts_with("t:3: ") && error.contains("duplicate key"), "{error}");
    }
}
