//! Answers of every kind of content, a failure, progress, and the log.

use std::time::Duration;

use toolcrib_guest::{Answer, Error, Part, Result, error, json, log, progress, tool};

/// Picture of one grey dot.
const DOT: &[u8] = include_bytes!("../../rich/src/dot.png");
/// Sound of two samples: one channel, 8 kHz, 8 bits.
const CLICK: &[u8] =
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x02\0\0\0\x80\x80";
/// Time between two steps.
const PAUSE: Duration = Duration::from_millis(50);

/// Return text.
#[tool(read_only)]
pub(crate) fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Return a picture.
#[tool(read_only)]
pub(crate) fn test_image_content() -> Part {
    Part::media("image/png", DOT)
}

/// Return a sound.
#[tool(read_only)]
pub(crate) fn test_audio_content() -> Part {
    Part::media("audio/wav", CLICK)
}

/// Return a text file.
#[tool(read_only)]
pub(crate) fn test_embedded_resource() -> Part {
    Part::media("text/plain", b"This is an embedded resource content.").named("embedded-resource")
}

/// Return text, a picture and a file.
#[tool(read_only)]
pub(crate) fn test_multiple_content_types() -> Answer {
    let data = json!({ "test": "data", "value": 123 }).to_string();
    Answer::text("Multiple content types test:")
        .and(Part::media("image/png", DOT))
        .and(Part::media("application/json", data).named("mixed-content-resource"))
}

/// Fail.
#[tool(read_only)]
pub(crate) fn test_error_handling() -> Result<(), Error> {
    Err(error!("This tool intentionally returns an error for testing"))
}

/// Report progress three times, from the start to the end.
#[tool(read_only)]
pub(crate) fn test_tool_with_progress() -> &'static str {
    progress::measure(0, 100);
    for done in [50, 100] {
        std::thread::sleep(PAUSE);
        progress::measure(done, 100);
    }
    "The tool has reported its progress."
}

/// Write to the log, which clients do not see.
#[tool(read_only)]
pub(crate) fn test_logging_tool() -> &'static str {
    for step in ["started", "processing data", "completed"] {
        log::info(format!("the tool has a message: {step}"));
    }
    "The tool has written to the log."
}

/// Return text, on a stream that a client may resume.
#[tool(read_only)]
pub(crate) fn test_reconnection() -> &'static str {
    "The stream has ended."
}
