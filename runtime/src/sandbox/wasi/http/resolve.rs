//! Name lookups: one per request, by the name servers that the system or the operator names, with no search domain and
//! no cache. A resolver, its sockets and its tasks live for one lookup.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ProtocolConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Hosts, TokioResolver};

use crate::sandbox::usage::{RequestError, RequestPhase};

use super::connect::MAX_CONNECT;

/// Maximum duration of one query to one name server.
const MAX_QUERY: Duration = Duration::from_secs(4);
/// Time for which the system's settings are cached.
const MAX_CACHED: Duration = Duration::from_secs(60);

/// Name resolver.
#[derive(Debug, Default)]
pub(super) struct NameResolver {
    /// Name servers of the operator, if any.
    servers: Vec<SocketAddr>,
    system: SettingsCache,
}

/// Configuration of a resolver.
#[derive(Debug)]
struct Settings {
    config: ResolverConfig,
    options: ResolverOpts,
    hosts: Arc<Hosts>,
}

/// Cached settings of the system, which are read from files.
#[derive(Debug, Default)]
struct SettingsCache(Mutex<Option<(Instant, Arc<Settings>)>>);

impl NameResolver {
    pub(super) fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers, system: SettingsCache::default() }
    }

    /// Returns every address of a name, at least one, within a time limit that may be shorter than [`MAX_CONNECT`].
    ///
    /// # Errors
    ///
    /// [`RequestError::Name`], [`RequestError::Slow`] and [`RequestError::Host`].
    pub(super) async fn addresses(&self, name: &str, limit: Duration) -> Result<Vec<IpAddr>, RequestError> {
        let resolver = self.resolver().await?;
        // The trailing dot makes the name absolute: no search domain is appended.
        let lookup = tokio::time::timeout(limit.min(MAX_CONNECT), resolver.lookup_ip(format!("{name}.")));
        let found = lookup.await.unwrap_or(Err(NetError::Timeout)).map_err(|error| lookup_error(&error))?;
        let addresses: Vec<IpAddr> = found.iter().collect();
        if addresses.is_empty() { Err(RequestError::Name("its host has no address")) } else { Ok(addresses) }
    }

    async fn resolver(&self) -> Result<TokioResolver, RequestError> {
        let settings = match self.servers.as_slice() {
            [] => self.system.get(MAX_CACHED, system_settings).await.map_err(RequestError::Host)?,
            servers => {
                let servers = servers.iter().map(name_server).collect();
                Arc::new(Settings::new(servers, ResolverOpts::default(), Hosts::default()))
            }
        };
        let provider = TokioRuntimeProvider::default();
        let mut builder = TokioResolver::builder_with_config(settings.config.clone(), provider);
        *builder.options_mut() = settings.options.clone();
        let built =
            builder.build().map_err(|error| RequestError::Host(format!("the resolver cannot be created: {error}")));
        built.map(|mut resolver| {
            resolver.set_hosts(settings.hosts.clone());
            resolver
        })
    }
}

impl SettingsCache {
    /// Returns the settings that `read` returned less than `longest` ago, or calls it again on a thread that may block.
    /// An error is not cached.
    async fn get(
        &self,
        max_age: Duration,
        read: impl FnOnce() -> Result<Settings, String> + Send + 'static,
    ) -> Result<Arc<Settings>, String> {
        if let Some((since, settings)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && since.elapsed() < max_age
        {
            return Ok(settings.clone());
        }
        let read = tokio::task::spawn_blocking(read).await;
        let settings = Arc::new(read.unwrap_or_else(|_| Err("the system's name servers cannot be read".to_owned()))?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), settings.clone()));
        Ok(settings)
    }
}

impl Settings {
    fn new(name_servers: Vec<NameServerConfig>, mut options: ResolverOpts, hosts: Hosts) -> Self {
        // The resolver would read the hosts file for each query, and block.
        options.use_hosts_file = ResolveHosts::Never;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = 0;
        options.attempts = 1;
        options.timeout = options.timeout.min(MAX_QUERY);
        Self { config: ResolverConfig::from_name_servers(name_servers), options, hosts: Arc::new(hosts) }
    }
}

/// Reads the settings of the system from its files.
fn system_settings() -> Result<Settings, String> {
    let read = hickory_resolver::system_conf::read_system_conf();
    let (config, options) =
        read.map_err(|_| "the system names no name server; name one for this program".to_owned())?;
    Ok(Settings::new(config.name_servers, options, Hosts::from_system().unwrap_or_default()))
}

/// Returns the reason why a lookup failed.
fn lookup_error(error: &NetError) -> RequestError {
    match error {
        NetError::Timeout => RequestError::Slow(RequestPhase::Name, "its name server did not answer in time"),
        _ if error.is_no_records_found() || error.is_nx_domain() => RequestError::Name("its host has no address"),
        _ => RequestError::Name("its name server gave no answer"),
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn some() -> Settings {
        Settings::new(Vec::new(), ResolverOpts::default(), Hosts::default())
    }

    #[test]
    fn a_name_server_that_is_too_slow_is_told_from_one_that_knows_nothing() {
        assert!(matches!(lookup_error(&NetError::Timeout), RequestError::Slow(RequestPhase::Name, _)));
        assert!(matches!(lookup_error(&NetError::Message("no")), RequestError::Name(_)));
    }

    #[tokio::test]
    async fn a_lookup_takes_no_longer_than_the_tool_allows() {
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let names = NameResolver::new(vec![silent.local_addr().expect("an address")]);
        let start = Instant::now();
        let found = names.addresses("slow.example.com", Duration::from_millis(100)).await;
        assert!(matches!(found, Err(RequestError::Slow(RequestPhase::Name, _))), "{found:?}");
        assert!(start.elapsed() < MAX_QUERY - Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn the_files_of_the_system_are_read_elsewhere_and_again_after_a_failure_or_a_while() {
        let (cache, here) = (SettingsCache::default(), thread::current().id());
        let failed = cache.get(MAX_CACHED, || Err("not yet".to_owned())).await;
        assert_eq!(failed.map(|_| ()), Err("not yet".to_owned()));
        let elsewhere = move || {
            assert_ne!(thread::current().id(), here, "no worker of the runtime waits for a file");
            Ok(some())
        };
        let first = cache.get(MAX_CACHED, elsewhere).await.expect("settings");
        let again = cache.get(MAX_CACHED, || Err("it is not read again".to_owned())).await.expect("settings");
        assert!(Arc::ptr_eq(&first, &again));
        let later = cache.get(Duration::ZERO, || Ok(some())).await.expect("settings");
        assert!(!Arc::ptr_eq(&first, &later));
        assert!(matches!(later.options.use_hosts_file, ResolveHosts::Never), "no question reads a file");
    }
}
