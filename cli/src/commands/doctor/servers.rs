//! Check of the MCP server: a handshake with each entry for this program in client settings or, without one, with its
//! own server. Nothing but this program is started and, from the user's own settings, programs of its name; settings of
//! a project come from strangers.

use std::env;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use futures::stream::{self, StreamExt};
use tokio::time::Instant;
use toolcrib_base::http;
use toolcrib_base::progress;
use toolcrib_base::render::{counted, one_line};
use toolcrib_mcp::client::{Fault, LocalServer, Server, ServerProcess, handshake};
use toolcrib_mcp::client_config::{Address, Client, Connection, Program, Scope, SettingsFile, Target};
use toolcrib_sources::options::Sources;

use crate::commands::mcp::{check_arguments, settings_file};

use super::{Finding, Status};

const CHECK: &str = "mcp";
/// Name of the program.
const PROGRAM: &str = "toolcrib";
/// Maximum number of entries that are checked.
const MAX_SERVERS: usize = 32;
/// Maximum number of servers at once.
const AT_ONCE: usize = 4;
/// Ending of messages if no client has an entry.
const CONNECT: &str = "`toolcrib mcp config CLIENT` connects one";

/// Entry of a client for this program.
struct Entry {
    client: Client,
    scope: Scope,
    file: PathBuf,
    connection: Connection,
}

/// Makes the handshakes. With `is_sound`, there are sources without an error.
pub(super) async fn all(sources: &Sources, is_sound: bool) -> Vec<Finding> {
    let (entries, mut findings) = entries();
    let (count, is_connected) = (entries.len(), !entries.is_empty());
    let checks = stream::iter(entries.into_iter().take(MAX_SERVERS)).map(Entry::check).buffered(AT_ONCE);
    findings.extend(progress::during("checking MCP servers", checks.collect::<Vec<_>>()).await);
    if count > MAX_SERVERS {
        let detail = format!("{} more of {count} entries: not checked", count - MAX_SERVERS);
        findings.push(Finding::wrong(CHECK, Status::Warn, detail, "remove entries that are not used"));
    }
    if !is_connected {
        findings.push(own(sources, is_sound).await);
    }
    findings
}

