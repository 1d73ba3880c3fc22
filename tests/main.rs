//! End-to-end tests, one file per group of claims: they use the built program and the library from outside.

#![allow(clippy::unwrap_used, reason = "a test may end in a panic")]
#![allow(clippy::print_stderr, reason = "a test says what it skips")]

mod answering;
mod answers;
mod architecture;
mod argv;
mod audit;
mod authoring;
mod book;
mod builtin;
mod bundles;
mod certificates;
mod cli;
mod code;
mod compiling;
mod computing;
mod configuration;
mod console;
mod contract;
mod conversations;
mod crib;
mod decisions;
mod deferral;
mod definitions;
#[cfg(target_os = "linux")]
mod editing;
#[cfg(unix)]
mod files;
mod flows;
mod foreign;
mod fuzz;
mod gate;
#[cfg(unix)]
mod grants;
mod hooks;
mod hostile;
mod inputs;
mod inspecting;
#[cfg(target_os = "linux")]
mod installer;
mod installing;
mod interface;
#[cfg(target_os = "linux")]
mod kernels;
mod limits;
mod manifest;
mod markdown;
mod mcp;
mod mcp_config;
#[cfg(unix)]
mod nats;
mod only;
mod permissions;
#[cfg(unix)]
mod postgres;
mod preview1;
mod programs;
mod records;
mod registries;
#[cfg(unix)]
mod results;
mod rich;
mod run;
mod scenarios;
mod schedule;
mod schemas;
mod screen;
mod scripted;
mod secrets;
mod servers;
mod signing;
mod skills;
#[cfg(target_os = "linux")]
mod staging;
mod stories;
mod telemetry;
mod toolbox;
mod trust;
mod typed;
#[cfg(target_os = "linux")]
mod undo;
mod unusable;
#[cfg(unix)]
mod workers;
