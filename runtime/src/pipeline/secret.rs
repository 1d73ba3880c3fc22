//! Secrets on the way of a call: their values are read when the call may run, and what it leaves holds none of them,
//! neither for the model nor for people.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crate::audit::Redactions;
use crate::call::{Denial, Link, Media, Part, Receipt};
use crate::error::{Error, Outcome, ToolError};
use crate::policy::{Credentials, Scanner, Secrets};
use crate::schema;

use super::ready::{Ready, aside};
use super::ticket::{Said, Ticket};
use super::{Context, Pipeline, unless_cancelled};

impl Pipeline {
    /// The values of a tool's secrets, read once for all of its calls; `None` where it is granted none.
    ///
    /// # Errors
    ///
    /// [`Outcome::Denied`] where one cannot be had: the tool does not run without it. [`Outcome::Deadline`] where the store
    /// takes longer than the call may.
    pub(super) async fn credentials<'p>(
        &'p self,
        ready: &'p Ready,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<Option<&'p Arc<Credentials>>, ToolError> {
        if ready.grant.secrets().is_empty() {
            return Ok(None);
        }
        if let Some(known) = ready.credentials.get() {
            return Ok(Some(known));
        }
        let since = Instant::now();
        let left = ticket.left_of(&ready.limits)?.deadline;
        let opened = ready.credentials.get_or_try_init(|| self.open_secrets(ready));
        let opened = unless_cancelled(context.turn, tokio::time::timeout(left, opened)).await?;
        // A store may ask a person to unlock it; the time is the call's own.
        ticket.spend(since.elapsed());
        let opened = opened.map_err(|_| ToolError::new(Outcome::Deadline, "tool timed out waiting for its secrets"))?;
        opened.map(Some).map_err(|fault| ticket.fault(fault))
    }

    async fn open_secrets(&self, ready: &Ready) -> Result<Arc<Credentials>, Error> {
        let granted = ready.grant.secrets().to_vec();
        let name = granted.first().map(|request| request.name.clone()).unwrap_or_default();
        let missing = |reason: &str| Error::Secret { name: name.clone(), reason: reason.to_owned() };
        let secrets = self.secrets.clone().ok_or_else(|| missing("no secret store is configured"))?;
        let opened = tokio::task::spawn_blocking(move || secrets.open(&granted)).await;
        opened.map_err(|_| missing("the secret store failed"))?.map(Arc::new)
    }
}

impl Pipeline {
    /// The end of a call without the secrets in it. A large answer is looked through beside the calls.
    pub(super) async fn guarded(
        &self,
        ended: Result<String, ToolError>,
        ready: &Ready,
        ticket: &Ticket<'_>,
    ) -> Result<String, ToolError> {
        let large = ended.as_ref().is_ok_and(|line| line.len() > schema::LARGE);
        let Some(secrets) = self.secrets.as_ref().filter(|secrets| large && secrets.scanner().is_some()) else {
            return guarded(self.secrets.as_ref(), ended);
        };
        let secrets = secrets.clone();
        let job = aside(ticket.end(&ready.limits), move || guarded(Some(&secrets), ended));
        let why =
            || ToolError::new(Outcome::Deadline, "tool timed out while its answer was looked through for secrets");
        job.await.unwrap_or_else(|| Err(why()))
    }
}

/// Withholds the answer of a call to which a secret was sent back: whatever the tool made of it is not told.
///
/// # Errors
///
/// [`Outcome::Denied`] where that happened.
pub(super) fn refuse_leak(ticket: &mut Ticket<'_>) -> Result<(), ToolError> {
    let Some(name) = ticket.usage.ledger().leaked() else { return Ok(()) };
    ticket.denied(Denial { capability: format!("secret:{name}"), flag: None });
    Err(ToolError::new(Outcome::Denied, format!("a response held the secret `{name}`, so the answer is withheld")))
}

/// The end of a call without the secrets in it.
///
/// # Errors
///
/// The call's own, masked; [`Outcome::Denied`] where an answer holds a secret in a way that no mask fits.
pub(super) fn guarded(secrets: Option<&Secrets>, ended: Result<String, ToolError>) -> Result<String, ToolError> {
    let Some((secrets, scanner)) = secrets.and_then(|secrets| Some((secrets, secrets.scanner()?))) else {
        return ended;
    };
    ended.and_then(|line| answer(line, secrets, &scanner)).map_err(|mut error| {
        error.json = error.json.and_then(|json| answer(json, secrets, &scanner).ok());
        error.message = mask(error.message, &scanner);
        error
    })
}

