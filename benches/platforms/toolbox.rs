//! Cases of the shipped tools (`tests/cases/toolbox`): one server over standard streams for each grant, and one call of it
//! for each case, in a folder that is laid out anew.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::layout::{lay, repeated};
use crate::platform::Platform;

/// Grants of the cases, with their flags.
const GRANTS: [(&str, &[&str]); 3] =
    [("read", &["--allow-read=work"]), ("write", &["--allow-write=work"]), ("none", &[])];

/// Errors of a tool that has too little time on a busy machine.
const TOO_LONG: [&str; 2] = ["it took too long", "tool timed out"];

/// Cases of one grant.
pub(crate) struct Grant {
    flags: &'static [&'static str],
    cases: Vec<(String, String, Value)>,
}

/// Reads all cases, by their grant.
pub(crate) fn grants() -> Vec<Grant> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/toolbox");
    let paths = fs::read_dir(folder).expect("the cases").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    paths.sort();
    let mut grants = GRANTS.map(|(name, flags)| (name, Grant { flags, cases: Vec::new() }));
    for path in paths {
        let file: Value = serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON");
        let tool = file["tool"].as_str().expect("a tool");
        for case in file["cases"].as_array().expect("cases") {
            let granted = case["grant"].as_str().unwrap_or("none");
            let (_, grant) = grants.iter_mut().find(|(name, _)| *name == granted).expect("a known grant");
            grant.cases.push((tool.to_owned(), case["claim"].to_string(), case.clone()));
        }
    }
    grants.into_iter().map(|(_, grant)| grant).collect()
}

impl Grant {
    pub(crate) fn len(&self) -> usize {
        self.cases.len()
    }

    /// Runs all cases; returns the name and the answer of each.
    pub(crate) fn run(&self, platform: &Platform, folder: &Path) -> io::Result<Vec<(String, Answer)>> {
        let mut server = Server::start(platform, folder, self.flags)?;
        let masks = platform.masks(folder);
        let mut answers = Vec::new();
        for (tool, claim, case) in &self.cases {
            // Wine shows the links of this machine as their targets.
            if platform.is_windows() && case.get("links").is_some() {
                answers.push((format!("{tool}: {claim}"), Answer::left_out()));
                continue;
            }
            empty(&folder.join("work"))?;
            lay(folder, case);
            let call = json!({"name": tool, "arguments": repeated(&case["arguments"])});
            let mut reply = server.ask("tools/call", &call)?;
            let content = reply["result"]["content"].to_string();
            if TOO_LONG.iter().any(|error| content.contains(error)) {
                empty(&folder.join("work"))?;
                lay(folder, case);
                reply = server.ask("tools/call", &call)?;
            }
            let mut answer = Answer::default();
            let result = &reply["result"];
            answer.add("is an error", result["isError"].to_string());
            for block in result["content"].as_array().into_iter().flatten() {
                answer.add("content", masks.result(&json!({"type": block["type"], "text": parsed(&block["text"])})));
            }
            answer.add("structured content", masks.result(&result["structuredContent"]));
            answer.add("receipt", masks.record(&result["_meta"]["toolcrib/receipt"]));
            answer.add("error of the protocol", masks.text(reply["error"].to_string().as_bytes()));
            answer.add_files("files", &folder.join("work"));
            answers.push((format!("{tool}: {claim}"), answer));
        }
        server.leave();
        Ok(answers)
    }
}

/// JSON in a text, or the text.
fn parsed(text: &Value) -> Value {
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| text.clone())
}

/// Removes everything in a folder, which a server holds open.
fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match fs::symlink_metadata(&path)?.is_dir() {
            true => fs::remove_dir_all(path)?,
            false => fs::remove_file(path)?,
        }
    }
    Ok(())
}

/// Server over standard streams.
struct Server<'a> {
    platform: &'a Platform,
    process: Child,
    /// File of its standard error.
    messages: PathBuf,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl<'a> Server<'a> {
    fn start(platform: &'a Platform, folder: &Path, flags: &[&str]) -> io::Result<Self> {
        let tools = "--tools=../../../../crib";
        // Compilation takes minutes under emulation.
        let arguments: Vec<String> = ["mcp", tools, "--set=limits.compile_timeout=10m"]
            .iter()
            .chain(flags)
            .map(|word| (*word).to_owned())
            .collect();
        let mut command = platform.command(folder, &arguments);
        let messages = folder.join("messages.txt");
        let standard_error = Stdio::from(fs::File::create(&messages)?);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(standard_error).spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (input, output) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        let mut server = Self { platform, process, messages, input, output: BufReader::new(output), number: 0 };
        let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "platforms", "version": "1"}});
        server.ask("initialize", &client)?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.input, "{message}")?;
        self.input.flush()
    }

    /// Sends a request and returns its reply; notifications before it are left out.
    fn ask(&mut self, method: &str, parameters: &Value) -> io::Result<Value> {
        self.number += 1;
        let number = self.number;
        let sent = self.send(&json!({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}));
        loop {
            let mut line = String::new();
            if sent.is_err() || self.output.read_line(&mut line)? == 0 {
                self.platform.check_runner(self.process.wait()?, &fs::read(&self.messages)?)?;
                return Err(io::Error::other(format!("the server ended before its reply to request {number}")));
            }
            let reply: Value = serde_json::from_str(&line)?;
            if reply["id"] == number {
                return Ok(reply);
            }
        }
    }

    /// Ends the server by the end of its input.
    fn leave(self) {
        let Self { mut process, input, .. } = self;
        drop(input);
        let _ = process.wait();
    }
}
