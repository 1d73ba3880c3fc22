//! Model client: sends requests, retries transient errors and explains permanent ones. It handles statuses and headers;
//! `response_body` reads bodies, `answer` builds answers.

use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use toolcrib_base::http::{self, shown};
use toolcrib_base::render::{self, Advice};
use toolcrib_base::retry::{self, Retries};

use super::answer::message_of;
use super::api::Api;
use super::event::Event;
use super::report::Report;
use super::request::Request;
use super::request_error::{RequestError, Setting, TIMEOUT, TRANSPORT};
use super::response_body;
use super::turn::Turn;

/// Maximum length of a server's message in an error, in characters.
const MAX_REASON_LEN: usize = 600;

/// Words of servers, in lowercase, that refuse a conversation because it is longer than the model's context.
const FULL_CONTEXT: [&str; 8] = [
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "too many tokens",
    "prompt is too long",
    "input is too long",
];

/// A model server.
#[derive(Debug, Clone)]
pub struct Server {
    client: Client,
    url: Url,
    key: Option<String>,
    /// Time limit for a whole response, or between two parts of a stream.
    timeout: Duration,
    retries: Retries,
    /// Settings that the model has rejected.
    refused: Vec<Setting>,
}

impl Server {
    /// Creates a client for the server at `base`; the path of `api` is appended.
    pub(crate) fn new(
        api: Api,
        base: &Url,
        key: Option<String>,
        timeout: Duration,
        retries: Retries,
    ) -> anyhow::Result<Self> {
        let url = http::below(base, api.path())?;
        Ok(Self { client: http::client()?, url, key, timeout, retries, refused: Vec::new() })
    }

    /// Requests an answer, with retries.
    pub(crate) async fn answer(
        &mut self,
        request: Request<'_>,
        step: u32,
        report: &mut Report,
    ) -> anyhow::Result<Turn> {
        let attempts = self.retries.attempts();
        let mut attempt = 1;
        let mut idempotency_key = idempotency_key();
        let origin = format!("{} {}", shown(&self.url), request.model);
        let mut request = Request { origin: &origin, ..request };
        loop {
            for setting in &self.refused {
                setting.remove_from(&mut request);
            }
            report.asked(step, Some(&self.url));
            let end = self.attempt(&request, &idempotency_key, step, report).await;
            report.answered(end.as_ref().map_err(RequestError::kind));
            let fault = match end {
                Ok(mut turn) => {
                    turn.foreign.origin = origin;
                    return Ok(turn);
                }
                Err(fault) => fault,
            };
            match fault {
                RequestError::Refused { setting, .. } => {
                    self.refused.push(setting);
                    // A different body is a different request.
                    idempotency_key = self::idempotency_key();
                    match setting {
                        Setting::Temperature => report.warn(&format!(
                            "the model `{}` does not support a temperature; retrying without it",
                            request.model
                        ))?,
                        Setting::StreamUsage => report.warn(
                            "the server refuses `stream_options`; retrying without it, and without the number of tokens",
                        )?,
                        Setting::Reasoning => {}
                    }
                }
                RequestError::Transient { reason, asked, .. } if attempt < attempts => {
                    let wait = self.retries.wait(attempt, asked);
                    attempt += 1;
                    let wait_ms = wait.as_millis().try_into().unwrap_or(u64::MAX);
                    report.emit(&Event::Retry { step, attempt, attempts, wait_ms, reason: &reason })?;
                    tokio::time::sleep(wait).await;
                }
                RequestError::Transient { reason, kind, .. } => {
                    return Err(self.failed(&reason, self.transient_hint(&kind, report).as_deref(), attempt, report));
                }
                RequestError::Permanent { reason, kind, .. } if kind == TIMEOUT => {
                    return Err(self.failed(&reason, Some(&timeout_hint(report)), attempt, report));
                }
                RequestError::Permanent { reason, hint, .. } => return Err(self.failed(&reason, hint, attempt, report)),
                RequestError::Output(error) => return Err(error),
            }
        }
    }

    /// Returns the hint about an error that the retries did not overcome.
    fn transient_hint(&self, kind: &str, report: &Report) -> Option<String> {
        let later = "`model.http_retries` and `model.http_retry_backoff` set how often and how long it is retried";
        match kind {
            TRANSPORT => Some(self.connection_hint()),
            TIMEOUT => Some(timeout_hint(report)),
            "429" => Some(format!(
                "the server limits this key's requests: wait, or check your account's limits and credit; {later}"
            )),
            status if status.starts_with('5') => {
                Some(format!("the server failed: try again later, or look at its log; {later}"))
            }
            _ => None,
        }
    }

    /// Returns the hint about a server that cannot be reached.
    fn connection_hint(&self) -> String {
        let key = if self.key.is_none() { "; no key is set (`OAI_API_KEY` or `OPENAI_API_KEY`)" } else { "" };
        format!(
            "check the address, set by `--base-url`, `OAI_BASE_URL` or `OPENAI_BASE_URL`, and that its server runs{key}"
        )
    }

