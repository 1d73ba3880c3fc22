//! Tools that the conformance suite of the Model Context Protocol calls. The suite fixes their names and answers.

mod content;
mod questions;

toolcrib_guest::tools!(
    content::test_simple_text,
    content::test_image_content,
    content::test_audio_content,
    content::test_embedded_resource,
    content::test_multiple_content_types,
    content::test_error_handling,
    content::test_tool_with_progress,
    content::test_logging_tool,
    content::test_reconnection,
    questions::test_elicitation,
    questions::test_streaming_elicitation,
    questions::test_input_required_result_elicitation,
    questions::test_input_required_result_request_state,
    questions::test_input_required_result_tampered_state,
    questions::test_input_required_result_capabilities,
    questions::test_input_required_result_multi_round,
);

#[cfg(test)]
mod tests;
