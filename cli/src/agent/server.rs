//! A model behind a server: asks, asks again where that can help, and explains where it cannot. It knows
//! statuses and headers; [`super::response_body`] knows how an answer arrives, [`super::answer`] what it says.

use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;

use super::answer::message_of;
use super::api::Api;
use super::event::Event;
use super::fault::{Fault, Setting};
use super::report::Report;
use super::request::Request;
use super::response_body;
use super::retry::{self, Retries};
use super::turn::Turn;
use crate::http::{self, shown};
use crate::render::{self, Advice};

/// The most of a server's own words in a message of ours, in characters.
const MAX_REASON_LEN: usize = 600;

/// A server, and what is known about it.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    client: Client,
    url: Url,
    key: Option<String>,
    /// The time for a whole answer, or between two parts of a streamed one.
    timeout: Duration,
    retries: Retries,
    /// What its model has refused.
    refused: Vec<Setting>,
}

impl Server {
    /// A server at `base`, the address that the path of `api` is appended to.
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

    /// Asks until there is an answer or no hope of one.
    pub(crate) async fn answer(
        &mut self,
        mut request: Request<'_>,
        step: u32,
        report: &mut Report,
    ) -> anyhow::Result<Turn> {
        let attempts = self.retries.attempts();
        let mut attempt = 1;
        let mut once_key = once_key();
        loop {
            for setting in &self.refused {
                setting.take_from(&mut request);
            }
            report.asked(step, Some(&self.url));
            let end = self.attempt(&request, &once_key, step, report).await;
            report.answered(end.as_ref().map_err(Fault::kind));
            let fault = match end {
                Ok(turn) => return Ok(turn),
                Err(fault) => fault,
            };
            match fault {
                Fault::Refused { setting, .. } => {
                    self.refused.push(setting);
                    // Another body is another request.
                    once_key = self::once_key();
                    if setting == Setting::Temperature {
                        report.warn(&format!(
                            "the model `{}` does not support a temperature; retrying without it",
                            request.model
                        ))?;
                    }
                }
                Fault::Passing { reason, asked, .. } if attempt < attempts => {
                    let wait = self.retries.wait(attempt, asked);
                    attempt += 1;
                    let wait_ms = wait.as_millis().try_into().unwrap_or(u64::MAX);
                    report.emit(&Event::Retry { step, attempt, attempts, wait_ms, reason: &reason })?;
                    tokio::time::sleep(wait).await;
                }
                Fault::Passing { reason, .. } => return Err(self.gave_up(&reason, None, attempt)),
                Fault::Lasting { reason, hint, .. } => return Err(self.gave_up(&reason, hint, attempt)),
                Fault::Output(error) => return Err(error),
            }
        }
    }

    fn gave_up(&self, reason: &str, hint: Option<&str>, attempts: u32) -> anyhow::Error {
        let times = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        let cause = match hint {
            Some(hint) => Advice::new(reason, hint).into(),
            None => anyhow!("{reason}"),
        };
        cause.context(format!("no answer from `{}` after {times}", shown(&self.url)))
    }

    async fn attempt(
        &self,
        request: &Request<'_>,
        once_key: &str,
        step: u32,
        report: &mut Report,
    ) -> Result<Turn, Fault> {
        let body = serde_json::to_vec(request)
            .map_err(|error| Fault::lasting(format!("cannot encode the request: {error}")))?;
        report.debug(|| {
            format!("POST {} Idempotency-Key: {once_key}\n{}", shown(&self.url), String::from_utf8_lossy(&body))
        })?;
        let mut sent = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, if request.stream { "text/event-stream, application/json" } else { "application/json" })
            .header("Idempotency-Key", once_key)
            .body(body);
        if let Some(key) = &self.key {
            sent = sent.bearer_auth(key);
        }
        let response = tokio::time::timeout(self.timeout, sent.send())
            .await
            .map_err(|_| Fault::late(self.timeout))?
            .map_err(Fault::transport)?;
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
    ) -> Result<Fault, Fault> {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let asked = header(RETRY_AFTER).and_then(|header| retry::asked_wait(header, Timestamp::now()));
        let moved = header(reqwest::header::LOCATION).map(|to| format!("the address has moved to {to}"));
        let text = response_body::read_refusal(response, self.timeout).await;
        report.debug(|| text.clone())?;
        let said = match serde_json::from_str::<Value>(&text) {
            Ok(body) => message_of(&body),
            Err(_) => text.trim().to_owned(),
        };
        let said = if status.is_redirection() { moved.unwrap_or(said) } else { said };
        let said = render::one_line(&render::shortened(&report.masked(&said), MAX_REASON_LEN));
        let reason = if said.is_empty() { status.to_string() } else { format!("{status}: {said}") };
        let text = text.to_ascii_lowercase();
        let setting = Setting::ALL.into_iter().find(|setting| setting.is_in(request) && setting.is_meant_by(&text));
        let kind = status.as_str().to_owned();
        let hint = match (status.as_u16(), setting) {
            (400 | 422, Some(setting)) => return Ok(Fault::Refused { kind, setting }),
            (passing, _) if retry::is_passing(passing) => return Ok(Fault::Passing { kind, reason, asked }),
            (401, _) if self.key.is_none() => Some("set `OAI_API_KEY`, or give `--api-key`"),
            (301 | 302 | 307 | 308, _) => Some("redirects are not followed: correct `--base-url`"),
            (404, _) => Some(request.api.unknown_there()),
            _ => None,
        };
        Ok(Fault::Lasting { kind, reason, hint })
    }
}

/// A key by which a server knows the repetitions of one request.
fn once_key() -> String {
    format!("toolcrib-{:032x}", rand::random::<u128>())
}