    fn failed(&self, reason: &str, hint: Option<&str>, attempts: u32, report: &Report) -> anyhow::Error {
        let (url, times) = (shown(&self.url), render::counted(attempts, "attempt"));
        let cause = match hint {
            Some(hint) => Advice::new(reason, hint).into(),
            None => anyhow!("{reason}"),
        };
        cause.context(match report.has_text() {
            true => format!("the answer of `{url}` stopped after {times}"),
            false => format!("no answer from `{url}` after {times}"),
        })
    }

    async fn attempt(
        &self,
        request: &Request<'_>,
        idempotency_key: &str,
        step: u32,
        report: &mut Report,
    ) -> Result<Turn, RequestError> {
        let body = serde_json::to_vec(request)
            .map_err(|error| RequestError::permanent(format!("cannot encode the request: {error}")))?;
        report.debug(|| {
            format!("POST {} Idempotency-Key: {idempotency_key}\n{}", shown(&self.url), String::from_utf8_lossy(&body))
        })?;
        let mut sent = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, if request.stream { "text/event-stream, application/json" } else { "application/json" })
            .header("Idempotency-Key", idempotency_key)
            .body(body);
        if let Some(key) = &self.key {
            sent = sent.bearer_auth(key);
        }
        let response = tokio::time::timeout(self.timeout, sent.send())
            .await
            .map_err(|_| RequestError::timed_out(self.timeout))?
            .map_err(RequestError::transport)?;
        let status = response.status();
        report.debug(|| format!("{status}"))?;
        if status.is_success() {
            response_body::read(response, self.timeout, (request.api, request.stream), step, report).await
        } else {
            Err(self.refused(status, response, request, report).await?)
        }
    }

    async fn refused(
        &self,
        status: StatusCode,
        response: Response,
        request: &Request<'_>,
        report: &mut Report,
    ) -> Result<RequestError, RequestError> {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let asked = header(RETRY_AFTER).and_then(|header| retry::retry_after(header, Timestamp::now()));
        let moved = header(reqwest::header::LOCATION).map(|to| format!("the address has moved to {to}"));
        let text = response_body::read_refusal(response, self.timeout).await;
        report.debug(|| text.clone())?;
        let message = match serde_json::from_str::<Value>(&text) {
            Ok(body) => message_of(&body),
            Err(_) => text.trim().to_owned(),
        };
        let message = if status.is_redirection() { moved.unwrap_or(message) } else { message };
        let message = render::one_line(&render::shortened(&report.masked(&message), MAX_REASON_LEN));
        let reason = if message.is_empty() { status.to_string() } else { format!("{status}: {message}") };
        let text = text.to_ascii_lowercase();
        let setting = Setting::ALL.into_iter().find(|setting| setting.is_in(request) && setting.is_named_in(&text));
        let kind = status.as_str().to_owned();
        let hint = match (status.as_u16(), setting) {
            (400 | 422, Some(setting)) => return Ok(RequestError::Refused { kind, setting }),
            (400 | 413 | 422, _) if FULL_CONTEXT.iter().any(|words| text.contains(words)) => Some(
                "the conversation is longer than the context of the model, and `--resume` would send the same again: begin a \
                 new run with a summary, name a model with a larger context with `--model`, or attach less",
            ),
            (passing, _) if retry::is_transient(passing) => return Ok(RequestError::Transient { kind, reason, asked }),
            (401, _) if self.key.is_none() => Some("set `OAI_API_KEY` or `OPENAI_API_KEY`, or give `--api-key`"),
            (403, _) if self.key.is_none() => Some(
                "the server denies access, and no key is set: if it needs one, set `OAI_API_KEY` or `OPENAI_API_KEY`, or give \
                 `--api-key`",
            ),
            (401 | 403, _) => {
                Some("the server refuses the key: `toolcrib run --print-config` shows where it comes from")
            }
            (402, _) => Some("the server requires payment: check your account's credit"),
            (413, _) => Some("the request is too large: attach less, or begin a new run"),
            (301 | 302 | 307 | 308, _) => Some("redirects are not followed: correct `--base-url`"),
            (404, _) => Some(request.api.not_found_hint()),
            _ => None,
        };
        Ok(RequestError::Permanent { kind, reason, hint })
    }
}

/// Returns the hint about a time limit, and how to go on from the text of a kept run. A chat says itself how it goes on.
fn timeout_hint(report: &Report) -> String {
    let limit = "set a longer limit with `--set model.http_timeout=5m`";
    match report.resume_command().filter(|_| !report.is_chat()) {
        Some(command) => format!("{limit}, and continue with `{command}`"),
        None => limit.to_owned(),
    }
}

/// Creates a key that lets a server recognize retries of one request.
fn idempotency_key() -> String {
    format!("toolcrib-{:032x}", rand::random::<u128>())
}
