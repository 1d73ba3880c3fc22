//! Retention: whole files of the log are removed by age, oldest first. The newest file stays, and so does every file that a registered
//! forwarder has not sent to its end.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use toolcrib::audit::Day;

use super::cursor::registered;

/// Result of a removal.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrunedLog {
    /// Removed files, or those that a trial would remove.
    pub removed: Vec<PathBuf>,
    /// Old files that stay because a forwarder has not sent them.
    pub not_sent: Vec<PathBuf>,
    /// Target of the forwarder that is furthest behind.
    pub target: Option<String>,
}

/// Removes the files of days before `oldest`, or only lists them in a trial.
///
/// # Errors
///
/// The log or a cursor cannot be read, or a file cannot be removed.
pub fn prune(log: &Path, oldest: Day, is_trial: bool) -> anyhow::Result<PrunedLog> {
    let mut files = files(log)?;
    // Writers append to the newest one.
    files.pop();
    // Numbers restart in a log that was begun anew; a target without a record is behind everything.
    let behind = registered(log)?.into_iter().min_by_key(|cursor| cursor.place.map(|place| (place.day, place.seq)));
    let mut pruned = PrunedLog::default();
    for (day, path) in files.into_iter().take_while(|(day, _)| *day < oldest) {
        // A cursor in a later file has passed this one.
        if let Some(cursor) = behind.as_ref().filter(|cursor| cursor.place.is_none_or(|place| place.day <= day)) {
            pruned.target = Some(cursor.target.clone());
            pruned.not_sent.push(path);
            continue;
        }
        if !is_trial {
            fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", path.display()))?;
        }
        pruned.removed.push(path);
    }
    Ok(pruned)
}

/// Lists the files of the log, oldest first.
fn files(log: &Path) -> anyhow::Result<Vec<(Day, PathBuf)>> {
    let mut files = Vec::new();
    for entry in log.read_dir().with_context(|| format!("cannot read `{}`", log.display()))? {
        let path = entry?.path();
        let day = path.file_name().and_then(|name| name.to_str()).and_then(day_of);
        files.extend(day.filter(|_| path.is_file()).map(|day| (day, path)));
    }
    files.sort();
    Ok(files)
}

/// Parses the name of a log file.
fn day_of(name: &str) -> Option<Day> {
    let digits = name.strip_suffix(".log").filter(|digits| digits.len() == 8 && digits.is_ascii())?;
    format!("{}-{}-{}", &digits[..4], &digits[4..6], &digits[6..]).parse().ok()
}

#[cfg(test)]
mod tests {
    use toolcrib::audit::LogPlace;

    use super::*;
    use crate::cursor::{Cursor, beside};
    use crate::sample_log;

    #[test]
    fn old_files_are_removed_unless_they_are_the_newest_or_not_sent() {
        let log = tempfile::tempdir().unwrap();
        let mut end = sample_log::start();
        for day in ["20260301", "20260302", "20260303", "20260304"] {
            end = sample_log::append(log.path(), day, end, 2);
        }
        fs::write(log.path().join("20260230.log"), "").unwrap();
        fs::write(log.path().join("notes.log"), "").unwrap();
        let day = |text: &str| text.parse::<Day>().unwrap();
        let names = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
        };
        let cursor = Cursor::lock(&beside(log.path(), "out"), "out").unwrap().unwrap();
        let chain = end.1.parse().unwrap();
        cursor.write(LogPlace { seq: 4, chain, day: day("2026-03-02"), offset: 0 }).unwrap();
        let trial = prune(log.path(), day("2026-03-09"), true).unwrap();
        assert_eq!(names(&trial.removed), ["20260301.log"]);
        assert_eq!(names(&trial.not_sent), ["20260302.log", "20260303.log"]);
        assert_eq!(trial.target.as_deref(), Some("out"));
        let new = Cursor::lock(&beside(log.path(), "new"), "new").unwrap().unwrap();
        let pruned = prune(log.path(), day("2026-03-09"), false).unwrap();
        assert_eq!((pruned.removed.len(), pruned.not_sent.len(), pruned.target.as_deref()), (0, 3, Some("new")));
        // The numbers of a log that was begun anew are smaller than those before.
        new.write(LogPlace { seq: 1, chain, day: day("2026-03-03"), offset: 0 }).unwrap();
        assert!(trial.removed[0].exists());
        assert_eq!(prune(log.path(), day("2026-03-09"), false).unwrap(), trial);
        assert!(!trial.removed[0].exists() && trial.not_sent.iter().all(|path| path.exists()));
        cursor.write(LogPlace { seq: 8, chain, day: day("2026-03-04"), offset: 0 }).unwrap();
        new.write(LogPlace { seq: 2, chain, day: day("2026-03-04"), offset: 0 }).unwrap();
        assert_eq!(names(&prune(log.path(), day("2026-03-03"), false).unwrap().removed), ["20260302.log"]);
        assert_eq!(names(&prune(log.path(), day("2026-03-09"), false).unwrap().removed), ["20260303.log"]);
        assert_eq!(prune(log.path(), day("2026-03-09"), false).unwrap(), PrunedLog::default(), "the newest stays");
    }
}
