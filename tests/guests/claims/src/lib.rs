//! Tool that claims every call that the host asks about, and rejects the calls that request it.

use toolcrib_guest::{Call, Opinion, Payload, tool};

toolcrib_guest::tools!(claims);

/// Tell that the call came here.
#[tool(text, route = everything)]
fn claims(text: &str) -> String {
    format!("claimed {text}")
}

fn everything(call: &Call) -> Opinion {
    match &call.payload {
        Payload::Object(text) if text.contains("reject") => Opinion::Rejects,
        _ => Opinion::Claims,
    }
}