/// A line of JSON, masked value by value, so that it stays JSON.
fn answer(line: String, secrets: &Secrets, scanner: &Scanner) -> Result<String, ToolError> {
    let Err(leak) = scanner.check(line.as_bytes()) else { return Ok(line) };
    let masked = schema::parse(&line).ok().map(|mut value| {
        let mut masks = Redactions::default();
        masks.add_secrets(secrets.clone());
        masks.mask(&mut value);
        value.to_string()
    });
    // A secret can lie across values: then nothing is told.
    masked.filter(|masked| scanner.check(masked.as_bytes()).is_ok()).ok_or_else(|| {
        ToolError::new(Outcome::Denied, format!("the answer held the secret `{}`, so it is withheld", leak.0))
    })
}

fn mask(text: String, scanner: &Scanner) -> String {
    match scanner.mask(&text) {
        Cow::Owned(masked) => masked,
        Cow::Borrowed(_) => text,
    }
}

/// A text for people without the secrets in it.
pub(super) fn masked(secrets: Option<&Secrets>, text: String) -> String {
    match secrets.and_then(Secrets::scanner) {
        Some(scanner) => mask(text, &scanner),
        None => text,
    }
}

/// EventKind a rich tool said, without the secrets in it.
///
/// # Errors
///
/// [`Outcome::Denied`] where one lies in bytes that no mask fits.
pub(super) fn guard_parts(secrets: Option<&Secrets>, said: &mut Said) -> Result<(), ToolError> {
    let Some(scanner) = secrets.and_then(Secrets::scanner) else { return Ok(()) };
    let shown = std::mem::take(&mut said.shown);
    said.shown = shown.into_iter().map(|part| masked_by(&scanner, part)).collect();
    for media in &mut said.media {
        media.name = media.name.take().filter(|name| scanner.check(name.as_bytes()).is_ok());
    }
    match said.media.iter().find_map(|media| scanner.check(&media.data).err()) {
        None => Ok(()),
        Some(leak) => {
            said.media.clear();
            let message = format!("the answer held the secret `{}`, so it is withheld", leak.0);
            Err(ToolError::new(Outcome::Denied, message))
        }
    }
}

/// A part for people without the secrets in it.
pub(super) fn masked_part(secrets: Option<&Secrets>, part: Part) -> Part {
    match secrets.and_then(Secrets::scanner) {
        Some(scanner) => masked_by(&scanner, part),
        None => part,
    }
}

fn masked_by(scanner: &Scanner, part: Part) -> Part {
    let holds = |bytes: &[u8]| scanner.check(bytes).is_err();
    match part {
        Part::Text(text) => Part::Text(mask(text, scanner)),
        Part::Json(text) if holds(text.as_bytes()) => Part::Text(mask(text, scanner)),
        Part::Media(Media { data, mime_type, .. }) if holds(&data) => Part::Text(format!("[{mime_type}, withheld]")),
        Part::Link(Link { uri, .. }) if holds(uri.as_bytes()) => Part::Text(mask(uri, scanner)),
        Part::Media(media) => {
            let name = media.name.filter(|name| !holds(name.as_bytes()));
            Part::Media(Media { name, ..media })
        }
        Part::Link(link) => {
            let name = link.name.map(|name| mask(name, scanner));
            Part::Link(Link { name, ..link })
        }
        other => other,
    }
}

/// Masks what a guest or a model worded in a receipt.
pub(super) fn mask_receipt(receipt: &mut Receipt, scanner: &Scanner) {
    for denial in &mut receipt.denied {
        denial.capability = mask(std::mem::take(&mut denial.capability), scanner);
        denial.flag = denial.flag.take().map(|flag| mask(flag, scanner));
    }
    if let Some(decision) = &mut receipt.decision {
        decision.rests_on = decision.rests_on.take().map(|text| mask(text, scanner));
    }
    for request in receipt.network.iter_mut().flat_map(|network| &mut network.requests) {
        request.method = mask(std::mem::take(&mut request.method), scanner);
        request.host = mask(std::mem::take(&mut request.host), scanner);
    }
}
