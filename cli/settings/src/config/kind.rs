//! Kinds of the values of settings, each with its check.

use regex::Regex;
use toolcrib::policy::{Pattern, PatternError};
use toolcrib::tool::{Destination, Glob};
use toolcrib_base::http_server::{Origin, ServedHost};
use toolcrib_base::oauth::SecureUrl;
use toolcrib_base::parse::{
    MAX_COUNT, approval_wait, delay, duration, listen_address, name_server, not_allowed, price, size, tool_quota,
    window,
};
use toolcrib_base::store_address::StoreAddress;

use super::path::PathRule;
use crate::selection::{check_meaning, split as split_selection, split_destination};

/// Kind of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Text that a function accepts; its error may be empty.
    Text {
        wanted: &'static str,
        /// Regular expression of the JSON Schema, which accepts everything that `check` accepts.
        pattern: &'static str,
        check: fn(&str) -> Result<(), String>,
    },
    /// Path, relative to the file or to the current folder.
    Path(PathRule),
    /// One of some words.
    Word(&'static [&'static str]),
    /// Whole number from one value to another.
    Count(u64, u64),
    /// Number from 0 to this value.
    Number(f64),
    Bool,
    /// List of values of one kind.
    List(&'static Kind),
    /// Table with keys of the author's own.
    Object,
}

impl Kind {
    /// Returns the kind in a few words, for lists of keys.
    pub(super) fn shown(&self) -> String {
        match self {
            Kind::Text { wanted, .. } => {
                let end = wanted.find(" as text").or_else(|| wanted.find(" such as")).unwrap_or(wanted.len());
                let name = wanted[..end].split_once(' ').map_or(&wanted[..end], |(_, name)| name);
                name.to_owned()
            }
            Kind::Path(PathRule::Place) => "place".to_owned(),
            Kind::Path(_) => "path".to_owned(),
            Kind::Word(words) => words.join(" | "),
            Kind::Count(..) => "whole number".to_owned(),
            Kind::Number(_) => "number".to_owned(),
            Kind::Bool => "true | false".to_owned(),
            Kind::List(of) => format!("list: {}", of.shown()),
            Kind::Object => "table".to_owned(),
        }
    }
}

