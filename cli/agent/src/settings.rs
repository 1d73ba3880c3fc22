//! Settings of the model and its server, each from its flag, else its environment variable, else its default. The API key
//! is never shown.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use reqwest::Url;
use serde_json::{Value, json};
use toolcrib_base::http::{self, secrets_in, shown};
use toolcrib_base::parse::{MAX_COUNT, count, delay, duration};
use toolcrib_base::render::{self, usage_error};
use toolcrib_base::retry::Retries;
use toolcrib_settings::config;

use super::api::Api;
use super::request::Sampling;
use super::server::Server;

const DEFAULT_URL: &str = "https://api.openai.com/v1";
/// Default time limit of the server: a model may think longer than a tool may run.
const HTTP_TIMEOUT: Duration = Duration::from_secs(120);
/// Default time limit of a call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Default number of steps: real tasks take some dozens.
const MAX_STEPS: u32 = 100;
/// Default number of retries, and default delay before the first.
const RETRIES: (u32, Duration) = (2, Duration::from_millis(500));

/// Flag of the server's address.
const BASE_URL: &str = "--base-url";
/// Flag of the variable with the key.
const API_KEY_ENV: &str = "--api-key-env";
/// Variables with the key, the strongest first.
const API_KEYS: [&str; 2] = ["OAI_API_KEY", "OPENAI_API_KEY"];
const WITHHELD: &str = "the API key is not sent to this server, which the project settings name; to send it, name the server \
                        with `--base-url`, OAI_BASE_URL or OPENAI_BASE_URL, or remove `model.base_url` from `toolcrib.toml` and set it in your \
                        own file with `toolcrib config set model.base_url URL`";

/// Key of the model in settings files.
const MODEL_KEY: &str = "model.name";
const MODEL: &str = "Model";
const TIMES: &str = "Timeouts and retries";

/// The options of a model and its server.
#[derive(Debug, clap::Args)]
pub struct ModelOptions {
    /// Model API; its path is appended to --base-url [env: OAI_API] [default: chat]
    #[arg(long, value_name = "API", help_heading = MODEL)]
    api: Option<Api>,
    /// Offer tools that take text as functions with one field, for servers with a Responses API without custom tools [env: OAI_NO_CUSTOM_TOOLS]
    #[arg(long, help_heading = MODEL)]
    no_custom_tools: bool,
    /// Base URL of the server; `/chat/completions` or `/responses` is appended [env: OAI_BASE_URL, then OPENAI_BASE_URL] [default: https://api.openai.com/v1]
    #[allow(rustdoc::bare_urls, reason = "the help shows the text as it is")]
    #[arg(long, value_name = "URL", help_heading = MODEL)]
    base_url: Option<String>,
    /// API key of the server; an environment variable is safer [env: OAI_API_KEY, then OPENAI_API_KEY]
    #[arg(long, value_name = "KEY", help_heading = MODEL)]
    api_key: Option<String>,
    /// Name of the environment variable with the API key of the server
    #[arg(long, value_name = "NAME", help_heading = MODEL, conflicts_with = "api_key")]
    api_key_env: Option<String>,
    /// Name of the model [env: OAI_MODEL, then OPENAI_MODEL]
    #[arg(long, value_name = "NAME", help_heading = MODEL)]
    model: Option<String>,
    /// Replay a scripted model from a file instead of using a server
    #[arg(long, value_name = "FILE", help_heading = MODEL)]
    pub script: Option<PathBuf>,
    /// Sampling temperature, 0 to 2 [default: the server's]
    #[arg(long, value_name = "N", value_parser = within::<2>, help_heading = MODEL)]
    temp: Option<f64>,
    /// Nucleus sampling (top-p), 0 to 1; overrides --temp
    #[arg(long, value_name = "N", value_parser = within::<1>, help_heading = MODEL)]
    top_p: Option<f64>,
    /// Maximum number of steps for each agent, each a request to the model [default: 100]
    #[arg(long, value_name = "N", value_parser = count::<u32, 1, MAX_COUNT>, help_heading = MODEL)]
    max_steps: Option<u32>,

