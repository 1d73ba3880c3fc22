//! Check of the sign-in at a server: its file, and each issuer's metadata and keys.

use std::path::{Path, PathBuf};

use toolcrib_base::render::{counted, hint_of, message};
use toolcrib_mcp::SignIn;
use toolcrib_settings::config::Layers;
use toolcrib_sources::options::Sources;

use super::{Finding, Status};

const CHECK: &str = "sign-in";
/// Setting with the file.
const SETTING: &str = "server.sign_in";

/// Checks the file that the settings name, if they name one.
pub(super) async fn all(sources: &Sources) -> Vec<Finding> {
    let Some(file) = file(sources) else { return Vec::new() };
    let shown = file.display();
    match SignIn::check(&file).await {
        Ok(issuers) => issuers.into_iter().map(|(issuer, keys)| finding(&file, &issuer, keys)).collect(),
        Err(error) => {
            let fix = hint_of(&error).unwrap_or_else(|| format!("correct the file that `{SETTING}` names"));
            vec![Finding::wrong(CHECK, Status::Fail, format!("{shown}: {}", message(&error)), fix)]
        }
    }
}

fn finding(file: &Path, issuer: &str, keys: anyhow::Result<usize>) -> Finding {
    let shown = format!("{}: issuer {issuer}", file.display());
    match keys {
        Ok(keys) => Finding::ok(CHECK, format!("{shown}, {}", counted(keys, "key"))),
        Err(error) => {
            let fix = "no one can sign in with this issuer until its keys can be read: check its address in the file, and the network";
            Finding::wrong(CHECK, Status::Fail, format!("{shown}: {}", message(&error)), fix)
        }
    }
}

/// Returns the file of the sign-in. Another check reports settings that cannot be read.
fn file(sources: &Sources) -> Option<PathBuf> {
    let layers = Layers::load(sources.rules.config_file(), &sources.trust.trusted().ok()?).ok()?;
    let (layer, setting) = layers.settings_of(SETTING).find(|(layer, setting)| layer.applies(setting))?;
    layer.texts(setting).into_iter().next().map(PathBuf::from)
}
