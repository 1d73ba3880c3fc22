//! `toolcrib call`: performs one call and prints one line on standard output, the result as a model would see it.

mod advice;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolcrib::tool::CommandLine;
use toolcrib::{Receipt, ToolCall, ToolResult};
use toolcrib_agent::door::Door;
use toolcrib_agent::telemetry::{Root, TelemetryOptions};
use toolcrib_agent::watch::{self, CallEvent, CallEventKind, CallEvents};
use toolcrib_base::input;
use toolcrib_base::interrupt;
use toolcrib_base::parse::duration;
use toolcrib_base::progress;
use toolcrib_base::render::{self, Advice};
use toolcrib_settings::permission::DenyFlags;
use toolcrib_sources::calls::Calls;
use toolcrib_sources::media::MediaFolder;
use toolcrib_sources::options::{Effects, RecordsFolder, Sources, StageOption};
use toolcrib_sources::staleness;

use super::remote::RemoteOptions;
use super::stage;
use advice::{Given, advise};

/// Maximum characters of a command line in a message.
const MAX_LINE: usize = 300;
const EXAMPLES: &str = "\
Examples:
  toolcrib call get_time '{\"timezone\":\"Europe/Helsinki\"}'
  toolcrib call fs_list_dir --allow-read=.
  echo '{\"path\":\"notes.md\"}' | toolcrib call fs_read_file - --allow-read=.
  toolcrib call fs_rm '{\"path\":\"x\"}' --allow-write=out --ask-tool='fs_*'
  toolcrib call text_diff @arguments.json --json | jq .receipt.peakMemoryBytes
  toolcrib call apply_patch --text=@change.patch --allow-write=. --verbose
  toolcrib call chart @numbers.json --set records.media_dir=./charts
  toolcrib call get_time '{\"timezone\":\"UTC\"}' --records ./records
  toolcrib call rg --tools=rg.wasm --allow-read=. -- --line-number TODO src

Standard output is exactly one line of JSON, even if a model would see plain text; a failed call \
prints an object with `error` and exits with status 1. With --json --stream, lines with `type` \
`part` come first.";

/// Usage, also in errors: a tool's arguments are not options of the program.
const USAGE: &str = "\
toolcrib call [OPTIONS] TOOL [ARGUMENTS]
       toolcrib call [OPTIONS] TOOL -- ARG...

OPTIONS have the form --name=value.
ARGUMENTS are one JSON object, as in '{\"path\":\"notes.md\"}'.";

/// Call a tool and print the result as a model would see it.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct Args {
    /// Name of the tool
    #[arg(value_name = "TOOL")]
    name: String,
    /// Arguments of the tool: one JSON object, `-` for standard input, or `@FILE` [default: {}]
    #[arg(value_name = "ARGUMENTS")]
    arguments: Option<String>,
    /// Print one object with the result or error and the receipt
    #[arg(long)]
    json: bool,
    /// Pass raw text instead of JSON arguments: the text itself, `-` for standard input, or `@FILE`
    #[arg(long, value_name = "TEXT", conflicts_with = "arguments", allow_hyphen_values = true)]
    text: Option<String>,
    /// Arguments of a command without a definition, such as `rg.wasm`, which then gets --text as its standard input and may write
    /// any text
    #[arg(last = true, value_name = "ARG", conflicts_with = "arguments")]
    argv: Vec<String>,
    /// Extra JSON context for the tool; reserved keys cannot be overridden
    #[arg(long, value_name = "JSON")]
    context: Option<String>,
    /// Print each part that the tool shows while it runs as one line of JSON, before the result
    #[arg(long, requires = "json")]
    stream: bool,
    /// Save media that the tool shows to this directory
    #[arg(long, value_name = "DIR")]
    media: Option<PathBuf>,
    /// Show the preview of the call and the tool's standard error
    #[arg(long, short)]
    verbose: bool,
    /// Time limit of a call, such as `10s` or `500ms`, unless the tool sets its own; a number without a unit is in seconds
    /// [default: --timeout]
    ///
    /// The limit is the tool's own, else --tool-timeout, else --timeout; --max-timeout then caps it. A tool from an untrusted source
    /// gets at most --max-timeout or, without that, the limit of a tool that sets none.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    tool_timeout: Option<Duration>,
    /// Time limit of a call if neither the tool nor `limits.tool_timeout` sets one
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s", help_heading = "Limits")]
    timeout: Duration,
    #[command(flatten)]
    stage: StageOption,
    #[command(flatten)]
    records: RecordsFolder,
    #[command(flatten)]
    telemetry: TelemetryOptions,
    #[command(flatten)]
    remote: Box<RemoteOptions>,
    #[command(flatten)]
    sources: Sources,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (json, mut begun) = (args.json, false);
    let end = perform(args, &mut begun).await;
    if let (Err(error), true, false) = (&end, json, begun) {
        print_error(error);
    }
    end
}

