//! Cost of a call through the Model Context Protocol, with its floor in the same run: a server that does nothing. A
//! further server can be measured beside them, such as another runtime with an equal tool.
//!
//! ```sh
//! cargo bench --bench mcp
//! cargo bench --bench mcp -- --calls 20000
//! cargo bench --bench mcp -- --tool echo -- COMMAND ARGS    # a server over standard streams
//! ```
//!
//! One client makes one call at a time. The servers take turns of a hundred calls, in another order each round, so that
//! a change of the machine affects all of them. Every result is checked: each tool returns its arguments.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[path = "../built.rs"]
#[allow(dead_code, reason = "other benches use the rest")]
mod built;
mod conversation;
mod nothing;
mod servers;
mod wire;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::Value;

use conversation::{Conversation, Revision, Transport};
use servers::Servers;

/// Default calls of each server.
const DEFAULT_CALLS: usize = 3000;
/// Minimum and maximum calls of each server.
const MIN_CALLS: usize = 100;
const MAX_CALLS: usize = 1_000_000;
/// Calls of a server in one round.
const ROUND: usize = 100;
/// Calls before the measurement.
const WARM_UP: usize = 200;
/// Time after which no round begins.
const MAX_ROUNDS: Duration = Duration::from_secs(45);
const USAGE: &str =
    "usage: cargo bench --bench mcp -- [--calls N] [--arguments OBJECT] [--tool NAME] [-- COMMAND ARGS...]
  --calls      calls of each server, 100 to 1,000,000; at most 45 seconds in all [default: 3000]
  --arguments  arguments of each call, a JSON object [default: about 1 KiB]
  --tool       name of the tool of COMMAND that returns its arguments as JSON [default: echo]
  COMMAND      further server over standard streams; relative paths start at `cli`";

/// Arguments of the benchmark.
struct Options {
    calls: usize,
    arguments: Value,
    tool: String,
    command: Vec<OsString>,
}

/// Measured server.
struct Server {
    name: String,
    /// Position of its floor.
    floor: usize,
    conversation: Conversation,
    times: Vec<Duration>,
}

fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().skip(1).filter(|argument| argument != "--bench").collect();
    let result = match given.iter().map(|argument| argument.to_str()).collect::<Option<Vec<_>>>().as_deref() {
        Some(["nothing", "stdio", text]) => nothing::serve_stdio(text),
        Some(["nothing", "http", text]) => nothing::serve_http(text),
        _ => match options(given) {
            Some(options) => measure(&options),
            None => {
                println!("{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

fn options(given: Vec<OsString>) -> Option<Options> {
    let mut options = Options {
        calls: DEFAULT_CALLS,
        arguments: serde_json::from_str(&built::arguments()).unwrap_or_default(),
        tool: "echo".to_owned(),
        command: Vec::new(),
    };
    let mut given = given.into_iter();
    while let Some(option) = given.next() {
        if option == "--" {
            options.command = given.collect();
            return (!options.command.is_empty()).then_some(options);
        }
        let value = given.next()?.into_string().ok()?;
        match option.to_str()? {
            "--calls" => options.calls = value.parse().ok().filter(|calls| (MIN_CALLS..=MAX_CALLS).contains(calls))?,
            "--arguments" => options.arguments = serde_json::from_str(&value).ok().filter(Value::is_object)?,
            "--tool" => options.tool = value,
            _ => return None,
        }
    }
    Some(options)
}

fn measure(options: &Options) -> io::Result<()> {
    let processes = Servers::new()?;
    let mut servers = start(&processes, options)?;
    for server in &mut servers {
        server.calls(WARM_UP)?;
        server.times.clear();
    }
    let mut order: Vec<usize> = (0..servers.len()).collect();
    let (started, mut rounds) = (Instant::now(), 0);
    while rounds < options.calls.div_ceil(ROUND) && started.elapsed() < MAX_ROUNDS {
        for place in &order {
            servers[*place].calls(ROUND)?;
        }
        order.rotate_left(1);
        rounds += 1;
    }
    let size = options.arguments.to_string().len();
    println!("{} calls of each server with {size} bytes of arguments, in {rounds} rounds\n", rounds * ROUND);
    report(&servers, !options.command.is_empty());
    Ok(())
}

/// Starts every server.
fn start(processes: &Servers, options: &Options) -> io::Result<Vec<Server>> {
    use Revision::{Earlier, Later};
    let text = options.arguments.to_string();
    let begin = |name: String, floor, transport: io::Result<Transport>, revision, tool: &str| {
        let conversation = transport.and_then(|it| Conversation::begin(it, revision, tool, &options.arguments));
        let conversation = conversation.map_err(|error| failed(&name, &error))?;
        Ok::<_, io::Error>(Server { name, floor, conversation, times: Vec::new() })
    };
    let own = |transport: &str, revision: Revision| format!("toolcrib, {transport}, {}", revision.name());
    let mut servers = vec![
        begin("nothing, stdio".to_owned(), 0, processes.nothing_over_stdio(&text), Earlier, "echo")?,
        begin("nothing, HTTP".to_owned(), 1, processes.nothing_over_http(&text), Earlier, "echo")?,
        begin(own("stdio", Earlier), 0, processes.toolcrib_over_stdio(), Earlier, "echo")?,
        begin(own("stdio", Later), 0, processes.toolcrib_over_stdio(), Later, "echo")?,
    ];
    let [first, second] = processes.toolcrib_over_http()?;
    servers.push(begin(own("HTTP", Earlier), 1, Ok(first), Earlier, "echo")?);
    servers.push(begin(own("HTTP", Later), 1, Ok(second), Later, "echo")?);
    if let Some(program) = options.command.first() {
        let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
        let transport = processes.other(&options.command);
        servers.push(begin(format!("{name}, stdio, {}", Earlier.name()), 0, transport, Earlier, &options.tool)?);
    }
    Ok(servers)
}

impl Server {
    /// Makes calls and keeps their times.
    fn calls(&mut self, count: usize) -> io::Result<()> {
        for _ in 0..count {
            self.times.push(self.conversation.call().map_err(|error| failed(&self.name, &error))?);
        }
        Ok(())
    }

    /// Minimum, median and 99th percentile in microseconds.
    fn figures(&self) -> [f64; 3] {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e6;
        [at(0), at(50), at(99)]
    }
}

fn failed(name: &str, error: &io::Error) -> io::Error {
    let error = match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
            "the server ended, or did not answer in time: run its command by hand".to_owned()
        }
        _ => error.to_string(),
    };
    io::Error::other(format!("{name}: {error}"))
}

/// Prints the times in microseconds, what they add to the floor of their transport, and a comparison with the command of
/// the user, which is the last server.
fn report(servers: &[Server], has_other: bool) {
    let figures: Vec<[f64; 3]> = servers.iter().map(Server::figures).collect();
    let width = servers.iter().map(|server| server.name.chars().count()).max().unwrap_or_default();
    let heads = ["min µs", "p50 µs", "p99 µs", "added p50", "added p99", "p50 ratio"];
    println!("{:width$}  {}", "", heads.map(|head| format!("{head:>9}")).join("  "));
    for (place, (server, [least, median, high])) in servers.iter().zip(&figures).enumerate() {
        let [_, floor_median, floor_high] = figures[server.floor];
        print!("{:width$}  {least:9.0}  {median:9.0}  {high:9.0}", server.name);
        match place == server.floor {
            true => println!("  {:>9}  {:>9}  {:>9}", "floor", "floor", "floor"),
            false => {
                println!("  {:9.0}  {:9.0}  {:9.1}", median - floor_median, high - floor_high, median / floor_median)
            }
        }
    }
    let Some((other, theirs)) = servers.last().zip(figures.last()).filter(|_| has_other) else { return };
    println!("\ncompared with {}:", other.name);
    for (server, own) in servers.iter().zip(&figures).filter(|(server, _)| server.name.starts_with("toolcrib")) {
        let [least, median, high] = [0, 1, 2].map(|column| own[column] / theirs[column]);
        println!("{:width$}  {least:8.2}×  {median:8.2}×  {high:8.2}×", server.name);
    }
}
