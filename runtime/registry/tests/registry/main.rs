//! The client against registries on loopback, honest and hostile.

#![expect(clippy::unwrap_used, reason = "a test may end in a panic, its helpers too")]

mod auth;
#[path = "../../../../tests/certificates.rs"]
mod certificates;
mod credentials;
mod honest;
mod hostile_pull;
mod push;
mod redirects;
mod referrers;
mod resume;
mod retries;
mod server;
mod tls;

use std::time::Duration;

use serde_json::json;
use toolcrib_registry::{Client, ClientBuilder, Descriptor, Limits, Manifest, OCI_MANIFEST, Reference, Repository};

use server::Server;

/// Limits that let a hostile test end soon.
fn quick() -> Limits {
    let mut limits = Limits::default();
    limits.attempts = 2;
    limits.back_off = Duration::from_millis(2);
    limits.connect = Duration::from_secs(10);
    limits.stall = Duration::from_secs(10);
    limits.exchange = Duration::from_secs(20);
    limits.deadline = Duration::from_secs(60);
    limits
}

fn builder() -> ClientBuilder {
    Client::builder().limits(quick())
}

fn client() -> Client {
    builder().build().unwrap()
}

/// Client for servers that are silent on purpose.
fn impatient() -> Client {
    let mut limits = quick();
    limits.connect = Duration::from_millis(200);
    limits.stall = Duration::from_millis(200);
    builder().limits(limits).build().unwrap()
}

fn reference(server: &Server, version: &str) -> Reference {
    format!("oci://{}/team/tool{version}", server.address).parse().unwrap()
}

fn repository(server: &Server) -> Repository {
    reference(server, "").repository().clone()
}

fn blob(bytes: &[u8]) -> Descriptor {
    Descriptor::of("application/octet-stream", bytes)
}

/// Manifest with the given field values added.
fn manifest(more: serde_json::Value) -> Manifest {
    let mut value = json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": Descriptor::of("application/vnd.test.config", b"{}"),
        "layers": [],
    });
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Manifest::new(OCI_MANIFEST, value.to_string()).unwrap()
}

/// Bytes that are not all alike.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + index / 251) as u8).collect()
}
