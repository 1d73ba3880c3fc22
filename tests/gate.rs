//! Attacks on the network: a tool reaches only the granted host, port and method; a server that lies, floods or
//! trickles costs a bounded time and a bounded memory; each refusal is reported and recorded.

mod answers;
mod certificates;
mod counting;
mod destinations;
mod names;
mod notations;
mod patience;
mod redirects;
mod requests;
mod resolving;
pub(crate) mod servers;
mod sockets;
mod tls;

use std::cell::Cell;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crib::{Crib, Ran, peak_memory};

/// Maximum delay of a call on a busy machine before a test reports a hang.
const BOUND: Duration = Duration::from_secs(20);

/// Guests that try to bypass the checks of HTTP requests.
const ROUND: [&str; 3] = ["connect", "udp", "lookup"];

/// Crib with a guest that sends requests as its arguments state.
struct Gate {
    crib: Crib,
    calls: Cell<usize>,
}

impl Gate {
    fn new() -> Self {
        Self { crib: Crib::with_guests(&["http", "echo"]), calls: Cell::new(0) }
    }

    /// Calls once, and returns the printed line.
    #[track_caller]
    fn ask(&self, arguments: &Value, flags: &[&str]) -> Value {
        self.calls.set(self.calls.get() + 1);
        let begun = Instant::now();
        let line = self.crib.call("http", arguments, flags);
        assert!(begun.elapsed() < BOUND, "{arguments} came back after {:?}", begun.elapsed());
        line
    }

    /// Sends one request that is answered, and returns the guest's view.
    #[track_caller]
    fn answered(&self, arguments: &Value, flags: &[&str]) -> Value {
        let line = self.ask(arguments, flags);
        assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
        assert_eq!(line["result"]["status"], 200, "{line}");
        assert!(line["result"]["error"].is_null(), "{line}");
        line["result"].clone()
    }

    /// Sends one request that is denied: the guest receives an error, and the receipt informs people. Returns the
    /// denial.
    #[track_caller]
    fn denied(&self, arguments: &Value, flags: &[&str]) -> Value {
        let line = self.ask(arguments, flags);
        assert_eq!(line["receipt"]["outcome"], "ok", "the guest reports for itself: {line}");
        let error = line["result"]["error"].as_str().unwrap_or_else(|| panic!("it was let through: {line}"));
        assert!(["HttpRequestDenied", "DestinationIpProhibited"].contains(&error), "{line}");
        let denied = line["receipt"]["denied"].as_array().unwrap_or_else(|| panic!("{line}"));
        assert_eq!(denied.len(), 1, "{line}");
        assert!(denied[0]["capability"].as_str().is_some_and(|text| text.starts_with("net:")), "{line}");
        denied[0].clone()
    }

    /// Sends one request that fails with any error: an invalid request has no destination to deny.
    #[track_caller]
    fn rejected(&self, arguments: &Value, flags: &[&str]) -> String {
        let line = self.ask(arguments, flags);
        assert_eq!(line["receipt"]["outcome"], "ok", "the guest reports for itself: {line}");
        line["result"]["error"].as_str().unwrap_or_else(|| panic!("it was let through: {line}")).to_owned()
    }

    /// Asserts that the next call works, and that each call left one record.
    #[track_caller]
    fn ends_well(&self) {
        assert_eq!(self.crib.outcome("echo", &json!({"a": 1}), &[]), "ok");
        let records = self.crib.records();
        assert_eq!(records.len(), self.calls.get() + 1, "one record a call");
        let identifiers: std::collections::BTreeSet<_> =
            records.iter().map(|record| record["invocation"].as_str().unwrap().to_owned()).collect();
        assert_eq!(identifiers.len(), records.len(), "each record is of another call");
    }

    /// Calls, and returns the line and the peak memory of the process, in bytes. On a busy machine a process may end before it
    /// is looked at; the call is then made again.
    fn weighed(&self, arguments: &Value, flags: &[&str]) -> (Value, u64) {
        let mut attempts = std::iter::repeat_with(|| self.weighed_once(arguments, flags)).take(20);
        attempts.find(|(_, peak)| *peak > 0).expect("the memory of the program was seen")
    }

    /// Calls once; the peak is 0 if the process ended before it was looked at.
    fn weighed_once(&self, arguments: &Value, flags: &[&str]) -> (Value, u64) {
        self.calls.set(self.calls.get() + 1);
        let arguments = arguments.to_string();
        let mut command = self.crib.toolcrib(&[&["call", "http", &arguments, "--json"], flags].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let (mut peak, begun) = (0, Instant::now());
        while child.try_wait().expect("a child").is_none() {
            peak = peak.max(peak_memory(child.id()).unwrap_or(0));
            assert!(begun.elapsed() < BOUND, "it hangs");
            std::thread::sleep(Duration::from_millis(2));
        }
        let output: Output = child.wait_with_output().expect("an end");
        let ran = Ran::from(output);
        let line = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        (line, peak)
    }
}

/// `--allow-net=` with these destinations.
fn allow(destinations: &[&str]) -> String {
    format!("--allow-net={}", destinations.join(","))
}
