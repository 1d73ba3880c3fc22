//! Command line of `--continue`: it takes the model and the permissions of the run along, which are shown before they are
//! used.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::ArgMatches;
use toolcrib_base::folders::state_folder;
use toolcrib_base::render::{self, one_line, shell_word};
use toolcrib_settings::config;

use super::given::{GivenOptions, assigns, has_permissions, inserted, is_typed};
use super::store::RunStore;

/// Model of a run that a script played.
const SCRIPTED: &str = "script";

/// Run with the options that were taken along.
static CONTINUED: OnceLock<String> = OnceLock::new();

/// Options that a command line takes along.
#[derive(Debug, Default, PartialEq, Eq)]
struct Taken {
    server: Vec<String>,
    permissions: Vec<String>,
    /// Permissions that are not taken, since nobody would see them.
    left: Vec<String>,
}

/// Returns the arguments with the options that `--continue` takes along, and shows these options; `None` if there are none.
/// Typed options win: with any of the permissions, none of the run's permissions are taken.
pub fn continued(matches: &ArgMatches, arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (command, leaf) = matches.subcommand()?;
    let is_continued = matches!(command, "run" | "chat") && leaf.get_flag("latest") && !leaf.get_flag("no_keep");
    if !is_continued {
        return None;
    }
    let named = leaf.try_get_one::<PathBuf>("config").ok().flatten();
    let typed = leaf.try_get_one::<PathBuf>("runs_dir").ok().flatten().cloned();
    let folder = typed.or_else(|| config::own_path("records.runs_dir", named)).or_else(|| state_folder("runs"))?;
    let store = RunStore::new(folder);
    // The command reports what is wrong with the run.
    let id = store.latest_here().ok()?;
    let (model, given) = store.given(&id).ok()?;
    // Somebody has to see them.
    let taken = Taken::of(&model, given.as_ref(), (matches, leaf), io::stderr().is_terminal());
    let _ = CONTINUED.set(id.clone());
    taken.show(&id);
    let options = [taken.server, taken.permissions].concat();
    (!options.is_empty()).then(|| inserted(arguments, command, &options))
}

/// Returns the run with the options that were taken along, if there is one.
pub(super) fn continued_run() -> Option<&'static str> {
    CONTINUED.get().map(String::as_str)
}

impl Taken {
    fn of(
        model: &str,
        given: Option<&GivenOptions>,
        (matches, leaf): (&ArgMatches, &ArgMatches),
        is_seen: bool,
    ) -> Self {
        let here = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
        let mut taken = Self::default();
        if !is_typed(leaf, "script") && model != SCRIPTED {
            let is_free =
                |option: &str, key: &str| !is_typed(leaf, option) && !assigns(matches, |set| set.starts_with(key));
            let of_server = given.into_iter().flat_map(|given| &given.server);
            let keys = [("--base-url=", "base-url", "model.base_url="), ("--api=", "api", "model.api=")];
            let is_taken = |text: &&String| {
                keys.iter().any(|(begin, option, key)| text.starts_with(begin) && is_free(option, key))
            };
            taken.server.extend(of_server.filter(is_taken).cloned());
            if is_free("model", "model.name=") {
                taken.server.insert(0, format!("--model={model}"));
            }
        }
        // Paths in the options are those of their directory.
        let permissions = given.filter(|given| given.folder == here).and_then(|given| given.permissions.clone());
        let permissions = permissions.filter(|_| !has_permissions(matches, leaf)).unwrap_or_default();
        match is_seen {
            true => taken.permissions = permissions,
            false => taken.left = permissions,
        }
        taken
    }

    fn show(&self, id: &str) {
        let words = |options: &[String]| {
            one_line(&options.iter().map(|option| shell_word(option)).collect::<Vec<_>>().join(" "))
        };
        if !self.server.is_empty() {
            render::aside(&format!("run {id} continues with {}", words(&self.server)));
        }
        if !self.permissions.is_empty() {
            render::aside(&format!("run {id} continues with its permissions: {}", words(&self.permissions)));
        }
        if !self.left.is_empty() {
            let left = words(&self.left);
            render::hint(&format!(
                "without a terminal, the permissions of the run are not taken along; repeat them: {left}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    fn command() -> clap::Command {
        let value = |(id, long): (&'static str, &'static str)| Arg::new(id).long(long).action(ArgAction::Append);
        let values = [
            ("model", "model"),
            ("base_url", "base-url"),
            ("api", "api"),
            ("script", "script"),
            ("allow_write", "allow-write"),
            ("deny_tool", "deny-tool"),
            ("config", "config"),
        ];
        let values = values.map(value);
        let set = Arg::new("set").long("set").action(ArgAction::Append).global(true);
        clap::Command::new("toolcrib").arg(set).subcommand(clap::Command::new("run").args(values))
    }

    fn taken(typed: &[&str], given: &GivenOptions, is_seen: bool) -> Taken {
        let matches = command().get_matches_from([&["toolcrib", "run"], typed].concat());
        let (_, leaf) = matches.subcommand().unwrap();
        Taken::of("m", Some(given), (&matches, leaf), is_seen)
    }

    #[test]
    fn typed_options_win_and_permissions_are_taken_as_a_whole_or_not_at_all() {
        let folder = std::env::current_dir().unwrap().display().to_string();
        let permissions = vec!["--allow-write=desk".to_owned(), "--deny-tool=fs_rm".to_owned()];
        let server = vec!["--base-url=http://x".to_owned(), "--allow-write=/".to_owned()];
        let given = GivenOptions { folder, server, permissions: Some(permissions.clone()) };
        let all = taken(&[], &given, true);
        assert_eq!(all.server, ["--model=m", "--base-url=http://x"], "and nothing else");
        assert_eq!((&all.permissions, all.left.len()), (&permissions, 0));
        let unseen = taken(&[], &given, false);
        assert_eq!((unseen.permissions.len(), &unseen.left), (0, &permissions));
        for typed in [
            "--allow-write=a",
            "--deny-tool=b",
            "--set=deny.net=c",
            "--set=allow.read=d",
            "--config=e",
            "--set=run.stage=true",
        ] {
            let taken = taken(&[typed], &given, true);
            assert!(taken.permissions.is_empty() && taken.left.is_empty(), "{typed}: {taken:?}");
        }
        assert_eq!(taken(&["--model=n", "--api=chat"], &given, true).server, ["--base-url=http://x"]);
        assert_eq!(taken(&["--set=model.name=n"], &given, true).server, ["--base-url=http://x"]);
        assert!(taken(&["--script=s"], &given, true).server.is_empty());
        let elsewhere = GivenOptions { folder: "/elsewhere".to_owned(), ..given.clone() };
        assert!(taken(&[], &elsewhere, true).permissions.is_empty());
        assert!(taken(&[], &GivenOptions { permissions: None, ..given }, true).permissions.is_empty());
    }

    #[test]
    fn options_come_behind_the_name_of_the_command() {
        let arguments = ["toolcrib", "run", "--continue", "--", "run"].map(OsString::from);
        let extended = inserted(&arguments, "run", &["--model=m".to_owned()]);
        assert_eq!(extended, ["toolcrib", "run", "--model=m", "--continue", "--", "run"].map(OsString::from));
    }
}
