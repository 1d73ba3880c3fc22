//! Check of the remote servers whose tools are installed: reachability, tokens, and differences from the pinned definitions. No
//! tool is called.

use std::path::PathBuf;

use futures::stream::{self, StreamExt};
use toolcrib::source;
use toolcrib::tool::{Body, Remote};
use toolcrib_base::render::{counted, listed, message};
use toolcrib_packages::install::available_here;
use toolcrib_packages::servers::{ServerAccess, ServerSource, difference};
use toolcrib_settings::permission::DenyFlags;
use toolcrib_sources::options::Sources;

use super::{Finding, Status};

const CHECK: &str = "server";
/// Maximum number of servers that are checked.
const MAX_SERVERS: usize = 32;
/// Maximum number of servers at once.
const AT_ONCE: usize = 4;

/// Checks each installed server.
pub(super) async fn all(sources: &Sources) -> Vec<Finding> {
    // Another check reports a lock that cannot be read.
    let bundles = available_here().map(|available| available.bundles).unwrap_or_default();
    let (access, denied) = (sources.secrets.servers(), sources.deny_flags());
    let installed = bundles.into_iter().filter_map(|bundle| Some((bundle.name, remotes(bundle.file)?, bundle.granted)));
    let mut installed: Vec<_> = installed.collect();
    let more = installed.len().saturating_sub(MAX_SERVERS);
    installed.truncate(MAX_SERVERS);
    let checks = stream::iter(installed).map(|(name, remotes, granted)| {
        let access = ServerAccess { granted, ..access.clone() };
        check(name, remotes, access, &denied)
    });
    let checks = checks.buffered(AT_ONCE);
    let mut findings: Vec<Finding> = checks.collect().await;
    if more > 0 {
        findings.push(Finding::wrong(
            CHECK,
            Status::Warn,
            format!("{more} more: not checked"),
            "remove servers that are not used",
        ));
    }
    findings
}

/// Returns the tools of a bundle that are on a server; `None` if it has none.
fn remotes(file: PathBuf) -> Option<Vec<Remote>> {
    let loaded = source::load_usable(&file).ok()?;
    let remote = |body: &Body| match body {
        Body::Remote(remote) => Some((**remote).clone()),
        _ => None,
    };
    let remotes: Vec<Remote> = loaded.tools.iter().filter_map(|tool| remote(&tool.body)).collect();
    Some(remotes).filter(|remotes| !remotes.is_empty())
}

async fn check(name: String, remotes: Vec<Remote>, mut access: ServerAccess, denied: &DenyFlags) -> Finding {
    let server = &remotes[0].server;
    let source = ServerSource { address: server.address.clone(), secret: server.secret.clone(), prefix: String::new() };
    let host = format!("net:{}", server.address.destination());
    let asked = std::iter::once(host).chain(source.capability());
    if let Some(denial) = asked.filter_map(|capability| denied.overriding(&name, &capability)).next() {
        let detail = format!("{name}: not asked, since `{denial}` denies it");
        return Finding::wrong(CHECK, Status::Warn, detail, "remove the denial to use the server");
    }
    if let Some(capability) = source.capability().filter(|capability| !access.granted.contains(capability)) {
        let detail = format!("{name}: not asked, since `{capability}` is not granted");
        let fix = "install it again and grant the secret to the server";
        return Finding::wrong(CHECK, Status::Warn, detail, fix);
    }
    if source.secret.is_none() {
        // A login after the installation grants its tools no token.
        access.logins = None;
    }
    let update = format!("`toolcrib update {name}` shows the differences and asks");
    let pinning = match access.pinning(&source).await {
        Ok(pinning) => pinning,
        Err(error) => {
            let fix =
                toolcrib_base::render::hint_of(&error).unwrap_or_else(|| "check that the server is running".to_owned());
            return Finding::wrong(CHECK, Status::Fail, format!("{name}: {}", message(&error)), fix);
        }
    };
    let changed: Vec<String> = remotes
        .iter()
        .filter(|remote| difference(remote, &pinning.listing).is_some())
        .map(|remote| remote.name.clone())
        .collect();
    let title = pinning.title.map(|title| format!("{title}, ")).unwrap_or_default();
    let state = format!("{name}: {title}revision {}", pinning.revision);
    if !changed.is_empty() {
        let detail =
            format!("{state}: {} differ from what you agreed to: {}", counted(changed.len(), "tool"), listed(&changed));
        return Finding::wrong(CHECK, Status::Fail, detail, update);
    }
    let is_known = |tool: &serde_json::Value| remotes.iter().any(|remote| tool["name"] == remote.name.as_str());
    let new = pinning.listing.tools.iter().filter(|tool| !is_known(tool)).count();
    let tools = counted(remotes.len(), "tool");
    match new {
        0 => Finding::ok(CHECK, format!("{state}, {tools} as you agreed to")),
        new => Finding::wrong(
            CHECK,
            Status::Warn,
            format!("{state}, {tools} as you agreed to, and {} not installed", counted(new, "new tool")),
            update,
        ),
    }
}