const ANY_TEXT: &str = "^.";
pub(super) const TIME: Kind = Kind::Text {
    wanted: "a time as text, such as \"60s\"",
    pattern: r"^\s*[0-9.]+\s*(ms|s|m|min|h)?\s*$",
    check: |text| duration(text).map(drop),
};
pub(super) const DELAY: Kind = Kind::Text {
    wanted: "a time as text, such as \"500ms\", or \"0s\"",
    pattern: r"^\s*[0-9.]+\s*(ms|s|m|min|h)?\s*$",
    check: |text| delay(text).map(drop),
};
pub(super) const SERVED_HOST: Kind = Kind::Text {
    wanted: "a host as text, such as \"tools.example.com\"",
    pattern: r"^[0-9a-zA-Z.:\[\]_-]+$",
    check: |text| text.parse::<ServedHost>().map(drop).map_err(str::to_owned),
};
pub(super) const PAGE_ORIGIN: Kind = Kind::Text {
    wanted: "an origin as text, such as \"https://app.example.com\"",
    pattern: "^[hH][tT][tT][pP][sS]?:",
    check: |text| text.parse::<Origin>().map(drop).map_err(str::to_owned),
};
pub(super) const SECURE_URL: Kind = Kind::Text {
    wanted: "an address over TLS as text, such as \"https://tools.example.com/mcp\"",
    pattern: "^[hH][tT][tT][pP][sS]?:",
    check: |text| text.parse::<SecureUrl>().map(drop).map_err(str::to_owned),
};
pub(super) const STORE: Kind = Kind::Text {
    wanted: "the address of a database as text, such as \"postgres://toolcrib@db.example.com/toolcrib\"",
    pattern: "^postgres(ql)?://",
    check: |text| text.parse::<StoreAddress>().map(drop),
};
pub(super) const WINDOW: Kind = Kind::Text {
    wanted: "a time of whole seconds as text, such as \"1h\"",
    pattern: r"^\s*[0-9.]+\s*(ms|s|m|min|h)?\s*$",
    check: |text| window(text).map(drop),
};
pub(super) const TOOL_QUOTAS: Kind = Kind::List(&Kind::Text {
    wanted: "a tool with its calls as text, such as \"fetch_page=100\"",
    pattern: r"^\s*[^,() =]+\s*=\s*\+?[0-9]+\s*$",
    check: |text| tool_quota(text).map(drop),
});
pub(super) const WAIT: Kind = Kind::Text {
    wanted: "a time as text, such as \"10m\"",
    pattern: r"^\s*[0-9.]+\s*(ms|s|m|min|h)?\s*$",
    check: |text| approval_wait(text).map(drop),
};
pub(super) const SIZE: Kind = Kind::Text {
    wanted: "a size as text, such as \"4MiB\"",
    pattern: r"^\s*[0-9.]+\s*([kKmMgG]?[iI]*[bB]*)\s*$",
    check: |text| size(text).map(drop),
};
pub(super) const POSITIVE: Kind = Kind::Count(1, u64::MAX);
/// Positive number that an option of 32 bits takes.
pub(super) const NUMBER: Kind = Kind::Count(1, MAX_COUNT);
pub(super) const NAME: Kind = Kind::Text { wanted: "a name as text", pattern: ANY_TEXT, check: filled };
const LISTED: Kind = Kind::Text { wanted: "a name as text, without `,`", pattern: "^[^,]+$", check: single };
pub(super) const TAG: Kind = Kind::Text { wanted: "a tag as text", pattern: ANY_TEXT, check: filled };
pub(super) const TOOL: Kind = Kind::Text { wanted: "the name of a tool", pattern: ANY_TEXT, check: filled };
pub(super) const URL: Kind = Kind::Text {
    wanted: "a URL as text, such as \"http://localhost:11434/v1\"",
    pattern: "^[hH][tT][tT][pP][sS]?:",
    check: |text| match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(()),
        _ => Err(String::new()),
    },
};
const GLOB: Kind = Kind::Text {
    wanted: "the name of a tool or a pattern such as \"fs_*\"",
    pattern: "^[^,]+$",
    check: |text| match split_selection(text).1.parse::<Glob>() {
        Ok(_) => single(text),
        Err(error) => Err(error.to_string()),
    },
};
pub(super) const PRICE: Kind = Kind::Text {
    wanted: "a price as text, such as \"0.25/2\"",
    pattern: r"^\s*[0-9.+eE-]+\s*/\s*[0-9.+eE-]+\s*$",
    check: |text| price(text).map(drop),
};
const HOST: Kind = Kind::Text {
    wanted: "a destination as text, such as \"api.example.com\", or \"*\"",
    pattern: ANY_TEXT,
    check: |text| {
        check_meaning(text)?;
        Destination::parse_list(split_destination(text).1).map(drop).map_err(|error| error.to_string())
    },
};
pub(super) const ADDRESS: Kind = Kind::Text {
    wanted: "an address as text, such as \"192.0.2.53\"",
    pattern: r"^[0-9a-fA-F:.\[\]%]+$",
    check: |text| name_server(text).map(drop),
};
pub(super) const LISTEN: Kind = Kind::Text {
    wanted: "an address with a port as text, such as \"127.0.0.1:8931\"",
    pattern: r"^(localhost:|[0-9a-fA-F:.\[\]%]+:)?[0-9]+$",
    check: |text| listen_address(text).map(drop),
};
pub(super) const MASK: Kind = Kind::Text {
    wanted: "a regular expression as text",
    pattern: "",
    // The last line is the message; those above show the position.
    check: |text| match Regex::new(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string().lines().last().unwrap_or_default().replace("error: ", "")),
    },
};
pub(super) const RULE: Kind = Kind::Text {
    wanted: "a text such as \"fs_*\" or \"fs_rm(path=out/*)\"",
    pattern: ANY_TEXT,
    check: |text| pattern(text).map(drop),
};
pub(super) const NAMED_RULE: Kind = Kind::Text {
    wanted: "a text such as \"fs_*\" or \"fs_rm(path=out/*)\"",
    pattern: ANY_TEXT,
    check: |text| match pattern(text)? {
        class if !class.names_tools() => Err(not_allowed(&class)),
        _ => Ok(()),
    },
};
pub(super) const STAGED_RULE: Kind = Kind::Text {
    wanted: "a text such as \"run_code\" or \"fs_*\"",
    pattern: ANY_TEXT,
    check: |text| match pattern(text)? {
        flow if flow.is_about_flows() => Err(format!("`{}` is a flow, and not a pattern for calls", flow.as_str())),
        _ => Ok(()),
    },
};
pub(super) const FOLDERS: Kind = Kind::List(&Kind::Path(PathRule::Folder));
pub(super) const GRANTED: Kind = Kind::List(&Kind::Path(PathRule::Granted));
pub(super) const PLACES: Kind = Kind::List(&Kind::Path(PathRule::Place));
pub(super) const PATHS: Kind = Kind::List(&Kind::Path(PathRule::Any));
pub(super) const NAMES: Kind = Kind::List(&LISTED);
pub(super) const GLOBS: Kind = Kind::List(&GLOB);
pub(super) const HOSTS: Kind = Kind::List(&HOST);
pub(super) const DIR: Kind = Kind::Path(PathRule::Any);

fn filled(text: &str) -> Result<(), String> {
    if text.is_empty() { Err(String::new()) } else { Ok(()) }
}

/// Accepts one value of an option that takes several, separated by commas.
fn single(text: &str) -> Result<(), String> {
    if text.contains(',') { Err(String::new()) } else { filled(text) }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse().map_err(|error: PatternError| error.to_string())
}