/// Reports an error that prevents the call from starting, as an object if the output is JSON.
pub(super) fn refuse(args: &Args, error: &anyhow::Error) {
    if args.json {
        print_error(error);
    }
}

fn print_error(error: &anyhow::Error) {
    // Standard output may be closed; the error is printed to standard error in any case.
    let _ = render::print_json(&json!({ "error": render::message(error) }).to_string());
}

/// Performs the call; sets `begun` once the call has a result of its own.
async fn perform(mut args: Args, begun: &mut bool) -> anyhow::Result<ExitCode> {
    if let Some(name) = args.arguments.as_deref().filter(|_| args.name.trim_start().starts_with(['{', '['])) {
        let line = format!("toolcrib call {} {}", render::shell_word(name), render::shell_word(&args.name));
        let line = render::one_line(&line);
        let line = render::shortened(&line, MAX_LINE);
        return Err(render::usage_error(format!("the name of the tool comes before its arguments: `{line}`")));
    }
    let call = args.call().await?;
    args.sources.called = Some(args.name.clone());
    args.sources.fetch().await?;
    args.remote.open(&args.stage).await?;
    let (arguments, is_unreadable) = (call.arguments.clone(), call.unreadable.is_some());
    let door = Door::open(&args.telemetry, Root::Call)?;
    let door = door.with_folders(&args.records, args.media.as_deref(), &args.sources, [])?;
    let media = door.media().map(Arc::as_ref);
    let deadline = args.tool_timeout.unwrap_or(args.timeout);
    let effects = Effects::open(&args.stage, "call", None, args.sources.rules.config_file())?;
    let build = || {
        args.sources.runtime_with(deadline, [], |builder| {
            let builder = match args.argv.is_empty() {
                true => builder,
                false => builder.command_line(&args.name, CommandLine::passthrough()),
            };
            let builder = args.remote.attach(effects.attach(builder));
            args.sources.only(door.attach(builder.application("call", Map::new())), &args.name)
        })
    };
    let runtime = match build() {
        Err(_) if args.sources.mend_builtin()? => build(),
        built => built,
    }?;
    args.sources.hint_untrusted(&runtime, Some(&args.name));
    staleness::warn(runtime.tool(&args.name));
    // Compiled ahead so that the receipt covers only the call; the call itself reports a program that cannot be compiled.
    let ready = async { (runtime.prepare(&args.name).await, runtime.prepare_hooks().await) };
    let _ = progress::during(format!("compiling {}", render::one_line(&args.name)), ready).await;
    let guard = interrupt::guard();
    let session = runtime.open_session();
    let mut events = CallEvents::of(&session);
    let mut calls = Calls::start(&session, vec![call]);
    let result = loop {
        tokio::select! {
            biased;
            Some(event) = events.next() => {
                if let Err(error) = args.show(&event, media) {
                    calls.stop().await;
                    return Err(error);
                }
            }
            result = calls.next() => break result,
        }
    };
    let result = result.context("the call was cancelled")?;
    *begun = true;
    while let Some(event) = events.ready() {
        args.show(&event, media)?;
    }
    if let (Some(display), false) = (&result.display, args.json) {
        render::aside(display);
    }
    for part in result.shown.iter().filter(|_| !args.json) {
        render::quoted("|", &watch::text_of(part, media));
    }
    if !args.json {
        render::dropped(&result.receipt);
    }
    for warning in &result.receipt.warnings {
        render::warning(warning);
    }
    if args.verbose && !result.log.is_empty() {
        render::quoted("|", &result.log);
    }
    if args.verbose {
        render::executed(&result.receipt.executed);
    }
    render::flags(&result.receipt.flags);
    let given = match args.text {
        _ if is_unreadable => Given::Unreadable,
        Some(_) => Given::Text(&arguments),
        None if args.arguments.as_deref().is_some_and(|text| text == "-" || text.starts_with('@')) => {
            Given::JsonFile(&arguments)
        }
        None => Given::Json(&arguments),
    };
    // The denials of the settings matter for hints about what was denied.
    let is_denied = !result.receipt.denied.is_empty();
    let deny_flags = if is_denied { args.sources.deny_flags() } else { DenyFlags::default() };
    advise(&result, &runtime, given, args.verbose, &deny_flags);
    if let Some(toolcrib::Error::UnknownTool { .. }) = &result.fault {
        args.sources.hint_builtin();
    }
    let line = if args.json { with_receipt(&result)? } else { result.line().into_owned() };
    let printed = render::print_json(&line);
    printed.and(door.close().await)?;
    drop(guard);
    stage::close(Some(effects), !args.json).await?;
    Ok(if result.is_error() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Args {
    /// Builds the call from the arguments.
    async fn call(&self) -> anyhow::Result<ToolCall> {
        let id = format!("call_{:016x}", rand::random::<u64>());
        let read = arguments(self.text.as_deref().or(self.arguments.as_deref())).await;
        let unreadable = read.as_ref().err().map(|error| {
            render::explain(error);
            render::message(error)
        });
        let read = read.unwrap_or_default();
        let mut call = match self.text {
            _ if !self.argv.is_empty() => {
                ToolCall::new(id, &self.name, json!({ "argv": self.argv, "stdin": read }).to_string())
            }
            Some(_) => ToolCall::text(id, &self.name, read),
            None => ToolCall::new(id, &self.name, read),
        };
        call.unreadable = unreadable;
        if let Some(context) = &self.context {
            call.context = serde_json::from_str(context).map_err(|_| {
                let found = render::excerpt(context);
                Advice::new(
                    format!("--context: `{found}` is not a JSON object"),
                    "write an object, such as --context='{\"user\":\"ada\"}'",
                )
            })?;
        }
        Ok(call)
    }

    /// Prints an event of the running call.
    fn show(&self, event: &CallEvent, media: Option<&MediaFolder>) -> anyhow::Result<()> {
        match &event.kind {
            CallEventKind::Preview(text) if self.verbose && !self.json => render::quoted("»", text),
            CallEventKind::Preview(_)
            | CallEventKind::Decided
            | CallEventKind::Ended(_)
            | CallEventKind::NotKept(..)
            | CallEventKind::Asking(_) => {}
            CallEventKind::Hooks(hooks) => render::hooks("", &event.name, hooks),
            CallEventKind::Part { number, ms, part } if self.stream => {
                let part = watch::json_of(part);
                let line = json!({ "type": "part", "call": event.call_id, "number": number, "ms": ms, "part": part });
                render::print_json(&line.to_string())?;
            }
            CallEventKind::Part { ms, part, .. } => {
                render::quoted(&format!("┊ {ms:.1} ms"), &watch::text_of(part, media));
            }
        }
        Ok(())
    }
}

async fn arguments(given: Option<&str>) -> anyhow::Result<String> {
    match given {
        None => Ok(String::new()),
        Some("-") => input::stdin().await.context("cannot read arguments from standard input"),
        Some(given) => match given.strip_prefix('@') {
            Some(file) => input::file(file).with_context(|| format!("cannot read arguments from `{file}`")),
            None => Ok(given.to_owned()),
        },
    }
}

/// Combines the model's line and the receipt in one object. An error object with `error` as its only key is unwrapped.
fn with_receipt(result: &ToolResult) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RawValue>,
        /// The call and its outcome in one line, for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'a str>,
        /// Parts shown to people.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        shown: Vec<Value>,
        receipt: &'a Receipt,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct OnlyError<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let content = result.line();
    let whole: &RawValue = serde_json::from_str(&content)?;
    let error = result.is_error().then(|| serde_json::from_str::<OnlyError>(&content).map_or(whole, |only| only.error));
    let value = (!result.is_error()).then_some(whole);
    let (display, shown) = (result.display.as_deref(), result.shown.iter().map(watch::json_of).collect());
    serde_json::to_string(&Line { result: value, error, display, shown, receipt: &result.receipt })
}
