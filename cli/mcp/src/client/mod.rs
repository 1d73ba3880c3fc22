//! Client of the Model Context Protocol, as far as a check of a server needs one: the handshake and the list of tools, with a
//! program over standard streams or a server on this machine over HTTP. It calls no tool.

mod fault;
pub mod handshake;
mod local_http;
mod message;
mod server_process;

pub use fault::Fault;
pub use handshake::{Server, handshake};
pub use local_http::LocalServer;
pub use server_process::ServerProcess;