/// Lists the entries for this program in the settings of all clients, and the settings that cannot be read.
fn entries() -> (Vec<Entry>, Vec<Finding>) {
    let (mut entries, mut findings, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let folder = env::current_dir().unwrap_or_default();
    let clients = Client::value_variants().iter();
    for (client, scope) in clients.flat_map(|client| [(*client, Scope::User), (*client, Scope::Project)]) {
        let Ok(Some(path)) = settings_file(client, scope) else { continue };
        let unreadable = |reason: &str| {
            let detail = format!("{}: cannot read `{}`: {reason}", client.facts().name, path.display());
            Finding::wrong(CHECK, Status::Warn, detail, "correct the file, so that its servers can be checked")
        };
        let file = match SettingsFile::read(&path) {
            Ok(file) => file,
            Err(error) => {
                findings.push(unreadable(&toolcrib_base::render::message(&error)));
                continue;
            }
        };
        // In the home folder, both are one file.
        let key = (client, file.path().to_owned());
        if files.contains(&key) {
            continue;
        }
        match client.connections(file.text(), &folder) {
            Ok(connections) => {
                let file = file.path();
                let entry = |connection| Entry { client, scope, file: file.to_owned(), connection };
                entries.extend(connections.into_iter().map(entry).filter(Entry::is_own));
            }
            Err(reason) if file.text().contains(PROGRAM) => findings.push(unreadable(&reason)),
            Err(_) => {}
        }
        files.push(key);
    }
    (entries, findings)
}

/// Makes the handshake with a server of this program and this command's sources.
async fn own(sources: &Sources, is_sound: bool) -> Finding {
    let Some(program) = env::current_exe().ok().filter(|_| is_sound) else {
        return Finding::ok(CHECK, format!("no client is configured: {CONNECT}"));
    };
    let tools = sources.tools.iter().flat_map(|path| ["--tools".into(), path.into()]);
    let arguments = ["mcp".into(), "--uncompiled".into()].into_iter().chain(tools);
    let begin = Instant::now();
    let started = ServerProcess::start(&program, arguments, [], None);
    match greet(started.map(|process| Server::Process(Box::new(process))), begin).await {
        Ok(tools) => Finding::ok(CHECK, format!("this program: {tools}; no client is configured: {CONNECT}")),
        Err(fault) => {
            let fix = fault.hint().unwrap_or("run `toolcrib mcp` in a terminal for details").to_owned();
            Finding::wrong(CHECK, Status::Fail, format!("this program: {fault}"), fix)
        }
    }
}

/// Makes a handshake, and describes its result.
async fn greet(server: Result<Server, Fault>, begin: Instant) -> Result<String, Fault> {
    let greeting = handshake(server?, begin).await?;
    Ok(format!("{} in {:.2} s", counted(greeting.tools, "tool"), greeting.time.as_secs_f64()))
}

impl Entry {
    /// `true` for an entry with the server's usual name, with this program, or with a program of the same name.
    fn is_own(&self) -> bool {
        self.connection.has_own_name()
            || match &self.connection.target {
                Target::Program(program) => has_own_name(&program.command) || is_this_program(find(program).as_deref()),
                Target::Address(_) => false,
            }
    }

    async fn check(self) -> Finding {
        if self.connection.is_disabled {
            return self.unchecked("the client has disabled the entry");
        }
        match &self.connection.target {
            Target::Program(program) => self.check_program(program).await,
            Target::Address(address) => self.check_address(address).await,
        }
    }

    /// Starts the program of the entry if it is this one, and makes the handshake.
    async fn check_program(&self, program: &Program) -> Finding {
        let Program { command, arguments, environment, folder } = program;
        if std::iter::once(command).chain(arguments).any(|text| self.client.replaces(text)) {
            return self.unchecked("the client replaces a part of the command");
        }
        let (shown, path) = (one_line(command), find(program));
        let is_this = is_this_program(path.as_deref());
        if !is_this && !has_own_name(command) {
            return self.refused(&format!("`{shown}` is another program and is not started"), &self.rewrite());
        }
        let Some(path) = path else {
            return match is_relative(command) {
                true => {
                    self.refused(&format!("`{shown}` depends on the client's folder: not started"), &self.rewrite())
                }
                false => self.failed(&format!("`{shown}` not found"), &self.rewrite()),
            };
        };
        // A stranger's project could name another program, or variables that change this one.
        if self.scope == Scope::Project && !(is_this && environment.is_empty()) {
            let detail = "the project's entry names another program or variables: not started";
            return self.refused(detail, &self.rewrite());
        }
        if let Err(error) = check_arguments(arguments) {
            let text = error.to_string();
            let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
            let fix = tip.map(|tip| format!("{tip}; ")).unwrap_or_default() + &self.correct();
            let first = text.lines().next().unwrap_or_default();
            return self.failed(first.strip_prefix("error: ").unwrap_or(first), &fix);
        }
        if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
            return self.failed(&format!("the folder `{}` does not exist", folder.display()), &self.correct());
        }
        let variables = environment.iter().filter(|(_, value)| !self.client.replaces(value)).cloned();
        let begin = Instant::now();
        let started = ServerProcess::start(&path, arguments.iter().map(Into::into), variables, folder.as_deref());
        self.greet(started.map(|process| Server::Process(Box::new(process))), begin).await
    }

    /// Makes the handshake with a server on this machine.
    async fn check_address(&self, address: &Address) -> Finding {
        if self.client.replaces(&address.url) {
            return self.unchecked("the client replaces a part of the address");
        }
        let Some(url) = LocalServer::address(&address.url) else {
            return self.unchecked("only addresses of this machine with the path `/mcp` are checked");
        };
        // A project's settings could name a variable with another secret.
        let variable = address.token_variable.as_ref().filter(|_| self.scope == Scope::User);
        let variable = variable.and_then(|name| env::var(name).ok());
        let authorization = address.authorization.clone().or_else(|| variable.map(|token| format!("Bearer {token}")));
        if authorization.as_ref().is_some_and(|text| self.client.replaces(text)) {
            return self.unchecked("the client replaces a part of the token");
        }
        let shown = http::shown(&url);
        let server = LocalServer::new(url, authorization.as_deref()).map(|server| Server::Local(Box::new(server)));
        let mut finding = self.greet(server, Instant::now()).await;
        finding.detail += &format!(" ({shown})");
        finding
    }

    async fn greet(&self, server: Result<Server, Fault>, begin: Instant) -> Finding {
        match greet(server, begin).await {
            Ok(tools) => Finding::ok(CHECK, format!("{self}: {tools}")),
            Err(fault) => {
                let fix = match &fault {
                    Fault::Unreachable(_) => "start the server with `toolcrib mcp --http ADDRESS`".to_owned(),
                    Fault::Unauthorized => {
                        format!("create a token with `toolcrib mcp token new NAME`, and {}", self.correct())
                    }
                    fault => {
                        fault.hint().map_or_else(|| self.correct(), |hint| format!("{hint}; or {}", self.correct()))
                    }
                };
                self.failed(&fault.to_string(), &fix)
            }
        }
    }

    fn failed(&self, reason: &str, fix: &str) -> Finding {
        Finding::wrong(CHECK, Status::Fail, format!("{self}: {reason}"), fix)
    }

    fn refused(&self, reason: &str, fix: &str) -> Finding {
        Finding::wrong(CHECK, Status::Warn, format!("{self}: {reason}"), fix)
    }

    fn unchecked(&self, reason: &str) -> Finding {
        Finding::ok(CHECK, format!("{self}: not checked: {reason}"))
    }

    fn correct(&self) -> String {
        format!("correct `{}` in `{}`", self.connection.keys.join("."), self.file.display())
    }

    /// Fix by an entry that this program writes, which has one name.
    fn rewrite(&self) -> String {
        let name = self.client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let project = if self.scope == Scope::Project { " --project" } else { "" };
        match self.connection.has_own_name() && self.client.facts().can_replace() {
            true => format!("{}, or run `toolcrib mcp config {name}{project} --write --force`", self.correct()),
            false => self.correct(),
        }
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.client.facts().name)?;
        if self.scope == Scope::Project {
            f.write_str(" (project)")?;
        }
        if !self.connection.has_own_name() {
            write!(f, ", `{}`", self.connection.name())?;
        }
        Ok(())
    }
}

