//! Tools for calls that the user must approve. The server asks, because a tool itself cannot.

use toolcrib_guest::tool;

/// Return after an approval of the message.
#[tool]
pub(crate) fn test_elicitation(
    /// Message for the user.
    message: String,
) -> String {
    format!("approved: {message}")
}

macro_rules! approved {
    ($($name:ident: $purpose:literal,)*) => {$(
        #[doc = $purpose]
        #[tool]
        pub(crate) fn $name() -> &'static str {
            "approved"
        }
    )*};
}

approved! {
    test_streaming_elicitation: "Return after an approval that the response stream requests.",
    test_input_required_result_elicitation: "Return after one approval.",
    test_input_required_result_request_state: "Return after an approval with a state.",
    test_input_required_result_tampered_state: "Return after an approval with an unchanged state.",
    test_input_required_result_capabilities: "Return after an approval that the client can ask for.",
    test_input_required_result_multi_round: "Return after several approvals.",
}
