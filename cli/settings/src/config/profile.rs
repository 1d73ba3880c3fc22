//! Profile of the settings that this process uses.

use std::sync::OnceLock;

/// Name of this process's profile.
static PROFILE: OnceLock<String> = OnceLock::new();

/// Chooses the profile for the whole program; only the first call has an effect.
pub fn use_profile(name: Option<String>) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        // Fails only on a second call; `main` makes the only one.
        let _ = PROFILE.set(name);
    }
}

/// Returns the chosen profile.
pub fn profile() -> Option<&'static str> {
    PROFILE.get().map(String::as_str)
}
