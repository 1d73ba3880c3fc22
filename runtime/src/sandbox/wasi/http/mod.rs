//! `wasi:http`: every request of a guest goes through one egress, which checks the grant, resolves names and connects. Only
//! `hooks` knows the engine.

mod body;
mod client;
mod connect;
mod egress;
mod headers;
mod held;
mod hooks;
mod logged;
mod resolve;
mod secret;

pub(in crate::sandbox) use body::ResponseBody;
pub(crate) use client::{Certificates, HttpClient, certificates};
pub(in crate::sandbox) use egress::{Driver, HttpEgress, Timeouts};
pub(in crate::sandbox) use hooks::{HttpAccess, HttpHooks};
