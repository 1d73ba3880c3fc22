//! Completion of a unified diff as models write it: hunk headers without numbers or with wrong counts, and a missing last line
//! break. The lines of a hunk decide how long it is; its header only states where it begins.

use toolcrib_guest::{Error, error};

use crate::shown;

/// Place of a hunk by its header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    /// Number of its first old line, from 1, or of the line before an insertion.
    Line(usize),
    /// No number, and the text in its place: a line at or above the hunk.
    Unnumbered(Option<String>),
}

/// Diff with numbered headers that agree with their lines, and the places that its headers stated.
#[derive(Debug, PartialEq)]
pub(crate) struct Completed {
    pub(crate) text: String,
    pub(crate) places: Vec<Place>,
}

/// Header of a hunk: its place, and the number of old and new lines if it states them.
type Header = (Place, Option<(usize, usize)>);

/// Completes a diff. The headers of its text are numbered anew, in order.
pub(crate) fn complete(patch: &str) -> Result<Completed, Error> {
    let lines: Vec<&str> = patch.lines().collect();
    // `lines` removes the carriage return of a line break, which is a part of a line here.
    let whole: Vec<&str> = patch.split('\n').collect();
    let mut done = Completed { text: String::with_capacity(patch.len() + 256), places: Vec::new() };
    let (mut at, mut old_start, mut new_start) = (0, 1, 1);
    let mut section = Section::Between;
    while at < lines.len() {
        if !lines[at].starts_with("@@") {
            if lines[at].starts_with("+++ ") {
                (old_start, new_start) = (1, 1);
            }
            section = section.with(lines[at]).map_err(|why| wrong(at, why, lines[at]))?;
            // Without the carriage return of a patch that was written on Windows.
            push(&mut done.text, lines[at]);
            at += 1;
            continue;
        }
        let (place, counts) = header(lines[at]).map_err(|why| wrong(at, &why, lines[at]))?;
        let end = end_of_hunk(&lines, at + 1, counts)?;
        let body = &lines[at + 1..end];
        let (old, new) = count(body);
        if old + new == 0 {
            return Err(wrong(at, "the hunk has no lines", lines[at]));
        }
        // The number of an empty range is that of the line before it.
        let (from, to) = (old_start - usize::from(old == 0), new_start - usize::from(new == 0));
        push(&mut done.text, &format!("@@ -{from},{old} +{to},{new} @@"));
        for line in &whole[at + 1..end] {
            push(&mut done.text, if is_blank(line) { " " } else { line });
        }
        done.places.push(place);
        section = Section::Between;
        (old_start, new_start) = (old_start + old + 1, new_start + new + 1);
        at = end;
    }
    Ok(done)
}

/// Part of a diff outside of hunks. Lines that look like those of a hunk and have no header would be lost there.
#[derive(Clone, Copy)]
enum Section<'a> {
    /// Text between files, which means nothing.
    Between,
    /// Headers of a file, with its line `diff --git` if it has one.
    Headers(Option<&'a str>),
}

