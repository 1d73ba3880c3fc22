//! A tool that claims every call that it is asked about, but for those that ask to be rejected.

use toolcrib_guest::{Call, Opinion, Payload, Value, tool};

toolcrib_guest::tools!(claims);

/// Tell that the call came here.
#[tool(route = everything)]
fn claims(#[args] all: Value) -> String {
    format!("claimed {all}")
}

fn everything(call: &Call) -> Opinion {
    match &call.payload {
        Payload::Object(text) if text.contains("reject") => Opinion::Rejects,
        _ => Opinion::Claims,
    }
}
