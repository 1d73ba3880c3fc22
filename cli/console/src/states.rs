//! Run states and call outcomes in everyday words, each with a tone. Files and addresses keep the names of the program.

use maud::{Markup, html};
use toolcrib::Outcome;

use super::layout::line;

/// State of a run that waits for a decision, in an address.
pub(super) const WAITING: &str = "waiting";
/// States of a run, as an address names them.
pub(super) const OF_RUNS: [&str; 9] =
    ["running", WAITING, "answer", "ended", "max_steps", "budget", "interrupted", "failed", "killed"];

/// Returns a state or an outcome in everyday words; a name of another version stays as it is.
pub(super) fn in_words(name: &str) -> &str {
    match name {
        WAITING => "waits for you",
        "answer" => "answered",
        "ended" => "ended without an answer",
        "max_steps" => "step limit reached",
        "budget" => "budget used up",
        "killed" => "stopped unexpectedly",
        "bad-arguments" => "wrong arguments",
        "schema-not-loaded" => "schema not loaded",
        "bad-result" => "wrong result",
        "deadline" => "took too long",
        "fuel" => "computed too long",
        "memory" => "out of memory",
        "stack" => "stack overflow",
        "handles" => "too many handles",
        "quota" => "wrote too much",
        "output-limit" => "too much output",
        "request-limit" => "too many requests",
        "upstream" => "server failed",
        "trap" => "crashed",
        "bad-component" => "bad program",
        "unlogged" => "could not be logged",
        other => other,
    }
}

/// Word with a tone, such as a state.
pub(super) fn word(name: &str) -> Markup {
    html! { span class={ "word " (tone(name)) } { (line(in_words(name), 40)) } }
}

/// Returns the tone of a word.
fn tone(name: &str) -> &'static str {
    match name {
        "ok" | "answer" | "allowed" | "granted" | "ended" => "good",
        "running" => "live",
        "killed" | "failed" | "error" | "denied" | "changed" => "bad",
        WAITING | "interrupted" | "budget" | "max_steps" | "warning" | "cancelled" => "doubt",
        // All other outcomes are failures.
        other if Outcome::ALL.iter().any(|outcome| outcome.as_str() == other) => "bad",
        _ => "plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_the_tone_of_a_failure_except_ok_and_cancelled() {
        for outcome in Outcome::ALL {
            let tone = match outcome {
                Outcome::Ok => "word good",
                Outcome::Cancelled => "word doubt",
                _ => "word bad",
            };
            let shown = word(outcome.as_str()).into_string();
            assert!(shown.contains(tone), "{shown}");
        }
    }

    #[test]
    fn no_word_of_a_state_has_the_form_of_a_name() {
        for name in OF_RUNS.into_iter().chain(Outcome::ALL.map(Outcome::as_str)) {
            assert!(!in_words(name).contains(['_', '-']), "{name}");
        }
        let hostile = word("<script>").into_string();
        assert!(hostile.contains("&lt;script&gt;") && hostile.contains("word plain"), "{hostile}");
    }
}
