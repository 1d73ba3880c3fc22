//! Files of the program itself, which no grant covers.

use std::path::Path;

use toolcrib::Builder;
use toolcrib::policy::Approvals;
use toolcrib::tool::Access;
use toolcrib_base::folders::{bundles_folder, state_folder, user_folders};
use toolcrib_settings::config::{system_file, user_file};
use toolcrib_settings::permission::PendingCalls;
use toolcrib_settings::secrets::Vault;

/// Reserves the program's own files so that no grant covers them: tools could approve their own calls or open the secret
/// store. The default locations are reserved too when flags name others.
pub(super) fn keep_apart(
    builder: Builder,
    approvals: Option<&Approvals>,
    pending: Option<&PendingCalls>,
    vault: Option<&Vault>,
) -> Builder {
    let approvals = approvals.filter(|approvals| !approvals.is_shared());
    let approvals = approvals.map(|file| ("approvals", file.path().to_path_buf(), Access::Write));
    let pending = pending.filter(|pending| !pending.is_shared());
    let pending = pending.map(|file| ("pending approvals", file.path().to_path_buf(), Access::Read));
    let secrets = vault.map(|vault| ("secrets", vault.path().to_path_buf(), Access::Read));
    let key = vault.map(|vault| ("key of the secrets", vault.key_path().to_path_buf(), Access::Read));
    let state = state_folder("").map(|folder| ("state of earlier sessions", folder, Access::Read));
    let cache = user_folders().map(|user| ("default compile cache", user.cache, Access::Read));
    let installed = bundles_folder().map(|folder| ("installed bundles", folder, Access::Write));
    let settings =
        [user_file(), system_file()].into_iter().flatten().filter_map(|file| file.parent().map(Path::to_path_buf));
    let settings = settings.map(|folder| ("settings of all folders", folder, Access::Write));
    let all = [approvals, secrets, key, state, cache, installed, pending].into_iter().flatten().chain(settings);
    all.fold(builder, |builder, (what, path, least)| builder.reserve(what, path, least))
}
