//! Quotas for the tokens of `toolcrib mcp --http`, from the settings.

use std::time::Duration;

use toolcrib_base::parse::{count, duration, size, window};
use toolcrib_shared_state::QuotaLimits;

/// Quotas. The settings are their names; the options exist for these alone.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct QuotaOptions {
    /// Length of the window that quotas are for
    #[arg(long, value_name = "TIME", value_parser = window, default_value = "1h", requires = "http", hide = true)]
    quota_window: Duration,
    /// Calls of a token in a window
    #[arg(long, value_name = "N", value_parser = count::<u64, 1, { u64::MAX }>, requires = "http", hide = true)]
    quota_calls: Option<u64>,
    /// Processor time for all calls of a token in a window
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "http", hide = true)]
    quota_cpu: Option<Duration>,
    /// Bytes that the calls of a token take, print, write, send and receive in a window
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "http", hide = true)]
    quota_bytes: Option<usize>,
    /// Calls of a token at once
    #[arg(long, value_name = "N", value_parser = count::<u32, 1, 65_536>, requires = "http", hide = true)]
    quota_running: Option<u32>,
}

impl QuotaOptions {
    /// Returns the quotas; `None` if no part has a limit.
    pub(super) fn limits(&self) -> Option<QuotaLimits> {
        let limits = QuotaLimits {
            window: self.quota_window,
            calls: self.quota_calls,
            cpu: self.quota_cpu,
            bytes: self.quota_bytes.map(|bytes| bytes as u64),
            running: self.quota_running,
        };
        let none = QuotaLimits { window: self.quota_window, calls: None, cpu: None, bytes: None, running: None };
        (limits != none).then_some(limits)
    }
}
