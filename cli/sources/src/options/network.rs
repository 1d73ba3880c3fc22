//! Options for network access of tools: destinations, name servers, certificates.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use toolcrib::Builder;
use toolcrib::policy::Permission;
use toolcrib::tool::Destination;
use toolcrib_base::headings::{LIMITS, PERMISSIONS};
use toolcrib_base::parse::name_server;
use toolcrib_base::parse::{MAX_COUNT, count, size};
use toolcrib_base::{input, render};
use toolcrib_settings::selection::ALL;
use toolcrib_settings::selection::{Limited, destinations};

/// Destinations that tools may or may not reach.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Destinations {
    /// Allow requests to DEST: `api.example.com` (https), `*.example.com`, `HOST:PORT`, `http://HOST`,
    /// `10.0.0.0/8:443` or `GET,HEAD HOST`; private addresses must be allowed by address, even if a name resolves to them
    #[arg(long, value_name = "DEST", value_parser = destinations, help_heading = PERMISSIONS)]
    allow_net: Vec<Limited<Destination>>,
    /// Deny requests to DEST, or everywhere; overrides any --allow-* flag
    #[arg(long, value_name = "DEST", value_parser = destinations, help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_net: Vec<Limited<Destination>>,
}

/// Resolution, certificates and limits of requests.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Network {
    /// Resolve host names with this name server instead of the system's
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = name_server, value_delimiter = ',', help_heading = PERMISSIONS)]
    dns: Vec<SocketAddr>,
    /// Trust the root certificates in this PEM file, in addition to the system's
    #[arg(long, value_name = "FILE", help_heading = PERMISSIONS)]
    net_ca: Vec<PathBuf>,
    /// Maximum requests per call
    #[arg(long, value_name = "N", value_parser = count::<u32, 1, MAX_COUNT>, help_heading = LIMITS)]
    pub(super) max_requests: Option<u32>,
    /// Maximum response bytes per call, such as `1MiB`
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = LIMITS)]
    pub(super) max_received: Option<usize>,
}

impl Destinations {
    /// Returns the allowed destinations.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        self.allow_net.iter().flat_map(|list| list.permissions(Permission::Net))
    }

    /// Returns the denied destinations.
    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        self.deny_net.iter().flat_map(|list| list.permissions(Permission::Net))
    }
}

impl Network {
    /// Adds the name servers and root certificates to a runtime.
    pub(super) fn configure(&self, builder: Builder) -> anyhow::Result<Builder> {
        let mut builder = builder.name_servers(self.dns.iter().copied());
        for path in &self.net_ca {
            let name = render::from_here(path).display().to_string();
            let context = || format!("cannot load the certificates in `{name}`");
            builder =
                builder.root_certificates(input::file(path).with_context(context)?.as_bytes()).with_context(context)?;
            builder = builder.protect(path);
        }
        Ok(builder)
    }
}
