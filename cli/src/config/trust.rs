//! Settings of a file that count only once it is trusted. Without trust, a file can ask and deny: both only restrict. A mask
//! does not only restrict: a tool that names one can be called once it exists.

use std::path::{Path, PathBuf};

use toolcrib::call::Behavior;
use toolcrib::policy::canonical;

use crate::trust::Subject;

use super::Config;

/// Prefix of the requests of a settings file.
const REQUEST: &str = "setting:";

impl Config {
    /// Returns the file as a subject of trust, with the settings that only count once it is trusted.
    pub(crate) fn subject(&self, path: &Path) -> Subject {
        let path = canonical(path).unwrap_or_else(|_| path.to_path_buf());
        Subject::of_settings(path, &self.text, self.restricted())
    }

    /// Returns the settings that count without trust.
    pub(crate) fn untrusted(self) -> Self {
        let Self { path, text, mut rules, .. } = self;
        rules.retain(|rule| rule.behavior() != Behavior::Allow);
        Self { path, text, rules, ..Self::default() }
    }

    /// Lists the settings that only count once the file is trusted, by name, with their values as requests.
    fn restricted(&self) -> Vec<(String, Vec<String>)> {
        let allow = self.rules.iter().filter(|rule| rule.behavior() == Behavior::Allow);
        let allow: Vec<String> = allow.map(|rule| rule.pattern().as_str().to_owned()).collect();
        let default = Self::default();
        let servers: Vec<String> = self.name_servers.iter().map(ToString::to_string).collect();
        let routes: Vec<String> = self.routes.iter().map(|(name, tool)| format!("{name} to {tool}")).collect();
        let tools: Vec<String> = self.tools.iter().map(|(tool, settings)| format!("{tool}: {settings}")).collect();
        let number = |value: Option<usize>| value.map(|value| value.to_string()).into_iter().collect();
        let scheduler = match self.scheduler == default.scheduler {
            true => Vec::new(),
            false => vec![format!("{:?}", self.scheduler)],
        };
        let masks: Vec<String> = self.masks.iter().map(|mask| mask.name.clone()).collect();
        let settings: [(&str, Vec<String>); 9] = [
            ("permissions.allow", allow),
            ("masks", masks),
            ("routes", routes),
            ("network.nameservers", servers),
            ("config", tools),
            ("run.tags", self.tags.clone()),
            ("scheduler", scheduler),
            ("scheduler.defer_above", number(self.defer_above)),
            ("results.max_inline", number(self.max_inline)),
        ];
        let named = settings.into_iter().filter(|(_, values)| !values.is_empty());
        named
            .map(|(name, values)| {
                let requests = values.iter().map(|value| format!("{REQUEST}{name} = {value}")).collect();
                (name.to_owned(), requests)
            })
            .collect()
    }
}

/// Path of the default settings file, absolute, if it exists.
pub(crate) fn default_file() -> Option<PathBuf> {
    let path = Path::new(super::DEFAULT_FILE);
    path.try_exists().unwrap_or(true).then(|| path.to_path_buf())
}
