//! `toolcrib call`: one call, and on standard output one line: what a model would get.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolcrib::{Builder, Outcome, Receipt, ToolCall, ToolResult};

use crate::calls::Calls;
use crate::input;
use crate::interrupt;
use crate::options::{RecordsFolder, Sources, duration};
use crate::permission::hint;
use crate::progress;
use crate::render;
use crate::telemetry::{Root, TelemetryOptions};

const EXAMPLES: &str = "\
Examples:
  toolcrib call get_time '{\"timezone\":\"Europe/Helsinki\"}'
  toolcrib call fs_list_dir --allow-read=.
  echo '{\"path\":\"notes.md\"}' | toolcrib call fs_read_file - --allow-read=./docs
  toolcrib call fs_rm '{\"path\":\"x\"}' --allow-write=out --ask-tool='fs_*'
  toolcrib call text_diff @arguments.json --json | jq .receipt.peakMemoryBytes
  toolcrib call get_time --records ./records && jq .status ./records/invocations.ndjson

Standard output is exactly one line; a failed call is an object with `error`, and exit status 1.";

/// Call one tool and print what a model would get.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The tool's name
    name: String,
    /// Its arguments: JSON, `-` for standard input, or `@FILE` [default: {}]
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Print the result or error and the receipt as one object
    #[arg(long)]
    json: bool,
    /// Show what the tool wrote to standard error
    #[arg(long, short)]
    verbose: bool,
    /// How long a call may take where the tool sets no time of its own [default: the value of --timeout]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    tool_timeout: Option<Duration>,
    /// How long a call may take where nothing else says
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s", help_heading = "Limits")]
    timeout: Duration,
    #[command(flatten)]
    records: RecordsFolder,
    #[command(flatten)]
    telemetry: TelemetryOptions,
    #[command(flatten)]
    sources: Sources,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let arguments = arguments(args.arguments.as_deref()).await?;
    let telemetry = args.telemetry.start(Root::Call)?;
    let records = args.records.open(&args.sources, [])?;
    let deadline = args.tool_timeout.unwrap_or(args.timeout);
    let observers = records.observer().into_iter().chain(telemetry.observer());
    let runtime = args.sources.runtime_with(deadline, [], |builder| observers.fold(builder, Builder::observer))?;
    records.keep_apart(&runtime)?;
    // The receipt is to show the call and not the compiler; what is wrong with the program, the call says itself.
    let ready = async { (runtime.prepare(&args.name).await, runtime.prepare_hooks().await) };
    let _ = progress::during("preparing the tool", ready).await;
    let id = format!("call_{:016x}", rand::random::<u64>());
    let _hold = interrupt::hold();
    let mut calls = Calls::start(&runtime.open_session(), vec![ToolCall::new(id, &args.name, &arguments)]);
    let result = calls.next().await.context("the call broke off")?;
    if args.verbose && !result.log.is_empty() {
        render::aside(&result.log);
    }
    if args.verbose {
        render::executed(&result.receipt.executed);
    }
    render::flags(&result.receipt.flags);
    advise(&result, args.verbose);
    if let Some(hint) = hint(&result.receipt, runtime.tool(&result.receipt.tool), &arguments) {
        render::hint(&hint);
    }
    let line = if args.json { with_receipt(&result)? } else { result.content().into_owned() };
    let printed = render::print_json(&line);
    let written = records.finish();
    telemetry.finish().await;
    printed.and(written)?;
    Ok(if result.is_error() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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

/// Says on standard error what a person can do about a call that did not get what it wanted.
fn advise(result: &ToolResult, verbose: bool) {
    if result.is_error() || verbose {
        render::denials(&result.receipt.denied);
    }
    let Err(error) = &result.outcome else { return };
    if let Some(fault) = &result.fault {
        // The model is told little; the operator is told what the library knows.
        render::explain(&fault.clone().into());
    } else if error.outcome == Outcome::Quota {
        render::hint("`limits.diskMb` and `limits.diskEntries` in the tool's manifest set what a call may write");
    } else if !verbose && ![error.content().trim(), error.message.trim(), ""].contains(&result.log.trim()) {
        render::hint("the tool wrote to standard error: --verbose shows it");
    }
}

/// The model's line and the receipt in one object. An error object that holds nothing but `error` is unwrapped.
fn with_receipt(result: &ToolResult) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RawValue>,
        receipt: &'a Receipt,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct OnlyError<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let content = result.content();
    let whole: &RawValue = serde_json::from_str(&content)?;
    let error = result.is_error().then(|| serde_json::from_str::<OnlyError>(&content).map_or(whole, |only| only.error));
    let value = (!result.is_error()).then_some(whole);
    serde_json::to_string(&Line { result: value, error, receipt: &result.receipt })
}
