//! Requests without a name, in plain words: the tool gets at most what the user's flags grant, and trust grants nothing of
//! them.

use toolcrib::tool::{Capabilities, FileRequest, Glob, NetworkRequest};

/// Formats the requests that leave the choice to the user, one phrase each.
pub fn ceilings(requested: &Capabilities) -> Vec<String> {
    if !requested.declared {
        return vec!["permissions not declared: it can use whatever you allow".to_owned()];
    }
    let mut phrases = Vec::new();
    if let FileRequest::Workspace(access) = &requested.files {
        phrases.push(format!("{} files in folders that you grant", access.as_str()));
    }
    if requested.network == NetworkRequest::Workspace {
        phrases.push("send requests to hosts that you grant".to_owned());
    }
    for (names, phrase) in [(&requested.exec, "run programs"), (&requested.tools, "call tools")] {
        if names.iter().any(Glob::is_everything) {
            phrases.push(format!("{phrase} that you grant"));
        }
    }
    phrases
}
