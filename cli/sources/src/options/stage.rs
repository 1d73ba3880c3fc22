//! Option that holds back what tools write, in a stage that is committed or dropped later.

use std::io::ErrorKind;
use std::sync::Arc;

use toolcrib::staging::{Limits, Stage, Stages};
use toolcrib_base::folders::state_folder;
use toolcrib_base::headings::PERMISSIONS;
use toolcrib_base::render::{self, Advice};
use toolcrib_base::short_id;

/// Option for the stage of a command.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct StageOption {
    /// Hold back what tools write, until `toolcrib stage commit`; the name of a stage continues it
    ///
    /// The tools see their own changes, and the granted folders stay as they are. Requests are sent as they are made.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(help_heading = PERMISSIONS)]
    stage: Option<String>,
}

impl StageOption {
    /// Returns `true` if the option is given.
    pub fn is_given(&self) -> bool {
        self.stage.is_some()
    }

    /// Opens the stage; one without a name gets this one, or a random one. A run that has a stage goes on in it without the option.
    /// With `is_default`, a command without the option has a stage too.
    ///
    /// # Errors
    ///
    /// The stage is in use, its commit has begun, or it cannot be written.
    pub(super) fn open(&self, name: Option<&str>, is_default: bool) -> anyhow::Result<Option<Arc<Stage>>> {
        let name = match (self.stage.as_deref(), name) {
            (None, Some(name))
                if stages()
                    .is_ok_and(|stages| stages.names().is_ok_and(|known| known.iter().any(|one| one == name))) =>
            {
                render::aside(&format!("the run continues in its stage `{name}`"));
                name.to_owned()
            }
            (None, _) if !is_default => return Ok(None),
            (None | Some(""), Some(name)) => name.to_owned(),
            (None | Some(""), None) => short_id::random()?,
            (Some(name), _) => name.to_owned(),
        };
        stages()?.open(&name, Limits::default()).map(Some).map_err(|error| refused(&name, &error))
    }
}

/// Returns the stages of the user.
///
/// # Errors
///
/// The user has no home directory.
pub fn stages() -> anyhow::Result<Stages> {
    let no_folder =
        || Advice::new("no folder for stages: no home directory was found", "set `HOME`, or on Linux `XDG_STATE_HOME`");
    Ok(Stages::new(state_folder("stages").ok_or_else(no_folder)?))
}

/// Returns the place for the stages of single calls.
///
/// # Errors
///
/// The system has no stages, or as for [`stages`].
pub(super) fn for_calls() -> anyhow::Result<Stages> {
    match cfg!(target_os = "linux") {
        true => stages(),
        false => Err(Advice::new(
            "a rule holds back writes, but stages are not available on this system",
            "leave out --stage-tool, `permissions.stage` and `permissions.hold`, and ask before the calls: --ask-tool",
        )
        .into()),
    }
}

/// Explains why a stage cannot be opened.
pub fn refused(name: &str, error: &std::io::Error) -> anyhow::Error {
    let name = render::excerpt(name);
    let (message, hint) = match error.kind() {
        ErrorKind::InvalidInput => (format!("`{name}` is not a valid stage name: {error}"), "choose another name"),
        ErrorKind::WouldBlock => (
            format!("another process works in the stage `{name}`"),
            "wait for its end, or choose another name; `toolcrib stage diff` reads it meanwhile",
        ),
        ErrorKind::ResourceBusy => (
            format!("the commit of the stage `{name}` was interrupted"),
            "finish it with `toolcrib stage commit`, or choose another name",
        ),
        ErrorKind::Unsupported => ("stages are not available on this system".to_owned(), "leave out --stage"),
        ErrorKind::NotFound => (format!("no stage `{name}`"), "`toolcrib stage list` lists all stages"),
        _ => {
            (format!("cannot open the stage `{name}`: {error}"), "check the disk and the rights of the state directory")
        }
    };
    Advice::new(message, hint).into()
}
