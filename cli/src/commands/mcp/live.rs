//! Settings of a running server: their files are read again when they change. A mistake in one changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use tokio::sync::watch;
use toolcrib_base::file_version::FileVersion;
use toolcrib_base::http_server::ServedHost;
use toolcrib_base::render;
use toolcrib_mcp::{LiveSettings, QuotaRules, Quotas};
use toolcrib_settings::config::{default_file, system_file, user_file};

/// Time between two looks at the files.
const INTERVAL: Duration = Duration::from_secs(1);

/// Options of a server, as far as they have settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerOptions {
    pub(super) live: LiveSettings,
    pub(super) quotas: QuotaRules,
    /// Values of the keys that apply from the next start on.
    pub(super) fixed: Vec<(&'static str, String)>,
}

/// Settings that others follow, with their files.
struct Followed {
    files: Vec<PathBuf>,
    /// Options that were read last.
    present: ServerOptions,
    /// Fixed values of the running server.
    running: Vec<(&'static str, String)>,
    /// Host of the server's address for its clients.
    own_host: Option<ServedHost>,
    settings: watch::Sender<LiveSettings>,
    quotas: Option<Arc<Quotas>>,
}

/// Follows the settings of a server as long as it runs.
pub(super) fn follow(
    named: Option<&Path>,
    present: ServerOptions,
    own_host: Option<ServedHost>,
    quotas: Option<Arc<Quotas>>,
) -> watch::Receiver<LiveSettings> {
    let project = if named.is_some() { None } else { default_file() };
    let files = named.map(Path::to_path_buf).into_iter().chain(project).chain(user_file()).chain(system_file());
    let (settings, receiver) = watch::channel(with_host(&present.live, own_host.as_ref()));
    let running = present.fixed.clone();
    let mut followed = Followed { files: files.collect(), present, running, own_host, settings, quotas };
    tokio::spawn(async move {
        let mut looks = FileLooks::default();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let files = followed.files.clone();
            let look = move || {
                let change = looks.look(&files);
                let read = change.map(|change| match change {
                    FileChange::Changed => super::read_again().and_then(|args| args.checked()),
                    FileChange::Gone(file) => Err(anyhow!("`{}` is gone", file.display())),
                });
                (looks, read)
            };
            let (next, read) = match tokio::task::spawn_blocking(look).await {
                Ok(done) => done,
                // The next looks read them again.
                Err(error) => (FileLooks::default(), Some(Err(error.into()))),
            };
            looks = next;
            match read {
                None => {}
                Some(Ok(options)) => followed.change(options),
                Some(Err(error)) => {
                    render::warning(&format!("the server keeps its settings: {}", render::message(&error)));
                }
            }
        }
    });
    receiver
}

/// Versions of files at earlier looks. They are unknown at first: the files may have changed since they were read.
#[derive(Default)]
struct FileLooks {
    /// Versions that were read, or reported as gone.
    known: Option<Vec<Option<FileVersion>>>,
    /// Versions at the last look. A file that changes again may be half written.
    last: Option<Vec<Option<FileVersion>>>,
    /// `true` for a file that existed at some time.
    existed: Vec<bool>,
}

/// Change of files.
#[derive(Debug, PartialEq, Eq)]
enum FileChange {
    Changed,
    /// This file existed before.
    Gone(PathBuf),
}

impl FileLooks {
    /// Looks at the files; `None` if they are as they were, or differ from the last look.
    fn look(&mut self, files: &[PathBuf]) -> Option<FileChange> {
        let found: Vec<_> = files.iter().map(|file| Some(FileVersion::of(&file.metadata().ok()?))).collect();
        self.existed.resize(files.len(), false);
        self.existed.iter_mut().zip(&found).for_each(|(existed, found)| *existed |= found.is_some());
        let is_steady = self.last.as_ref() == Some(&found);
        self.last = Some(found.clone());
        if !is_steady || self.known.as_ref() == Some(&found) {
            return None;
        }
        let gone = self.existed.iter().zip(&found).position(|(existed, found)| *existed && found.is_none());
        self.known = Some(found);
        Some(gone.map_or(FileChange::Changed, |at| FileChange::Gone(files[at].clone())))
    }
}

/// Adds a host to settings.
fn with_host(settings: &LiveSettings, own_host: Option<&ServedHost>) -> LiveSettings {
    let mut settings = settings.clone();
    settings.hosts.extend(own_host.cloned());
    settings
}

impl Followed {
    /// Applies options that can change, and names those that cannot.
    fn change(&mut self, options: ServerOptions) {
        let is_of_live = options.live != self.present.live || options.quotas != self.present.quotas;
        if is_of_live {
            self.quotas.iter().for_each(|quotas| quotas.change(options.quotas.clone()));
            self.settings.send_replace(with_host(&options.live, self.own_host.as_ref()));
            render::aside("the settings of the server were read again");
        }
        let fixed = options.fixed.iter().zip(&self.present.fixed).zip(&self.running);
        let waiting = fixed.filter(|((new, old), running)| new != old && new != running);
        let names: Vec<_> = waiting.map(|(((name, _), _), _)| format!("`server.{name}`")).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            render::warning(&format!("{names}: the change applies from the next start of the server on"));
        }
        self.present = options;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_read_once_it_is_steady_and_not_while_one_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&files[0], "1").unwrap();
        let mut looks = FileLooks::default();
        let mut look = || looks.look(&files);
        assert_eq!((look(), look(), look()), (None, Some(FileChange::Changed), None));
        fs::write(&files[0], "").unwrap();
        assert_eq!(look(), None);
        fs::write(&files[0], "22").unwrap();
        assert_eq!((look(), look(), look()), (None, Some(FileChange::Changed), None));
        fs::write(&files[1], "new").unwrap();
        assert_eq!((look(), look()), (None, Some(FileChange::Changed)));
        fs::remove_file(&files[0]).unwrap();
        assert_eq!((look(), look(), look()), (None, Some(FileChange::Gone(files[0].clone())), None));
        fs::write(&files[1], "other").unwrap();
        assert_eq!((look(), look()), (None, Some(FileChange::Gone(files[0].clone()))));
        fs::write(&files[0], "3").unwrap();
        assert_eq!((look(), look()), (None, Some(FileChange::Changed)));
    }
}
