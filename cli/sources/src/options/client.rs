//! Options of one client of a server: permissions, rules and programs, in addition to those for all clients.

use clap::Parser;
use toolcrib_base::render::Advice;

use toolcrib_settings::config::{Assignment, find};
use toolcrib_settings::selection::ALL;

use super::permissions::Permissions;
use super::rules::RuleFlags;

/// Maximum number of options of a client.
const MAX_CLIENT_OPTIONS: usize = 100;
/// Maximum length of all options of a client in bytes.
const MAX_LEN: usize = 16 << 10;

/// Advice about an option that a client cannot have.
const EXPECTED: &str = "a client has permissions and rules, such as `--allow-read=./docs`, `--set=deny.net=*` or \
                        `--ask-tool=fs_*`, and `--code`";

/// Permissions and rules of one client.
#[derive(Debug, Clone, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub struct ClientOptions {
    #[command(flatten)]
    pub(super) permissions: Permissions,
    #[command(flatten)]
    pub(super) rules: RuleFlags,
    /// Offer `run_code` and a search to this client in place of the tools
    #[arg(long)]
    pub(super) code: bool,
}

impl ClientOptions {
    /// Parses options.
    ///
    /// # Errors
    ///
    /// There are too many, or one is not a permission or a rule.
    pub fn parse(options: &[String]) -> anyhow::Result<Self> {
        if options.len() > MAX_CLIENT_OPTIONS || options.iter().map(String::len).sum::<usize>() > MAX_LEN {
            let message = format!("a client has at most {MAX_CLIENT_OPTIONS} options of {MAX_LEN} bytes in all");
            return Err(Advice::new(message, "put what holds for all clients on the command line of the server").into());
        }
        Self::try_parse_from(without_assignments(options)?).map_err(|error| {
            let text = error.to_string();
            let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let similar = text.lines().find_map(|line| line.trim().strip_prefix("tip: a similar argument exists: '"));
            let hint = match similar.and_then(|similar| similar.strip_suffix('\'')) {
                Some(similar) => format!("did you mean `{similar}`? {EXPECTED}"),
                None => EXPECTED.to_owned(),
            };
            Advice::new(message, hint).into()
        })
    }
}

/// Replaces assignments of the settings `deny.*` by their options. A client has no other settings.
fn without_assignments(options: &[String]) -> anyhow::Result<Vec<String>> {
    let (mut replaced, mut rest) = (Vec::with_capacity(options.len()), options.iter());
    while let Some(option) = rest.next() {
        let assignment = match option.strip_prefix("--set") {
            Some("") => rest.next().map(String::as_str),
            Some(assigned) => assigned.strip_prefix('='),
            None => None,
        };
        let Some(assignment) = assignment else {
            replaced.push(option.clone());
            continue;
        };
        let denied = assignment.split_once('=').filter(|(name, _)| name.starts_with("deny."));
        let denied = denied.and_then(|(name, value)| Some((find(name)?.options().first().copied()?, value)));
        let Some((flag, value)) = denied else {
            return Err(Advice::new(format!("`--set {assignment}` is not available to a client"), EXPECTED).into());
        };
        Assignment::parse(assignment).map_err(|error| Advice::new(error, EXPECTED))?;
        let listed: Vec<String> = serde_json::from_str(value).unwrap_or_else(|_| vec![value.to_owned()]);
        replaced.extend(listed.into_iter().filter_map(|value| match value.as_str() {
            "false" => None,
            "true" | ALL => Some(format!("--{flag}")),
            value => Some(format!("--{flag}={value}")),
        }));
    }
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[&str]) -> anyhow::Result<ClientOptions> {
        ClientOptions::parse(&options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn permissions_and_rules_are_options_of_a_client_and_nothing_else_is() {
        assert!(parse(&[]).is_ok());
        let client = parse(&["--allow-read=a,b", "--deny-net", "--allow-exec", "--deny-tool=fs_rm"]).unwrap();
        assert_eq!((client.permissions.allowed().count(), client.permissions.denied().count()), (3, 1));
        assert_eq!(client.rules.rules().count(), 1);
        let similar = parse(&["--allow-raed=x"]).unwrap_err();
        let hint = similar.downcast_ref::<Advice>().map_or("", Advice::hint);
        assert!(hint.contains("did you mean `--allow-read`?"), "{hint}");
        assert!(parse(&["--code"]).unwrap().code && !client.code);
        for other in ["--tools=x", "--trust", "--config=x", "--max-timeout=1s", "--help", "-h", "x", "--allow-raed=x"] {
            assert!(parse(&[other]).is_err(), "{other}");
        }
    }

    #[test]
    fn denials_can_be_settings() {
        for (options, denied) in [
            (&["--set=deny.net=*"][..], 1),
            (&["--set", "deny.net=a.example,b.example", "--set=deny.model=true"], 3),
            (&["--set=deny.env=[\"A\",\"B\"]", "--set=deny.meta=false"], 2),
        ] {
            assert_eq!(parse(options).unwrap().permissions.denied().count(), denied, "{options:?}");
        }
        for wrong in
            ["--set=allow.net=a.example", "--set=deny.net=a/b", "--set=deny.nothing=*", "--set", "--setdeny.net=*"]
        {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_options_of_a_client_are_bounded() {
        let many = |count| vec!["--deny-net".to_owned(); count];
        assert!(ClientOptions::parse(&many(MAX_CLIENT_OPTIONS)).is_ok());
        assert!(ClientOptions::parse(&many(MAX_CLIENT_OPTIONS + 1)).is_err());
        assert!(parse(&[&format!("--allow-env={}", "A".repeat(MAX_LEN))]).is_err());
    }
}
