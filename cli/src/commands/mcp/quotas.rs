//! Quotas for the tokens of `toolcrib mcp --http`, from the settings.

use std::time::Duration;

use toolcrib_base::parse::{ToolQuota, count, duration, size, tool_quota, window};
use toolcrib_mcp::QuotaRules;
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
    /// Calls of a token to a tool, or to those of a pattern, in a window, such as `fetch_page=100`; the first one that names a tool
    /// applies
    #[arg(long, value_name = "TOOL=N", value_parser = tool_quota, value_delimiter = ',', requires = "http", hide = true)]
    quota_tools: Vec<ToolQuota>,
}

impl QuotaOptions {
    /// Returns the quotas.
    pub(super) fn rules(&self) -> QuotaRules {
        let limits = QuotaLimits {
            window: self.quota_window,
            calls: self.quota_calls,
            cpu: self.quota_cpu,
            bytes: self.quota_bytes.map(|bytes| bytes as u64),
            running: self.quota_running,
        };
        let none = QuotaLimits { window: self.quota_window, calls: None, cpu: None, bytes: None, running: None };
        QuotaRules {
            all: (limits != none).then_some(limits),
            window: self.quota_window,
            tools: self.quota_tools.clone(),
        }
    }
}
