//! End-to-end tests, one file a claim group: they use the built program and the library as a stranger would.

mod architecture;
mod audit;
mod cli;
mod contract;
mod crib;
mod grants;
mod limits;
mod manifest;
mod programs;
mod run;
mod toolbox;
