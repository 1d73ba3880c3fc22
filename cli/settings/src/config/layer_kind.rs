//! Kinds of settings layers.

/// Kinds of layers, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerKind {
    /// Assignments of `--set` on the command line.
    Set,
    /// The file that the user names in the place of the project's: it is their own.
    Named,
    /// `./toolcrib.toml`, which others may have written.
    Project,
    /// Profile in the user's file.
    Profile,
    /// The user's file.
    User,
    /// The system's file.
    System,
}

impl LayerKind {
    /// Returns `true` for settings that the user gives with the command, as they give options: they hold for this command alone.
    pub fn is_given(self) -> bool {
        matches!(self, LayerKind::Set | LayerKind::Named)
    }

    /// Name of the layer.
    pub fn as_str(self) -> &'static str {
        match self {
            LayerKind::Set => "set",
            LayerKind::Named => "named",
            LayerKind::Project => "project",
            LayerKind::Profile => "profile",
            LayerKind::User => "user",
            LayerKind::System => "system",
        }
    }
}
