//! Plain words, kept by reading the sources: how doc comments open, how many genitives their first sentences have, how
//! limits are named, and that no public type of a crate has the name of another.

use std::collections::BTreeMap;
use std::fs;

use super::{code, root, rust_files};

/// Crates with the folder of their sources.
const CRATES: [(&str, &str); 22] = [
    ("toolcrib", "runtime/src"),
    ("toolcrib-agent-tool", "runtime/agent-tool/src"),
    ("toolcrib-windows-files", "runtime/windows-files/src"),
    ("toolcrib-staging", "runtime/staging/src"),
    ("toolcrib-component", "runtime/component/src"),
    ("toolcrib-bundle", "runtime/bundle/src"),
    ("toolcrib-registry", "runtime/registry/src"),
    ("toolcrib-signature", "runtime/signature/src"),
    ("toolcrib-base", "cli/base/src"),
    ("toolcrib-settings", "cli/settings/src"),
    ("toolcrib-packages", "cli/packages/src"),
    ("toolcrib-sources", "cli/sources/src"),
    ("toolcrib-authoring", "cli/authoring/src"),
    ("toolcrib-agent", "cli/agent/src"),
    ("toolcrib-forward", "cli/forward/src"),
    ("toolcrib-shared-state", "cli/shared-state/src"),
    ("toolcrib-workers", "cli/workers/src"),
    ("toolcrib-mcp", "cli/mcp/src"),
    ("toolcrib-console", "cli/console/src"),
    ("toolcrib-cli", "cli/src"),
    ("toolcrib-guest", "guest-sdk/src"),
    ("toolcrib-guest-macro", "guest-sdk/macro/src"),
];
/// Words that open a clause without a subject. A doc comment names its subject instead.
const OPENERS: [&str; 9] = ["What", "Whether", "Where", "Who", "How", "Why", "Which", "Whose", "When"];
/// Maximum percentage of doc comments of a crate that open so.
const MAX_OPENERS: usize = 3;

/// Maximum percentage of first sentences of all crates with two genitives or more, such as "the size of the file of a run".
const MAX_GENITIVES: usize = 3;

/// Words before a relative clause that opens with a preposition, and pronouns for a repeated noun.
const FRONTED: [&str; 5] = ["of which", "by which", "from which", "to which", "with which"];
const REPEATED: [&str; 2] = ["that of", "those of"];
/// Maximum number of either in 10,000 words of comments, or of the book.
const MAX_FRONTED: usize = 4;

/// First words of the doc comments of a text, one of each block.
fn first_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
        if let Some(comment) = comment.filter(|_| !inside) {
            words.extend(comment.split_whitespace().next());
        }
        inside = comment.is_some();
    }
    words
}

/// First sentences of the doc comments of a text, one of each block.
fn first_sentences(text: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let (mut inside, mut ended) = (false, false);
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
        if let Some(comment) = comment.map(str::trim) {
            if !inside {
                (ended, inside) = (false, true);
                blocks.push(String::new());
            }
            let block = blocks.last_mut().expect("a block has begun");
            ended |= comment.is_empty() && !block.is_empty();
            if !ended {
                *block += &format!("{comment} ");
            }
        } else {
            inside = false;
        }
    }
    let is_end = |word: &&str| word.ends_with(['.', ':', '!', '?']);
    let sentence = |block: String| {
        let words: Vec<&str> = block.split_whitespace().collect();
        let opens = |word: &&str| word.starts_with(|c: char| c.is_ascii_uppercase() || c == '`' || c == '[');
        let end = words.windows(2).position(|pair| is_end(&pair[0]) && opens(&pair[1]));
        words[..end.map_or(words.len(), |end| end + 1)].join(" ")
    };
    blocks.into_iter().map(sentence).filter(|sentence| !sentence.is_empty()).collect()
}

/// Names of the types that a text declares public, tests excepted.
fn public_types(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let name = |line: &str| {
        let item = line.trim_start().strip_prefix("pub ")?;
        let (kind, rest) = item.split_once(' ')?;
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        (["struct", "enum", "trait", "type"].contains(&kind) && !name.is_empty()).then_some(name)
    };
    code(text).filter_map(name).collect()
}

