//! Tools without a host.

use toolcrib_guest::{Part, json, testing};

use crate::content;

#[test]
fn a_call_returns_every_kind_of_content() {
    let answer = testing::call::<content::test_multiple_content_types>(json!({})).expect("an answer");
    assert!(matches!(&answer.content[..], [Part::Text(_), Part::Media(_), Part::Media(_)]), "{answer:?}");
    testing::call::<content::test_error_handling>(json!({})).expect_err("failed");
}

#[test]
fn progress_grows_from_zero() {
    let (answer, seen) = testing::record(|| testing::call::<content::test_tool_with_progress>(json!({})));
    answer.expect("an answer");
    let steps = [0, 50, 100].map(|done| (done, Some(100)));
    assert_eq!(seen.measures, steps);
}
