//! What a guest could ask for, in words that a person understands, and who decides whether it is there.

use serde::Serialize;

/// Something that a guest could ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Capability {
    /// What nobody here knows, and nobody is given.
    Unknown,
    /// Connections of its own: known, and never granted.
    Sockets,
    /// Requests by HTTP.
    Http,
    /// Files and folders.
    Files,
    /// Its arguments and variables of the environment.
    Environment,
    /// The names of its secrets.
    Secrets,
    /// The host's model.
    Model,
    /// Other tools of the crib.
    Tools,
    /// Values that it keeps for the run.
    Cache,
    /// Values under keys, by the interface that other hosts offer too.
    KeyValue,
    /// What the operator set for it.
    Config,
    /// Parts and steps that people see while it runs.
    Progress,
    /// Notes for people.
    Logging,
    /// Standard input, output and error.
    Streams,
    /// Bytes of what the others open, and waiting for them.
    Io,
    /// The time, and waiting.
    Clock,
    /// Random numbers.
    Random,
    /// An end of its own choice.
    Exit,
    /// Types without anything to call.
    Types,
}

/// Who decides whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Granted {
    /// Nobody: it always is.
    Always,
    /// The tool, by what it states that it asks for; where it states nothing, it is there.
    CapabilityRequest,
    /// The operator, by flags or a manifest.
    Flags,
    /// Nobody: it never is.
    Never,
}

impl Capability {
    /// In words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Sockets => "sockets",
            Self::Http => "http (outgoing)",
            Self::Files => "files",
            Self::Environment => "environment and arguments",
            Self::Secrets => "names of its secrets",
            Self::Model => "the run's model",
            Self::Tools => "other tools",
            Self::Cache => "cache of the run",
            Self::KeyValue => "key-value store",
            Self::Config => "config",
            Self::Progress => "progress",
            Self::Logging => "log",
            Self::Streams => "standard streams",
            Self::Io => "bytes and waiting",
            Self::Clock => "clock",
            Self::Random => "random numbers",
            Self::Exit => "exit",
            Self::Types => "types alone",
        }
    }

    /// Who decides whether it is there.
    pub fn granted(self) -> Granted {
        match self {
            Self::Unknown | Self::Sockets => Granted::Never,
            Self::Cache | Self::KeyValue => Granted::CapabilityRequest,
            _ if self.flags().is_empty() => Granted::Always,
            _ => Granted::Flags,
        }
    }

    /// The flags that grant it. Where there are any, nothing of it is there without one of them or a word of the
    /// operator's own manifest; arguments alone are there always.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Http => &["--allow-net"],
            Self::Files => &["--allow-read", "--allow-write"],
            Self::Environment => &["--allow-env"],
            Self::Secrets => &["--allow-secret"],
            Self::Model => &["--allow-model"],
            Self::Tools => &["--allow-call"],
            _ => &[],
        }
    }
}
