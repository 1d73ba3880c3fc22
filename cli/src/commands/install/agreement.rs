//! Agreement to a release: by options, or by the user's answers at the terminal.

use std::io::{self, IsTerminal};

use toolcrib_base::render::{Advice, one_line};
use toolcrib_packages::install::AgreementOptions;
use toolcrib_packages::install::{Case, Operation};
use toolcrib_settings::permission::ask as question;
use toolcrib_settings::trust::ranked;

/// Word that grants every permission.
const ALL: &str = "all";
/// Word that grants no permission.
const NONE: &str = "none";

/// Returns `true` if a person can be asked.
pub(super) fn can_ask(options: &AgreementOptions, is_frozen: bool) -> bool {
    !options.json && !is_frozen && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Returns the permissions that the options grant, if they agree to the release by its digest.
///
/// # Errors
///
/// `--grant` names a permission that is not asked for.
pub(super) fn machine(
    options: &AgreementOptions,
    case: &Case<'_>,
    undecided: &[String],
    is_frozen: bool,
) -> anyhow::Result<Option<Vec<String>>> {
    let granted = match options.grant.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // The lock can only narrow the permissions of a trusted digest.
        [] => match case.locked.filter(|_| case.operation == Operation::Locked && (is_frozen || case.pinned.is_none()))
        {
            Some(locked) => undecided.iter().filter(|request| locked.granted.contains(request)).cloned().collect(),
            None => undecided.to_vec(),
        },
        [ALL] => undecided.to_vec(),
        [NONE] => Vec::new(),
        named => {
            let unknown = named.iter().find(|name| !undecided.iter().any(|request| request == *name));
            if let Some(unknown) = unknown {
                let hint = match undecided {
                    [] => "it asks for no new permission".to_owned(),
                    some => format!("it asks for `{}`", some.join("`, `")),
                };
                let message = format!("`{}` does not ask for `{unknown}`", case.candidate.bundle.name);
                return Err(Advice::new(message, hint).into());
            }
            named.iter().map(ToString::to_string).collect()
        }
    };
    Ok(options.digests.contains(&case.candidate.bundle.digest).then_some(granted))
}

/// Asks a person; returns the granted permissions, or `None` if the person does not agree.
pub(super) async fn ask(name: &str, undecided: &[String]) -> Option<Vec<String>> {
    let name = one_line(name);
    if undecided.is_empty() {
        return is_yes(&format!("Install this release of `{name}`? Type yes: ")).await.then(Vec::new);
    }
    let words = "Install with [a]ll, [s]ome or [w]ithout these permissions, or do [N]ot install? ";
    match question(&format!("{name}: {words}")).await?.to_lowercase().as_str() {
        "a" | "all" => Some(undecided.to_vec()),
        "w" | "without" => Some(Vec::new()),
        "s" | "some" => {
            let mut granted = Vec::new();
            for (request, phrase) in ranked(undecided) {
                // The end of the input is no answer: nothing is installed.
                let typed = question(&format!("Grant: {phrase}? Type yes: ")).await?;
                if is_agreement(&typed) {
                    granted.push(request.to_owned());
                }
            }
            Some(granted)
        }
        _ => None,
    }
}

async fn is_yes(text: &str) -> bool {
    question(text).await.is_some_and(|typed| is_agreement(&typed))
}

fn is_agreement(typed: &str) -> bool {
    matches!(typed.to_lowercase().as_str(), "y" | "yes")
}
