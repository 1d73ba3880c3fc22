//! Settings of a running server: their files are read again when they change. A mistake in one changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolcrib_base::file_version::FileVersion;
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
    present: ServerOptions,
    settings: watch::Sender<LiveSettings>,
    quotas: Option<Arc<Quotas>>,
}

/// Follows the settings of a server as long as it runs.
pub(super) fn follow(
    named: Option<&Path>,
    present: ServerOptions,
    quotas: Option<Arc<Quotas>>,
) -> watch::Receiver<LiveSettings> {
    let project = if named.is_some() { None } else { default_file() };
    let files = named.map(Path::to_path_buf).into_iter().chain(project).chain(user_file()).chain(system_file());
    let (settings, receiver) = watch::channel(present.live.clone());
    let mut followed = Followed { files: files.collect(), present, settings, quotas };
    tokio::spawn(async move {
        // Unknown at first: the files may have changed since they were read.
        let mut seen = Vec::new();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let files = followed.files.clone();
            let look = move || {
                let found: Vec<_> = files.iter().map(|file| Some(FileVersion::of(&file.metadata().ok()?))).collect();
                let read = (found != seen).then(|| super::read_again().and_then(|args| args.checked()));
                (found, read)
            };
            let Ok((found, read)) = tokio::task::spawn_blocking(look).await else { return };
            seen = found;
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

impl Followed {
    /// Applies options that can change, and names those that cannot.
    fn change(&mut self, options: ServerOptions) {
        let is_of_live = options.live != self.present.live || options.quotas != self.present.quotas;
        if is_of_live {
            self.quotas.iter().for_each(|quotas| quotas.change(options.quotas.clone()));
            self.settings.send_replace(options.live.clone());
            render::aside("the settings of the server were read again");
        }
        let fixed = options.fixed.iter().zip(&self.present.fixed).filter(|(new, old)| new != old);
        let names: Vec<_> = fixed.map(|((name, _), _)| format!("`server.{name}`")).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            render::warning(&format!("{names}: the change applies from the next start of the server on"));
        }
        self.present = options;
    }
}