/// `true` for a command that is a path from the folder of the client.
fn is_relative(command: &str) -> bool {
    let path = Path::new(command);
    !path.is_absolute() && path.components().count() > 1
}

/// Finds an entry's program: an absolute path, or a name in the absolute folders of `PATH`.
fn find(program: &Program) -> Option<PathBuf> {
    let command = Path::new(&program.command);
    if command.is_absolute() {
        return command.is_file().then(|| command.to_owned());
    }
    if is_relative(&program.command) {
        return None;
    }
    let name = match program.command.ends_with(env::consts::EXE_SUFFIX) {
        true => program.command.clone(),
        false => format!("{}{}", program.command, env::consts::EXE_SUFFIX),
    };
    let of_entry = program.environment.iter().find(|(name, _)| is_search_path(name)).map(|(_, value)| value.into());
    let folders = of_entry.or_else(|| env::var_os("PATH"))?;
    let mut found = env::split_paths(&folders).filter(|folder| folder.is_absolute()).map(|folder| folder.join(&name));
    found.find(|path| path.is_file())
}

/// `true` for the name of the variable with program folders; on Windows, variable names have no case.
fn is_search_path(name: &str) -> bool {
    match cfg!(windows) {
        true => name.eq_ignore_ascii_case("PATH"),
        false => name == "PATH",
    }
}

/// `true` for a command with the file name of this program.
fn has_own_name(command: &str) -> bool {
    let name = Path::new(command).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.strip_suffix(env::consts::EXE_SUFFIX).unwrap_or(name) == PROGRAM)
}

/// `true` for the path of this very program.
fn is_this_program(path: Option<&Path>) -> bool {
    let this = env::current_exe().and_then(|path| path.canonicalize()).ok();
    this.is_some() && path.and_then(|path| path.canonicalize().ok()) == this
}
