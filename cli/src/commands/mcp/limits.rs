//! Options for the limits of `toolcrib mcp --http`.

use std::time::Duration;

use toolcrib_base::parse::{count, delay, duration, size};
use toolcrib_mcp::Limits;

/// Heading of the options in the help.
const HEADING: &str = "HTTP limits";

/// Limits of a server over HTTP.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct LimitOptions {
    /// Maximum connections at once; the next one waits
    #[arg(long, value_name = "N", value_parser = count::<u32, 1, 65_536>, default_value = "1024")]
    #[arg(requires = "http", help_heading = HEADING)]
    max_connections: u32,
    /// Maximum requests at once
    #[arg(long, value_name = "N", value_parser = count::<u32, 1, 65_536>, default_value = "4096")]
    #[arg(requires = "http", help_heading = HEADING)]
    max_running: u32,
    /// Maximum conversations of the earlier revision
    #[arg(long, value_name = "N", value_parser = count::<u32, 1, 65_536>, default_value = "1024")]
    #[arg(requires = "http", help_heading = HEADING)]
    max_sessions: u32,
    /// Maximum size of a request
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4MiB")]
    #[arg(requires = "http", help_heading = HEADING)]
    max_body: usize,
    /// Maximum requests of a token in one second; twice as many can come at once
    #[arg(long, value_name = "N", value_parser = count::<u32, 1, 1_000_000>, default_value = "1000")]
    #[arg(requires = "http", help_heading = HEADING)]
    max_rate: u32,
    /// Time limit for a request's head, for its body, and for the client to take a part of the answer
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    #[arg(requires = "http", help_heading = HEADING)]
    arrival_timeout: Duration,
    /// Time for running requests to finish after an interruption
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    #[arg(requires = "http", help_heading = HEADING)]
    drain_timeout: Duration,
    /// Time that `/readyz` fails before the server stops accepting requests
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "0s", hide = true)]
    #[arg(requires = "http", help_heading = HEADING)]
    drain_delay: Duration,
}

impl LimitOptions {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections as usize,
            requests: self.max_running as usize,
            body: self.max_body,
            rate: self.max_rate,
            sessions: self.max_sessions as usize,
            arrival: self.arrival_timeout,
            drain: self.drain_timeout,
            delay: self.drain_delay,
        }
    }
}
