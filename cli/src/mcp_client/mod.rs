//! Client of the Model Context Protocol, as far as a check of a server needs one: the handshake and the list of tools, with a
//! program over standard streams or a server on this machine over HTTP. It calls no tool.

mod fault;
mod handshake;
mod local_http;
mod message;
mod server_process;

pub(crate) use fault::Fault;
pub(crate) use handshake::{Server, handshake};
pub(crate) use local_http::LocalServer;
pub(crate) use server_process::ServerProcess;
