//! From a name to its addresses: asked once a request, of the name servers of the system or of those that the operator
//! names, with no search domain and no cache. A resolver lives for one question, and so do its sockets and tasks.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ProtocolConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;

use super::fault::Fault;

/// The longest that a name may take.
const LONGEST: Duration = Duration::from_secs(10);
/// The longest that one name server may take for one question.
const LONGEST_QUESTION: Duration = Duration::from_secs(4);

/// Who is asked about names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The name servers that the operator named, if any.
    servers: Vec<SocketAddr>,
    config: OnceLock<Result<(ResolverConfig, ResolverOpts), String>>,
}

impl Names {
    pub(super) fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers, config: OnceLock::new() }
    }

    /// Every address of a name, at least one.
    ///
    /// # Errors
    ///
    /// [`Fault::Name`] and [`Fault::Slow`].
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Fault> {
        let resolver = self.resolver()?;
        // The dot says that the name is whole: no search domain is put behind it.
        let asked = tokio::time::timeout(LONGEST, resolver.lookup_ip(format!("{name}.")));
        let found = asked.await.map_err(|_| Fault::Slow("its name server did not answer in time"))?;
        let found = found.map_err(|error| {
            let none = error.is_no_records_found() || error.is_nx_domain();
            Fault::Name(if none { "its host has no address" } else { "its name server gave no answer" })
        })?;
        let addresses: Vec<IpAddr> = found.iter().collect();
        if addresses.is_empty() { Err(Fault::Name("its host has no address")) } else { Ok(addresses) }
    }

    fn resolver(&self) -> Result<TokioResolver, Fault> {
        let (config, options) = self.config.get_or_init(|| self.read()).clone().map_err(Fault::Host)?;
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        builder.build().map_err(|error| Fault::Host(format!("no name can be asked for: {error}")))
    }

    fn read(&self) -> Result<(ResolverConfig, ResolverOpts), String> {
        let (name_servers, mut options) = if self.servers.is_empty() {
            let read = hickory_resolver::system_conf::read_system_conf();
            let (config, options) =
                read.map_err(|_| "the system names no name server; name one for this program".to_owned())?;
            (config.name_servers, options)
        } else {
            (self.servers.iter().map(name_server).collect(), ResolverOpts::default())
        };
        options.use_hosts_file = if self.servers.is_empty() { ResolveHosts::Always } else { ResolveHosts::Never };
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = 0;
        options.attempts = 1;
        options.timeout = options.timeout.min(LONGEST_QUESTION);
        Ok((ResolverConfig::from_name_servers(name_servers), options))
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let connections = [ProtocolConfig::Udp, ProtocolConfig::Tcp].map(|protocol| {
        let mut connection = ConnectionConfig::new(protocol);
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}
