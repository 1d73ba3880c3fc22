//! Masks the values of secrets in everything that leaves a call: the line for the model, errors, parts, logs and the
//! receipt.

use std::borrow::Cow;

use crate::audit::Redactions;
use crate::call::{Link, Media, Part, Receipt};
use crate::error::{Outcome, ToolError};
use crate::policy::{Scanner, Secrets};
use crate::schema;

/// Masks secrets in the end of a call.
///
/// # Errors
///
/// The error of the call, masked; [`Outcome::Denied`] for an answer with a secret that no mask can remove.
pub(crate) fn redacted(secrets: Option<&Secrets>, ended: Result<String, ToolError>) -> Result<String, ToolError> {
    let Some((secrets, scanner)) = secrets.and_then(|secrets| Some((secrets, secrets.scanner()?))) else {
        return ended;
    };
    ended.and_then(|line| redacted_line(line, secrets, &scanner)).map_err(|mut error| {
        error.json = error.json.and_then(|json| redacted_line(json, secrets, &scanner).ok());
        error.message = mask(error.message, &scanner);
        error
    })
}

/// Masks a line of JSON value by value, so that it remains JSON.
fn redacted_line(line: String, secrets: &Secrets, scanner: &Scanner) -> Result<String, ToolError> {
    let Err(leak) = scanner.check(line.as_bytes()) else { return Ok(line) };
    let masked = schema::parse(&line).ok().map(|mut value| {
        let mut masks = Redactions::default();
        masks.add_secrets(secrets.clone());
        masks.mask(&mut value);
        value.to_string()
    });
    // A secret can span several values; such an answer is withheld.
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

/// Masks secrets in a text.
pub(crate) fn masked(secrets: Option<&Secrets>, text: String) -> String {
    match secrets.and_then(Secrets::scanner) {
        Some(scanner) => mask(text, &scanner),
        None => text,
    }
}

/// Masks secrets in a part for people.
pub(super) fn masked_part(secrets: Option<&Secrets>, part: Part) -> Part {
    match secrets.and_then(Secrets::scanner) {
        Some(scanner) => masked_by(&scanner, part),
        None => part,
    }
}

pub(super) fn masked_by(scanner: &Scanner, part: Part) -> Part {
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

/// Masks secrets in receipt fields that hold text from a guest or a model.
pub(super) fn redact_receipt(receipt: &mut Receipt, scanner: &Scanner) {
    for denial in &mut receipt.denied {
        denial.capability = mask(std::mem::take(&mut denial.capability), scanner);
        denial.flag = denial.flag.take().map(|flag| mask(flag, scanner));
    }
    if let Some(decision) = &mut receipt.decision {
        decision.rests_on = decision.rests_on.take().map(|text| mask(text, scanner));
    }
    if let Some(label) = &mut receipt.label {
        label.map_sources(|source| mask(source.to_owned(), scanner));
    }
    for hook in &mut receipt.hooks {
        hook.hook = mask(std::mem::take(&mut hook.hook), scanner);
        hook.source = hook.source.take().map(|source| mask(source, scanner));
    }
    for request in receipt.network.iter_mut().flat_map(|network| &mut network.requests) {
        request.method = mask(std::mem::take(&mut request.method), scanner);
        request.host = mask(std::mem::take(&mut request.host), scanner);
    }
}
