//! The capabilities that a program could request by its imports, and who grants each.

use serde::Serialize;

/// Capability of a program, as a person sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Capability {
    /// An interface that the host does not know and never links.
    Unknown,
    /// Sockets: known, and never granted.
    Sockets,
    /// Outgoing requests by HTTP.
    Http,
    /// Files and folders.
    Files,
    /// Arguments and variables of the environment.
    Environment,
    /// The names of the tool's secrets.
    Secrets,
    /// The host's model.
    Model,
    /// Other tools of the crib.
    Tools,
    /// Values stored for the run.
    Cache,
    /// Values stored under keys, by the interface that other hosts offer too.
    KeyValue,
    /// Settings that the operator wrote for the tool.
    Config,
    /// Content and progress that people see during a call.
    Progress,
    /// Log messages for people.
    Logging,
    /// Standard input, output and error.
    Streams,
    /// The streams and polling that other interfaces use.
    Io,
    /// The time, and waiting.
    Clock,
    /// Random numbers.
    Random,
    /// The program's exit.
    Exit,
    /// Type definitions without functions.
    Types,
}

/// Authority that decides about a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Granted {
    /// Available to every tool.
    Always,
    /// Available to a tool that requests it, and to one that states no requests.
    #[serde(rename = "asked")]
    OnRequest,
    /// Granted by the operator's flags or manifest.
    Flags,
    /// Never available.
    Never,
}

impl Capability {
    /// Returns the name for people.
    pub fn words(self) -> &'static str {
        self.row().0
    }

    /// Returns the authority that decides about it.
    pub fn granted(self) -> Granted {
        self.row().1
    }

    /// Returns the flags that grant it. Nothing of it is available without one of them or a statement in the operator's own
    /// manifest; arguments alone are always available.
    pub fn flags(self) -> &'static [&'static str] {
        self.row().2
    }

    /// The table of capabilities: name for people, authority, flags.
    fn row(self) -> (&'static str, Granted, &'static [&'static str]) {
        match self {
            Self::Unknown => ("unknown", Granted::Never, &[]),
            Self::Sockets => ("sockets", Granted::Never, &[]),
            Self::Http => ("http (outgoing)", Granted::Flags, &["--allow-net"]),
            Self::Files => ("files", Granted::Flags, &["--allow-read", "--allow-write"]),
            Self::Environment => ("environment and arguments", Granted::Flags, &["--allow-env"]),
            Self::Secrets => ("names of its secrets", Granted::Flags, &["--allow-secret"]),
            Self::Model => ("the run's model", Granted::Flags, &["--allow-model"]),
            Self::Tools => ("other tools", Granted::Flags, &["--allow-call"]),
            Self::Cache => ("cache of the run", Granted::OnRequest, &[]),
            Self::KeyValue => ("key-value store", Granted::OnRequest, &[]),
            Self::Config => ("config", Granted::Always, &[]),
            Self::Progress => ("progress", Granted::Always, &[]),
            Self::Logging => ("log", Granted::Always, &[]),
            Self::Streams => ("standard streams", Granted::Always, &[]),
            Self::Io => ("bytes and waiting", Granted::Always, &[]),
            Self::Clock => ("clock", Granted::Always, &[]),
            Self::Random => ("random numbers", Granted::Always, &[]),
            Self::Exit => ("exit", Granted::Always, &[]),
            Self::Types => ("type definitions only", Granted::Always, &[]),
        }
    }
}
