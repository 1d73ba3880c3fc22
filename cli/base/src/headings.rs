//! Headings for option groups in the help.

/// Sources of tools.
pub const TOOLS: &str = "Tools";
/// Permissions of tools.
pub const PERMISSIONS: &str = "Permissions (none, unless granted here or by a trusted source)";
/// Limits of calls.
pub const LIMITS: &str = "Limits";
/// Files that are kept: logs, results, runs.
pub const RECORDS: &str = "Records";
/// Registries of bundles.
pub const REGISTRIES: &str = "Registries";
