//! Effects of a command on the user's files: held back in a stage, or noted in the history so that they can be taken back.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolcrib::Builder;
use toolcrib::observe::SentRequests;
use toolcrib::staging::{History, HistoryLimits, Record, RecordHeader, Stage};
use toolcrib_base::folders::state_folder;
use toolcrib_base::render::{self, Advice};
use toolcrib_settings::config::Config;
use toolcrib_settings::trust::{TrustRecords, Trusted};

use super::stage::StageOption;

const DAY: u64 = 24 * 60 * 60;

/// Stage and record of a command's calls.
#[derive(Debug, Clone)]
pub struct Effects {
    stage: Option<Arc<Stage>>,
    record: Option<Arc<Record>>,
    sent: Arc<SentRequests>,
}

/// Effects of a command that has ended, with a stage.
#[derive(Debug)]
pub struct ClosedStage {
    /// The stage, which no call uses any more.
    pub stage: Arc<Stage>,
    /// Requests that the calls have sent, a line for each method and host.
    pub sent: Vec<String>,
}

impl Effects {
    /// Opens the stage of a command, if it has one, and begins a record for the changes by its calls.
    ///
    /// # Errors
    ///
    /// The stage cannot be opened, or a mistake in the settings.
    pub fn open(stage: &StageOption, command: &str, run: Option<&str>, config: Option<&Path>) -> anyhow::Result<Self> {
        let config = settings(config)?;
        let stage = stage.open(run, config.stage)?;
        let header = RecordHeader { run: run.map(str::to_owned), ..header(command) };
        let history = history_of(&config);
        // What is too old goes also if nothing is noted any more.
        let _ = history.as_ref().filter(|_| config.history.days == 0).map(History::remove_old);
        Ok(Self { stage, record: history.map(|history| history.begin(header)), sent: Arc::default() })
    }

    /// Holds back what the tools of a runtime write and counts what they send, or notes what they write.
    pub fn attach(&self, builder: Builder) -> Builder {
        let builder = self.record.iter().fold(builder, |builder, record| builder.record(record.clone()));
        match &self.stage {
            Some(stage) => builder.stage(stage.clone()).observer(self.sent.clone()),
            None => builder,
        }
    }

    /// Returns the stage with what was sent, once no call uses it any more, after a warning about changes that were not noted.
    pub fn close(self) -> Option<ClosedStage> {
        self.record.iter().for_each(|record| warn_about_record(record));
        let Self { stage, sent, .. } = self;
        stage.map(|stage| ClosedStage { stage, sent: sent.lines().iter().map(|line| render::one_line(line)).collect() })
    }
}

/// Warns about changes that cannot be taken back, because they, or the contents before them, were not noted.
pub fn warn_about_record(record: &Record) {
    if let Some(problem) = record.problem() {
        let (folder, problem) = (record.history().path().display().to_string(), render::one_line(problem));
        let folder = render::one_line(&folder);
        render::warning(&format!(
            "`toolcrib undo` does not know all changes: the history in `{folder}` cannot be written: {problem}"
        ));
    }
    if record.lost() > 0 {
        let lost = render::counted(record.lost(), "change");
        render::warning(&format!("{lost} cannot be taken back; `toolcrib undo --dry-run` names the reason"));
    }
}

/// Returns the facts for a record of a command that begins now.
pub fn header(command: &str) -> RecordHeader {
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).as_ref().map_or(0, Duration::as_secs);
    RecordHeader { command: command.to_owned(), begun, ..RecordHeader::default() }
}

/// Returns the user's history with the limits of the settings; `None` if there is no folder for it.
///
/// # Errors
///
/// A mistake in the settings.
pub fn history() -> anyhow::Result<Option<History>> {
    Ok(history_of(&settings(None)?))
}

fn settings(file: Option<&Path>) -> anyhow::Result<Config> {
    Config::load(file, &Trusted::read(&[], TrustRecords::of_user().as_ref())?, false)
}

fn history_of(config: &Config) -> Option<History> {
    let limits = config.history;
    let (bytes, age) = match limits.days {
        0 => (0, Duration::ZERO),
        days => (limits.bytes, Duration::from_secs(days * DAY)),
    };
    state_folder("history").map(|folder| History::new(folder, HistoryLimits { bytes, file: limits.file, age }))
}

/// Returns the user's history, for a command that needs it.
///
/// # Errors
///
/// As for [`history`], and if there is no folder for it.
pub fn required_history() -> anyhow::Result<History> {
    history()?.ok_or_else(|| {
        Advice::new(
            "no folder for the history: no home directory was found",
            "set `HOME`, or on Linux `XDG_STATE_HOME`",
        )
        .into()
    })
}