    /// Time limit of a call and of the server where `limits.tool_timeout` and `model.http_timeout` are not set [default: 30s for a call, 120s for the server]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = TIMES)]
    timeout: Option<Duration>,
    /// Time limit of a call, such as `10s` or `500ms`, unless the tool sets its own; a number without a unit is in seconds
    /// [default: --timeout]
    ///
    /// The limit is the tool's own, else --tool-timeout, else --timeout; --max-timeout then caps it. A tool from an untrusted source
    /// gets at most --max-timeout or, without that, the limit of a tool that sets none.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = TIMES)]
    tool_timeout: Option<Duration>,
    /// Time limit of the server, for a response or between two parts of one [env: OAI_HTTP_TIMEOUT] [default: --timeout, else 120s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = TIMES)]
    http_timeout: Option<Duration>,
    /// Maximum retries after a timeout, a lost connection, 429 or 5xx [default: 2]
    #[arg(long, value_name = "N", value_parser = count::<u32, 0, 100>, help_heading = TIMES)]
    http_retries: Option<u32>,
    /// Delay before the first retry; doubles with each retry [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = delay, help_heading = TIMES)]
    http_retry_backoff: Option<Duration>,
}

/// Resolved settings of a run.
#[derive(Debug)]
pub struct Settings {
    /// API of the server.
    pub api: Sourced<Api>,
    /// `true` to offer tools that take text as custom tools.
    pub custom_tools: Sourced<bool>,
    base_url: Sourced<Url>,
    /// Key, which is masked also where it is withheld.
    api_key: Option<Sourced<String>>,
    /// `true` if a project's file names the server: no key of the user's goes there.
    withholds_key: bool,
    model: Option<Sourced<String>>,
    /// Default deadline of a call.
    pub tool_timeout: Sourced<Duration>,
    http_timeout: Sourced<Duration>,
    retries: Sourced<u32>,
    retry_backoff: Sourced<Duration>,
    /// Warnings about conflicting settings.
    pub warnings: Vec<&'static str>,
    temperature: Option<Sourced<f64>>,
    top_p: Option<Sourced<f64>>,
    /// Maximum number of steps.
    pub max_steps: Sourced<u32>,
    script: Option<PathBuf>,
}

/// A value with the flag, variable or default that it comes from.
#[derive(Debug, Clone)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    source: &'static str,
}

impl<T> Sourced<T> {
    /// Creates a value of a flag, a variable or a default. The value of a flag may be from a settings file.
    fn from(source: &'static str, value: T) -> Self {
        Self { value, source: config::origin_of(source).unwrap_or(source) }
    }

    fn map<U>(self, with: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced { value: with(self.value), source: self.source }
    }
}

impl ModelOptions {
    /// Resolves every setting. `variable` returns an environment variable, if it is set.
    pub fn resolve(&self, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Settings> {
        let text = |flag: &Option<String>, name: &'static str, variables: &[&'static str]| {
            let from_flag = flag.clone().map(|value| Sourced::from(name, value));
            let from_variable = |name: &&'static str| {
                let value = variable(name).filter(|value| !value.trim().is_empty())?;
                Some(Sourced::from(name, value))
            };
            let found = from_flag.or_else(|| variables.iter().find_map(from_variable))?;
            Some(found.map(|value| value.trim().to_owned())).filter(|found| !found.value.is_empty())
        };
        let base_url = text(&self.base_url, BASE_URL, &["OAI_BASE_URL", "OPENAI_BASE_URL"]);
        let is_named_above_files = base_url.is_some() && !config::is_of_file(BASE_URL);
        let is_named_by_project = base_url.is_some() && config::is_of_project(BASE_URL);
        let base_url = base_url.unwrap_or_else(|| Sourced::from("default", DEFAULT_URL.to_owned()));
        let base_url = Sourced {
            value: http::address(base_url.source, &base_url.value, DEFAULT_URL).map_err(usage_error)?,
            source: base_url.source,
        };

