//! Workers on other machines, over NATS: the messages, the serving side ([`serve`]) and the calling side ([`NatsWorkers`]). Neither
//! trusts the other: a worker runs the whole pipeline again under its own policy, and a caller checks each message and its size.

mod address;
mod assembly;
mod attempt;
mod connection;
mod fleet;
mod job;
mod message;
mod remote;
mod report;
mod serve;
mod service;
mod statistics;
mod subject;

pub use address::NatsAddress;
pub use connection::{ConnectFailure, Connection, ConnectionEvent, Credentials};
pub use fleet::{FleetMember, fleet};
pub use remote::NatsWorkers;
pub use serve::{ServeError, ServedTool, WorkerSettings, serve};
pub use subject::{WorkerName, WorkerNameError};