impl<'a> Section<'a> {
    /// Returns the part after a line.
    fn with(self, line: &'a str) -> Result<Self, &'static str> {
        const OF_GIT: [&str; 14] = [
            "index ",
            "old mode ",
            "new mode ",
            "new file mode ",
            "deleted file mode ",
            "rename from ",
            "rename to ",
            "copy from ",
            "copy to ",
            "similarity index ",
            "dissimilarity index ",
            "--- ",
            "+++ ",
            "GIT binary patch",
        ];
        let is_header = |line: &str| OF_GIT.iter().any(|header| line.starts_with(header));
        match self {
            _ if line.starts_with("diff --git ") => Ok(Section::Headers(Some(line))),
            Section::Headers(Some(git)) if line.starts_with("--- ") || line.starts_with("+++ ") => {
                let path = line[4..].split('\t').next().unwrap_or_default().trim().trim_matches('"');
                let name = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
                match path == "/dev/null" || git.contains(name) {
                    true => Ok(self),
                    false => Err("the file is another one than that of the line `diff --git` above"),
                }
            }
            Section::Headers(None) if line.starts_with("--- ") => Err("the file above has no hunk"),
            _ if line.starts_with("+++ ") => Ok(Section::Headers(None)),
            Section::Headers(_) if line.starts_with("GIT binary patch") => Ok(Section::Between),
            Section::Headers(_) if is_header(line) || is_blank(line) => Ok(self),
            Section::Headers(_) if begins_section(&[line], true) => Ok(Section::Between),
            Section::Headers(_) => Err("a hunk of the file begins with a line `@@`"),
            Section::Between => Ok(Section::Between),
        }
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Reads the header of a hunk.
fn header(line: &str) -> Result<Header, String> {
    let rest = line.trim_start_matches('@').trim();
    if !rest.starts_with('-') {
        let text = rest.trim_end_matches('@').trim();
        let text = Some(text).filter(|text| !text.is_empty() && text.chars().any(|c| c != '.' && c != '…'));
        return Ok((Place::Unnumbered(text.map(str::to_owned)), None));
    }
    let mut words = rest.split_whitespace();
    match (words.next().and_then(|word| range(word, '-')), words.next().and_then(|word| range(word, '+'))) {
        (Some((start, old)), Some((_, new))) => Ok((Place::Line(start), Some((old, new)))),
        _ => Err("a header of a hunk is `@@ -LINE,COUNT +LINE,COUNT @@`".to_owned()),
    }
}

/// Reads the first line and the number of lines in a part of a header.
fn range(word: &str, mark: char) -> Option<(usize, usize)> {
    let numbers = word.strip_prefix(mark)?;
    let (start, count) = numbers.split_once(',').unwrap_or((numbers, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

/// Returns the first line after a hunk with these counts in its header. Lines that are not a part of any hunk or header of a
/// file are refused, so that none is lost.
fn end_of_hunk(lines: &[&str], start: usize, counts: Option<(usize, usize)>) -> Result<usize, Error> {
    let (mut at, mut old, mut new) = (start, 0, 0);
    while let Some(line) = lines.get(at) {
        let is_full = counts.is_some_and(|counts| old >= counts.0 && new >= counts.1);
        if begins_section(&lines[at..], is_full) {
            break;
        }
        // Empty lines are kept ones if further lines of the hunk follow, or as far as the header counts them.
        let empty = lines[at..].iter().take_while(|line| is_blank(line)).count();
        if empty > 0 {
            let next = &lines[at + empty..];
            let continues = next.first().is_some_and(|line| is_of_hunk(line)) && !begins_section(next, is_full);
            let counted = counts.map_or(0, |counts| counts.0.saturating_sub(old).min(counts.1.saturating_sub(new)));
            let taken = if continues { empty } else { empty.min(counted) };
            (at, old, new) = (at + taken, old + taken, new + taken);
            if taken < empty {
                break;
            }
            continue;
        }
        if !is_of_hunk(line) {
            return Err(wrong(at, "a line of a hunk begins with a space, `-` or `+`", line));
        }
        old += usize::from(line.starts_with([' ', '-']));
        new += usize::from(line.starts_with([' ', '+']));
        at += 1;
    }
    Ok(at)
}

fn is_of_hunk(line: &str) -> bool {
    line.starts_with([' ', '-', '+', '\\'])
}

fn is_blank(line: &str) -> bool {
    line.is_empty() || line == "\r"
}

/// Returns `true` if the lines begin another hunk, another file, or text between files; `is_full` if the hunk above has all
/// lines that its header counts.
fn begins_section(lines: &[&str], is_full: bool) -> bool {
    const BETWEEN: [&str; 7] = ["@@", "diff ", "Index: ", "Only in ", "Binary files ", "From ", "===="];
    let line = |at: usize| lines.get(at).copied().unwrap_or_default();
    if BETWEEN.iter().any(|word| line(0).starts_with(word)) || line(0).starts_with("```") {
        return true;
    }
    // A removed line may look like the header of a file, and like the signature of a mail.
    let is_header = line(0).starts_with("--- ") && line(1).starts_with("+++ ");
    is_header && (is_full || line(2).starts_with("@@")) || is_full && line(0) == "-- "
}

/// Number of old and of new lines.
fn count(lines: &[&str]) -> (usize, usize) {
    let of = |marks: [char; 2]| lines.iter().filter(|line| is_blank(line) || line.starts_with(marks)).count();
    (of([' ', '-']), of([' ', '+']))
}

fn wrong(at: usize, why: &str, line: &str) -> Error {
    error!("line {} of the patch: {why}: `{}`", at + 1, shown(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "--- a/f\n+++ b/f\n";

    fn completed(hunks: &str) -> (String, Vec<Place>) {
        let done = complete(&format!("{FILE}{hunks}")).expect("a patch");
        (done.text[FILE.len()..].to_owned(), done.places)
    }

    fn refused(hunks: &str) -> String {
        complete(&format!("{FILE}{hunks}")).expect_err("no patch").to_string()
    }

    #[test]
    fn the_lines_of_a_hunk_count_and_not_its_header() {
        for header in ["-1,2 +1,2", "-1 +1", "-1,9 +1,9", "-1,0 +1,0"] {
            let (text, places) = completed(&format!("@@ {header} @@ fn x()\n a\n-b\n+B\n+C\n"));
            assert_eq!(text, "@@ -1,2 +1,3 @@\n a\n-b\n+B\n+C\n", "{header}");
            assert_eq!(places, [Place::Line(1)]);
        }
    }

    #[test]
    fn a_header_without_numbers_has_the_place_of_its_text_or_none() {
        let unnumbered = |text: Option<&str>| Place::Unnumbered(text.map(str::to_owned));
        for (header, place) in [
            ("@@", unnumbered(None)),
            ("@@ @@", unnumbered(None)),
            ("@@ ... @@", unnumbered(None)),
            ("@@ fn x() @@", unnumbered(Some("fn x()"))),
            ("@@ fn x()", unnumbered(Some("fn x()"))),
            ("@@ -7 +7,2 @@ fn x()", Place::Line(7)),
        ] {
            assert_eq!(completed(&format!("{header}\n-a\n+b\n")).1, [place], "{header}");
        }
        assert!(refused("@@ -x,1 +1 @@\n-a\n").contains("line 3 of the patch: a header of a hunk is"));
        assert!(refused("@@ -1,1 @@\n-a\n").contains("a header of a hunk is"));
    }

    #[test]
    fn the_last_line_has_a_break_and_an_empty_line_inside_is_kept() {
        assert_eq!(completed("@@ -1,3 +1,4 @@\n a\n\n b\n+c").0, "@@ -1,3 +1,4 @@\n a\n \n b\n+c\n");
        assert_eq!(completed("@@\n-a\n+b\n\n").0, "@@ -1,1 +1,1 @@\n-a\n+b\n\n", "after the hunk it is no line of it");
    }

    #[test]
    fn further_files_and_signatures_end_a_hunk_and_removed_dashes_do_not() {
        let (text, places) = completed("@@\n-a\n--- b\n+++ c\n@@ -1 +1 @@\n-a\n+b\n-- \n2.43.0\n");
        assert_eq!(places.len(), 2, "{text}");
        assert_eq!(completed("@@ -1,2 +1 @@\n--- b\n-c\n++ d\n").0, "@@ -1,2 +1,1 @@\n--- b\n-c\n++ d\n");
    }

    #[test]
    fn lines_of_a_hunk_without_a_header_and_names_of_other_files_are_refused() {
        for (patch, why) in [
            ("--- /dev/null\n+++ b/n\n+a\n", "line 3 of the patch: a hunk of the file begins with a line `@@`"),
            ("--- a/n\n+++ b/n\n-a\n+b\n", "begins with a line `@@`"),
            ("--- a/n\n+++ b/n\n--- a/m\n+++ b/m\n@@\n-a\n", "line 3 of the patch: the file above has no hunk"),
            ("diff --git a/n b/n\nnew file mode 100644\n+a\n", "begins with a line `@@`"),
            ("diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\na\n", "begins with a line `@@`"),
            ("diff --git a/x b/x\ndeleted file mode 100644\n--- a/z\n+++ b/z\n@@\n-a\n", "is another one"),
            ("diff --git a/x b/y\nrename from x\nrename to y\n--- a/z\n+++ b/z\n@@\n-a\n", "is another one"),
        ] {
            assert!(complete(patch).expect_err(patch).to_string().contains(why), "{patch}");
        }
        for patch in [
            "Some words\n\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
            "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\ndiff --git a/z b/z\nnew file mode 100644\nindex 0..0\n",
            "--- a/x\t2026-01-01\n+++ b/x\n@@\n-a\n--- a/y\n+++ b/y\n@@\n-a\n",
        ] {
            complete(patch).expect(patch);
        }
    }

    #[test]
    fn a_line_that_belongs_to_nothing_is_refused() {
        assert!(refused("@@ -1 +1 @@\n-a\n+b\nplease\n").contains("line 6 of the patch: a line of a hunk begins"));
        assert!(refused("@@\n").contains("the hunk has no lines"));
        assert!(refused("@@ -1 +1 @@\n@@ -4 +4 @@\n-a\n").contains("line 3 of the patch: the hunk has no lines"));
    }
}
