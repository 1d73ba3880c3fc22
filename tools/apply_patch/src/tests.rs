//! Calls of the tool's function, each in its own folder.

use toolcrib_guest::{FailureKind, json, testing};

use super::*;
use crate::envelope::{Change, Hunk, Line, hunks};

fn hunk<'a>(after: Option<&'a str>, lines: &[Line<'a>]) -> Hunk<'a> {
    Hunk { after: after.into_iter().collect(), lines: lines.to_vec(), at_end: false }
}

#[test]
fn a_patch_is_read_section_by_section() {
    let text = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ fn x()\n a\n-b\n+c\n*** Add File: n\n+1\n+\n*** Delete File: d\n*** End Patch";
    let changes = envelope::parse(text).expect("a patch");
    let lines = [Line::Kept("a"), Line::Removed("b"), Line::Added("c")];
    assert_eq!(changes[0], Change::Update { path: "a", to: Some("b"), hunks: vec![hunk(Some("fn x()"), &lines)] });
    assert_eq!(changes[1], Change::Add { path: "n", lines: vec!["1", ""] });
    assert_eq!(changes[2], Change::Delete { path: "d" });
}

#[test]
fn what_is_no_patch_says_where_and_why() {
    for (text, expected) in [
        ("", "a patch begins with `*** Begin Patch`"),
        ("*** Begin Patch\n*** Add File: a\n+1", "a patch ends with `*** End Patch`"),
        ("*** Begin Patch\n*** End Patch", "the patch names no file"),
        ("*** Begin Patch\n+1\n*** End Patch", "line 2 of the patch: a line that belongs to no file"),
        (
            "*** Begin Patch\n*** Add File: a\n1\n*** End Patch",
            "line 3 of the patch: each line of a new file begins with `+`",
        ),
        ("*** Begin Patch\n*** Rename File: a\n*** End Patch", "line 2 of the patch: a section is"),
        ("*** Begin Patch\n*** Update File: a\n x\n*** End Patch", "`a`: the update changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch", "`a`: a hunk has no lines"),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", "line 3 of the patch: a deleted file has no lines"),
    ] {
        let error = envelope::parse(text).expect_err(text);
        assert_eq!(error.kind(), FailureKind::Invalid);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn hunks_apply_in_their_order_at_the_first_place_that_fits() {
    let text = "a\nb\nc\na\nb\nd\n";
    let lines = [Line::Kept("a"), Line::Removed("b"), Line::Added("B")];
    let edited = hunks::apply("f", text, &[hunk(None, &lines)]);
    assert_eq!(edited.as_deref().ok(), Some("a\nB\nc\na\nb\nd\n"));
    let edited = hunks::apply("f", text, &[hunk(Some("c"), &lines)]);
    assert_eq!(edited.as_deref().ok(), Some("a\nb\nc\na\nB\nd\n"));
    let edited = hunks::apply("f", text, &[hunk(None, &lines), hunk(None, &lines)]);
    assert_eq!(edited.as_deref().ok(), Some("a\nB\nc\na\nB\nd\n"));
    let ends = Hunk { at_end: true, ..hunk(None, &[Line::Removed("b"), Line::Added("B")]) };
    assert_eq!(hunks::apply("f", "b\nb\n", std::slice::from_ref(&ends)).ok().as_deref(), Some("b\nB\n"));
    assert!(hunks::apply("f", "b\nc\n", &[ends]).is_err());
    let added = [Line::Added("x")];
    assert_eq!(hunks::apply("f", text, &[hunk(None, &added)]).ok().as_deref(), Some("a\nb\nc\na\nb\nd\nx\n"));
    assert_eq!(hunks::apply("f", "", &[hunk(None, &added)]).ok().as_deref(), Some("x\n"));
    let windows = hunks::apply("f", "a\r\nb\r\n", &[hunk(None, &lines)]);
    assert_eq!(windows.ok().as_deref(), Some("a\r\nB\r\n"));
    let open = hunks::apply("f", "a\nb", &[hunk(None, &lines)]);
    assert_eq!(open.ok().as_deref(), Some("a\nB"), "no line break where there was none");
}

#[test]
fn lines_keep_their_ends_and_the_mark_of_the_file_stays() {
    let lines = [Line::Kept("a"), Line::Removed("b"), Line::Added("B"), Line::Added("C")];
    for (text, expected) in [
        ("x\na\r\nb\nc\n", "x\na\r\nB\nC\nc\n"),
        ("a\nb\r\nc\r\n", "a\nB\r\nC\r\nc\r\n"),
        ("\u{feff}a\nb\n", "\u{feff}a\nB\nC\n"),
        ("a\r\nb", "a\r\nB\r\nC"),
    ] {
        assert_eq!(hunks::apply("f", text, &[hunk(None, &lines)]).ok().as_deref(), Some(expected), "{text:?}");
    }
    let adds = [Line::Kept("b"), Line::Added("c")];
    assert_eq!(hunks::apply("f", "a\nb", &[hunk(None, &adds)]).ok().as_deref(), Some("a\nb\nc"));
    assert_eq!(hunks::apply("f", "a\nb", &[hunk(None, &adds[1..])]).ok().as_deref(), Some("a\nb\nc"));
}

#[test]
fn empty_lines_between_sections_mean_nothing_and_inside_a_hunk_they_are_lines() {
    let text = "*** Begin Patch\n\n*** Update File: a\n@@ x\n a\n\n-b\n\n@@ y\n-c\n\n*** Add File: n\n+1\n\n+2\n\n*** Delete File: d\n\n*** End Patch";
    let changes = envelope::parse(text).expect("a patch");
    let lines = [Line::Kept("a"), Line::Kept(""), Line::Removed("b")];
    let hunks = vec![hunk(Some("x"), &lines), hunk(Some("y"), &[Line::Removed("c")])];
    assert_eq!(changes[0], Change::Update { path: "a", to: None, hunks });
    assert_eq!(changes[1], Change::Add { path: "n", lines: vec!["1", "", "2"] });
    let ends =
        envelope::parse("*** Begin Patch\n*** Update File: a\n-b\n\n*** End of File\n*** End Patch").expect("a patch");
    let hunks = vec![Hunk { at_end: true, ..hunk(None, &[Line::Removed("b"), Line::Kept("")]) }];
    assert_eq!(ends[0], Change::Update { path: "a", to: None, hunks });
}

#[test]
fn headers_after_one_another_lead_further_in_and_numbers_name_no_line() {
    let text = "*** Begin Patch\n*** Update File: a\n@@ class Sub(Base):\n@@     def run(self):\n-        pass\n+        return 7\n*** End Patch";
    let file = "class Base:\n    def run(self):\n        pass\nclass Sub(Base):\n    def go(self):\n        pass\n    def run(self):\n        pass\n";
    let changes = envelope::parse(text).expect("a patch");
    let Change::Update { hunks, .. } = &changes[0] else { panic!("{changes:?}") };
    let edited = hunks::apply("a", file, hunks).expect("it fits");
    assert!(
        edited.ends_with("    def run(self):\n        return 7\n") && edited.matches("pass").count() == 2,
        "{edited}"
    );
    for (header, after) in
        [("@@ -1,3 +1,4 @@", vec![]), ("@@ -x", vec!["-x"]), ("@@ def f(): @@", vec!["def f():"]), ("@@", vec![])]
    {
        let text = format!("*** Begin Patch\n*** Update File: a\n{header}\n-b\n*** End Patch");
        let changes = envelope::parse(&text).expect("a patch");
        let Change::Update { hunks, .. } = &changes[0] else { panic!("{changes:?}") };
        assert_eq!(hunks[0].after, after, "{header}");
    }
}

#[test]
fn what_does_not_fit_says_what_stands_there() {
    let lines = [Line::Kept("a"), Line::Removed("x")];
    for (text, after, expected) in [
        ("a\nb\n", None, "`f`, hunk 1: line 2 is `b`, not `x`"),
        ("c\n", None, "`f`, hunk 1: the file has no line `a`"),
        ("a\n", None, "`f`, hunk 1: the file ends before `x`"),
        ("a\nx\n", Some("gone"), "`f`, hunk 1: the file has no line `gone`"),
        ("c\n", Some("c"), "`f`, hunk 1: the file has no line `a` after line 1"),
    ] {
        let error = hunks::apply("f", text, &[hunk(after, &lines)]).expect_err(text);
        assert_eq!((error.kind(), error.to_string().as_str()), (FailureKind::Conflict, expected));
    }
}

#[test]
fn what_a_patch_would_do_is_told_from_the_patch_alone() {
    let text = "*** Begin Patch\n*** Update File: notes.md\n a\n-b\n+c\n+d\n*** Add File: new.md\n+1\n*** End Patch";
    let call = testing::invocation::<apply_patch>(&json!({ "patch": text }));
    assert_eq!(preview(&call).expect("a preview"), "edit notes.md (+2 -1)\nadd new.md (+1)");
    let diff = "diff --git a/new.md b/new.md\nnew file mode 100644\n--- /dev/null\n+++ b/new.md\n@@\n+1\n\
                diff --git a/x b/y\nrename from x\nrename to y\n\
                diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@\n-1\n";
    let call = testing::invocation::<apply_patch>(&json!({ "patch": diff }));
    assert_eq!(preview(&call).expect("a preview"), "add new.md (+1)\nedit x to y (+0 -0)\ndelete gone");
}

#[test]
fn a_text_that_is_no_patch_is_refused_with_the_reason() {
    const PATCH: &str = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    for (text, opinion) in [("please change a", Opinion::NoOpinion), (PATCH, Opinion::Claims)] {
        assert_eq!(route(&testing::invocation::<apply_patch>(&text.into())), opinion, "{text}");
    }
    for (arguments, why) in [
        (json!({ "patch": "please change a" }), "the patch names no file; it begins with `*** Begin Patch`, or is a"),
        (json!({ "patch": "*** a\n--- b\n" }), "a patch begins with `*** Begin Patch`"),
        (json!({ "patch": PATCH, "strip": 1 }), "`strip` is for unified diffs"),
        (json!({ "patch": PATCH, "fuzz": 0 }), "`fuzz` is for unified diffs"),
        (json!({ "patch": " ".repeat(MAX_BYTES + 1) }), "the patch has 1048577 bytes, over the limit of 1048576"),
        (json!({ "patch": "", "strip": 9 }), "strip `9` is not between 0 and 8"),
        (json!({ "patch": "", "fuzz": 1001 }), "fuzz `1001` is not between 0 and 1000"),
    ] {
        let refused = validate(&testing::invocation::<apply_patch>(&arguments)).expect_err("no patch").to_string();
        assert!(refused.starts_with(why), "{refused}");
    }
    assert!(validate(&testing::invocation::<apply_patch>(&json!({ "patch": PATCH, "dry_run": true }))).is_ok());
    // A default that a model repeats changes nothing.
    assert!(validate(&testing::invocation::<apply_patch>(&json!({ "patch": PATCH, "fuzz": DEFAULT_FUZZ }))).is_ok());
}