        let api_key = match (&self.api_key, &self.api_key_env) {
            (None, Some(name)) => {
                let value = variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
                let value = value.map(|value| Sourced::from(API_KEY_ENV, value));
                // The key of a file belongs to the server of a file, not to one that the command line or the environment
                // names beside a key of its own.
                let of_environment = match is_named_above_files && config::is_of_file(API_KEY_ENV) {
                    true => text(&None, "", &API_KEYS),
                    false => None,
                };
                let missing = || usage_error(missing_key(name));
                match of_environment.or(value) {
                    None if !is_named_by_project => return Err(missing()),
                    key => key,
                }
            }
            _ => text(&self.api_key, "--api-key", &API_KEYS),
        };
        let withholds_key = api_key.is_some() && is_named_by_project;
        let api = match (self.api, text(&None, "", &["OAI_API"])) {
            (Some(api), _) => Sourced::from("--api", api),
            (None, Some(word)) => {
                let api = Api::from_str(&word.value, true);
                let wrong = |_| usage_error(format!("`OAI_API` is `{}`: write `chat` or `responses`", word.value));
                Sourced::from(word.source, api.map_err(wrong)?)
            }
            (None, None) => Sourced::from("default", Api::default()),
        };
        let by_variable = text(&None, "", &["OAI_NO_CUSTOM_TOOLS"]);
        let custom_tools = match by_variable.as_ref().map(|word| word.value.as_str()) {
            None | Some("0" | "false") if self.no_custom_tools => Sourced::from("--no-custom-tools", false),
            Some("1" | "true") => Sourced::from("OAI_NO_CUSTOM_TOOLS", false),
            Some("0" | "false") => Sourced::from("OAI_NO_CUSTOM_TOOLS", true),
            None => Sourced::from("default", true),
            Some(word) => return Err(usage_error(format!("`OAI_NO_CUSTOM_TOOLS` is `{word}`: write `1` or `0`"))),
        };

        let flag = |flag: Option<Duration>, name| flag.map(|time| Sourced::from(name, time));
        let timeout = flag(self.timeout, "--timeout");
        let tool_timeout = flag(self.tool_timeout, "--tool-timeout").or(timeout.clone());
        let http_timeout =
            match (self.http_timeout, variable("OAI_HTTP_TIMEOUT").filter(|text| !text.trim().is_empty())) {
                (None, Some(text)) => {
                    let time = duration(&text).map_err(|error| usage_error(format!("`OAI_HTTP_TIMEOUT`: {error}")))?;
                    Some(Sourced::from("OAI_HTTP_TIMEOUT", time))
                }
                (given, _) => flag(given, "--http-timeout").or(timeout),
            };

        let both = self.temp.is_some() && self.top_p.is_some();
        Ok(Settings {
            api,
            custom_tools,
            base_url,
            api_key,
            withholds_key,
            model: text(&self.model, "--model", &["OAI_MODEL", "OPENAI_MODEL"]),
            tool_timeout: tool_timeout.unwrap_or(Sourced::from("default", TIMEOUT)),
            http_timeout: http_timeout.unwrap_or(Sourced::from("default", HTTP_TIMEOUT)),
            retries: or_default(self.http_retries, "--http-retries", RETRIES.0),
            retry_backoff: or_default(self.http_retry_backoff, "--http-retry-backoff", RETRIES.1),
            warnings: (both.then_some("--top-p overrides --temp: no temperature is sent").into_iter())
                .chain(withholds_key.then_some(WITHHELD))
                .collect(),
            temperature: self.temp.filter(|_| !both).map(|value| Sourced::from("--temp", value)),
            top_p: self.top_p.map(|value| Sourced::from("--top-p", value)),
            max_steps: or_default(self.max_steps, "--max-steps", MAX_STEPS),
            script: self.script.clone(),
        })
    }
}

