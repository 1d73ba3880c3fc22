//! Settings and decisions of the user: settings files, trust, approvals, secrets, and a project's instructions.

pub mod audit_facts;
pub mod config;
pub mod differences;
pub mod instructions;
pub mod permission;
pub mod secrets;
pub mod selection;
pub mod subjects;
pub mod trust;
pub mod trust_options;
pub mod unrequested;