#[test]
fn doc_comments_name_their_subject() {
    for (name, folder) in CRATES {
        let files = rust_files(&root().join(folder));
        let words: Vec<&str> = files.iter().flat_map(|(_, text)| first_words(text)).collect();
        let found = words.iter().filter(|word| OPENERS.contains(word)).count();
        let lines: usize = files.iter().map(|(_, text)| text.lines().count()).sum();
        println!("{name}: {found} of {} doc comments open with a relative clause, {lines} lines", words.len());
        assert!(words.len() > 30, "the test still finds doc comments of {name}");
        assert!(found * 100 <= words.len() * MAX_OPENERS, "{name}: {found} of {}", words.len());
    }
}

#[test]
fn first_sentences_have_compounds_instead_of_genitive_chains() {
    let (mut all, mut chains) = (0, 0);
    for (name, folder) in CRATES {
        let files = rust_files(&root().join(folder));
        let sentences: Vec<String> = files.iter().flat_map(|(_, text)| first_sentences(text)).collect();
        let genitives = |sentence: &String| sentence.split_whitespace().filter(|word| *word == "of").count();
        let found = sentences.iter().filter(|sentence| genitives(sentence) >= 2).count();
        println!("{name}: {found} of {} first sentences have two genitives", sentences.len());
        assert!(sentences.len() > 30, "the test still finds sentences of {name}");
        (all, chains) = (all + sentences.len(), chains + found);
    }
    println!("{chains} of {all}");
    assert!(chains * 100 <= all * MAX_GENITIVES, "{chains} of {all} first sentences");
}

#[test]
fn limits_are_named_max_and_min() {
    let mut limits = 0;
    for folder in ["runtime", "cli", "guest-sdk", "tools", "tests", "benches"] {
        for (path, text) in rust_files(&root().join(folder)) {
            for name in code(&text).flat_map(|line| line.split("const ").skip(1)) {
                let name: String = name.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
                limits += usize::from(name.starts_with("MAX_") || name.starts_with("MIN_"));
                for word in ["MOST", "LONGEST", "DEEPEST", "LARGEST", "WIDEST", "SHORTEST"] {
                    assert!(!name.split('_').any(|part| part == word), "{}: {name}", path.display());
                }
            }
        }
    }
    println!("{limits} limits");
    assert!(limits > 100, "the test still finds limits: {limits}");
}

#[test]
fn no_public_type_has_the_name_of_another() {
    for (name, folder) in CRATES {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (path, text) in rust_files(&root().join(folder)) {
            // The same interface, for systems that lack what it is for.
            if path.to_string_lossy().ends_with("staging/src/unsupported.rs") {
                continue;
            }
            for found in public_types(&text) {
                places.entry(found).or_default().push(path.display().to_string());
            }
        }
        let twins: Vec<_> = places.iter().filter(|(_, places)| places.len() > 1).collect();
        println!("{name}: {} public types", places.len());
        assert!(twins.is_empty(), "{name}: {twins:?}");
    }
}

/// Words of all comments of Rust files, and of the pages of the book outside of their code blocks.
fn prose() -> Vec<(&'static str, String)> {
    let folders = ["runtime", "cli", "guest-sdk", "tools", "tests", "benches"];
    let files = folders.iter().flat_map(|folder| rust_files(&root().join(folder)));
    let comments: Vec<String> = files
        .flat_map(|(_, text)| text.lines().map(str::trim_start).map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.starts_with("//"))
        .collect();
    let mut pages = String::new();
    for entry in fs::read_dir(root().join("cli/docs/src")).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(entry).unwrap();
            text.split("\n```").step_by(2).for_each(|part| pages += &format!("{part}\n"));
        }
    }
    vec![("comments", comments.join("\n")), ("book", pages)]
}

#[test]
fn sentences_begin_with_their_subject_and_repeat_their_nouns() {
    for (place, text) in prose() {
        let words: Vec<&str> = text.split_whitespace().filter(|word| !word.starts_with("//")).collect();
        let found = |pairs: &[&str]| {
            let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            words.windows(2).filter(|pair| pairs.contains(&&*format!("{} {}", plain(pair[0]), plain(pair[1])))).count()
        };
        assert!(words.len() > 30_000, "the test still finds words in {place}: {}", words.len());
        for pairs in [&FRONTED[..], &REPEATED] {
            let found = found(pairs);
            println!("{place}: {found} of {pairs:?} in {} words", words.len());
            assert!(found * 10_000 <= words.len() * MAX_FRONTED, "{place}: {found} of {pairs:?}");
        }
    }
}
