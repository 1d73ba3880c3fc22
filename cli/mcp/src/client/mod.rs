//! Client of the Model Context Protocol for checks of servers: the handshake and the tool list, with a program over
//! standard streams or a server on this machine over HTTP. It calls no tool.

mod fault;
pub mod handshake;
mod local_http;
mod message;
mod server_process;

pub use fault::Fault;
pub use handshake::{Server, handshake};
pub use local_http::LocalServer;
pub use server_process::ServerProcess;