impl Settings {
    /// Returns the name of the model.
    pub fn model(&self) -> anyhow::Result<String> {
        let none = || match config::untrusted_file_with(MODEL_KEY) {
            Some(file) => {
                let (shown, word) = (render::from_here(&file).display().to_string(), render::shell_path(&file));
                usage_error(format!(
                    "no model: the one in `{}` is ignored, because the file is not trusted: review it with `toolcrib trust \
                     {word}`, or name a model with `--model`",
                    render::one_line(&shown)
                ))
            }
            None => usage_error(
                "no model: set one with `--model`, `OAI_MODEL`, `OPENAI_MODEL` or `toolcrib config set model.name NAME`",
            ),
        };
        Ok(self.model.as_ref().ok_or_else(none)?.value.clone())
    }

    /// Creates the server.
    pub fn server(&self) -> anyhow::Result<Server> {
        let key = self.sent_key().map(|key| key.value.clone());
        let retries = Retries { times: self.retries.value, backoff: self.retry_backoff.value };
        Server::new(self.api.value, &self.base_url.value, key, self.http_timeout.value, retries)
            .context("cannot set up the model's server")
    }

    /// Returns the sampling options.
    pub fn sampling(&self) -> Sampling {
        let value = |option: &Option<Sourced<f64>>| option.as_ref().map(|option| option.value);
        Sampling { temperature: value(&self.temperature), top_p: value(&self.top_p) }
    }

    /// Returns the key, if the server gets it.
    fn sent_key(&self) -> Option<&Sourced<String>> {
        self.api_key.as_ref().filter(|_| !self.withholds_key)
    }

    /// Returns the values that must never be shown.
    pub fn secrets(&self) -> Vec<String> {
        self.api_key.iter().map(|key| key.value.clone()).chain(secrets_in(&self.base_url.value)).collect()
    }

    /// Formats the settings as JSON with secrets masked. Each value has its origin in `from`.
    pub fn shown(&self) -> Value {
        let source = |source: Option<&'static str>| source.unwrap_or("none");
        let sampling = |option: &Option<Sourced<f64>>| option.as_ref().map_or("none", |option| option.source);
        json!({
            "api": self.api.value.as_str(),
            "customTools": self.custom_tools.value,
            "baseUrl": shown(&self.base_url.value),
            "apiKey": self.sent_key().map(|_| "***"),
            "model": self.model.as_ref().map(|model| &model.value),
            "script": self.script,
            "maxSteps": self.max_steps.value,
            "toolTimeout": format!("{:?}", self.tool_timeout.value),
            "httpTimeout": format!("{:?}", self.http_timeout.value),
            "httpRetries": self.retries.value,
            "httpRetryBackoff": format!("{:?}", self.retry_backoff.value),
            "temperature": self.sampling().temperature,
            "topP": self.sampling().top_p,
            "from": {
                "api": self.api.source,
                "customTools": self.custom_tools.source,
                "baseUrl": self.base_url.source,
                "apiKey": source(self.sent_key().map(|key| key.source)),
                "model": source(self.model.as_ref().map(|model| model.source)),
                "script": source(self.script.as_ref().map(|_| "--script")),
                "maxSteps": self.max_steps.source,
                "toolTimeout": self.tool_timeout.source,
                "httpTimeout": self.http_timeout.source,
                "httpRetries": self.retries.source,
                "httpRetryBackoff": self.retry_backoff.source,
                "temperature": sampling(&self.temperature),
                "topP": sampling(&self.top_p),
            },
        })
    }
}

/// Message about a variable without a key.
fn missing_key(name: &str) -> String {
    let fix = match config::repair_of(API_KEY_ENV) {
        Some((origin, repair)) => format!("set it; its name is from the {origin}: {repair}"),
        None => "set it, or name another variable with `--set model.api_key_env=NAME`".to_owned(),
    };
    format!("the variable `{name}` with the API key is not set: {fix}")
}

/// Returns the value of a flag, or its default.
fn or_default<T>(given: Option<T>, flag: &'static str, default: T) -> Sourced<T> {
    given.map_or_else(|| Sourced::from("default", default), |value| Sourced::from(flag, value))
}

/// Parses a number from 0 to `MAX`.
fn within<const MAX: u8>(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=f64::from(MAX)).contains(&number) {
        Ok(number)
    } else {
        Err(format!("`{text}` is not between 0 and {MAX}"))
    }
}
