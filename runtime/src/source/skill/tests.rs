//! Tests of skills as sources: kept and refused front matter, limits of files, and names.

use std::fs;
use std::path::Path;

use crate::error::Severity;
use crate::source::{LoadedSource, load, load_usable, projects, root, usable_parts};
use crate::tool::{Body, FileRequest, Tool};

const TEXT: &str = "---\nname: pdf\ndescription: Reads PDF files.\nlicense: MIT\nextra: {a: [1]}\n---\n# Steps\n";

fn write(folder: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn skill(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(&dir.path().join("pdf"), path, text);
    }
    dir
}

fn loaded(text: &str) -> LoadedSource {
    let dir = skill(&[("SKILL.md", text.as_bytes())]);
    load_usable(&dir.path().join("pdf")).unwrap()
}

fn fault(text: &str) -> String {
    let loaded = loaded(text);
    let [Tool { name, unusable: Some(unusable), .. }] = &loaded.tools[..] else { panic!("{:?}", loaded.tools) };
    assert_eq!(name, "pdf");
    unusable.reason.clone()
}

fn warnings(loaded: &LoadedSource) -> String {
    loaded.warnings.iter().map(|warning| warning.message.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_skill_is_two_tools_and_keeps_its_front_matter() {
    let dir = skill(&[("SKILL.md", TEXT.as_bytes()), ("scripts/a.py", b"1"), ("b.sh", b"2"), (".git/x", b"3")]);
    let folder = dir.path().join("pdf");
    let loaded = load(&folder).unwrap();
    assert_eq!(warnings(&loaded), "");
    let [reader, runner] = &loaded.tools[..] else { panic!("{:?}", loaded.tools) };
    assert_eq!((reader.name.as_str(), runner.name.as_str()), ("pdf", "pdf_run"));
    assert_eq!(reader.description.as_deref(), Some("Reads PDF files."));
    assert!(reader.interface.safety.is_read_only.value && !runner.interface.safety.is_read_only.value);
    assert!(reader.requested.declared && !runner.requested.declared && runner.disabled.is_none());
    let Body::Skill(skill) = &reader.body else { panic!("{:?}", reader.body) };
    assert_eq!(skill.front_matter["extra"]["a"][0], 1);
    let paths: Vec<_> = skill.files.iter().map(|file| (file.path.as_str(), file.bytes)).collect();
    assert_eq!(paths, [("SKILL.md", TEXT.len() as u64), ("b.sh", 1), ("scripts/a.py", 1)]);
    assert_eq!(root(&folder), folder.join("SKILL.md"));
    assert_eq!(projects(&folder), std::slice::from_ref(&folder));
    assert_eq!(usable_parts(&folder).unwrap().definitions.len(), 3, "a bundle holds every file");
}

#[test]
fn a_change_of_any_file_changes_the_digest_and_a_changed_file_is_not_served() {
    let dir = skill(&[("SKILL.md", TEXT.as_bytes()), ("a.txt", b"one")]);
    let folder = dir.path().join("pdf");
    let loaded = load(&folder).unwrap();
    let skill = loaded.tools[0].body.skill().unwrap().clone();
    let file = skill.file("a.txt").unwrap();
    assert_eq!(super::read_file(&skill, file).unwrap(), b"one");
    for changed in ["two", "longer"] {
        write(&folder, "a.txt", changed);
        assert!(matches!(super::read_file(&skill, file), Err(super::ReadError::Changed)), "{changed}");
    }
    let changed = load(&folder).unwrap();
    assert_ne!(changed.tools[0].body.skill().unwrap().digest, skill.digest);
    fs::remove_file(folder.join("a.txt")).unwrap();
    assert!(super::read_file(&skill, file).unwrap_err().message(file).ends_with("is gone"));
}

#[test]
fn a_folder_of_skills_is_one_source_and_one_faulty_skill_affects_no_other() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "one/SKILL.md", "---\nname: one\ndescription: First.\n---\n");
    write(dir.path(), "same/SKILL.md", "---\nname: one\ndescription: Second.\n---\n");
    write(dir.path(), "bad/SKILL.md", "no front matter");
    write(dir.path(), "other/README.md", "no skill");
    let loaded = load_usable(dir.path()).unwrap();
    let names: Vec<_> = loaded.tools.iter().map(|tool| (tool.name.as_str(), tool.unusable.is_some())).collect();
    assert_eq!(names, [("bad", true), ("one", false)]);
    assert!(warnings(&loaded).contains("has a tool \"one\" already"), "{}", warnings(&loaded));
    assert_eq!(projects(dir.path()).len(), 3);
    // The manifest of tools comes first.
    write(dir.path(), "one/tools.json", "{\"tools\": []}");
    assert!(load(&dir.path().join("one")).unwrap().tools.is_empty());
}

#[test]
fn what_public_skills_break_is_a_warning() {
    for (text, name, warning) in [
        ("---\nname: other\ndescription: x\n---\n", "other", "should be the name of the folder"),
        ("---\nname: My Skill\ndescription: x\n---\n", "My-Skill", "its tool is named `My-Skill`"),
        ("---\ndescription: x\n---\n", "pdf", "`name` is missing"),
        ("---\nname: pdf\ndescription: Use this: it works # now\n---\n", "pdf", "must be in quotes"),
        ("\u{feff}---\r\nname: pdf\r\ndescription: x\r\n---\r\n", "pdf", ""),
    ] {
        let loaded = loaded(text);
        assert_eq!(loaded.tools[0].name, name, "{text:?}");
        assert!(loaded.tools[0].unusable.is_none() && warnings(&loaded).contains(warning), "{}", warnings(&loaded));
    }
    let long = loaded(&format!("---\nname: pdf\ndescription: {}\n---\n", "x".repeat(1025)));
    assert!(warnings(&long).contains("has 1025 characters"));
    let text = loaded("---\nname: pdf\ndescription: Use this: it works\n---\n").tools.remove(0).description;
    assert_eq!(text.as_deref(), Some("Use this: it works"));
}

#[test]
fn a_hostile_front_matter_makes_the_skill_unusable() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n";
    for (text, why) in [
        ("", "must start with --- frontmatter delimiter".to_owned()),
        ("---\nname: pdf\n---\n", "`description` is required".to_owned()),
        ("---\nname: [a]\ndescription: x\n---\n", "name must be a string, found an array".to_owned()),
        ("---\nname: \"a\\u202eb\"\ndescription: x\n---\n", "has the invisible character U+202E".to_owned()),
        ("---\nname: \"a\\nb\"\ndescription: x\n---\n", "has the invisible character U+000A".to_owned()),
        ("---\n- a\n---\n", "the front matter must be a map, found an array".to_owned()),
        (&format!("---\n{bomb}---\n"), "parse SKILL.md".to_owned()),
        (&format!("---\nname: {}\ndescription: x\n---\n", "a".repeat(65)), "name has 65 characters".to_owned()),
        (&format!("---\nname: pdf\ndescription: {}\n---\n", "x".repeat(8193)), "8193 characters".to_owned()),
        (&format!("---\nname: pdf\ndescription: x\n---\n{}", "x".repeat(1 << 20)), "1048576 bytes allowed".to_owned()),
        ("---\nname: pdf\ndescription: x\nmetadata: {toolcrib: {files: all}}\n---\n", "metadata.toolcrib: ".to_owned()),
        ("---\nname: pdf\ndescription: x\nmetadata: {toolcrib: \"{\"}\n---\n", "is a text, and no JSON".to_owned()),
    ] {
        let found = fault(text);
        assert!(found.contains(&why), "{found}");
    }
}

#[test]
fn a_skill_requests_in_its_metadata_and_nothing_by_allowed_tools() {
    for metadata in ["{toolcrib: {files: write, env: [TZ]}}", "{toolcrib: '{\"files\": \"write\", \"env\": [\"TZ\"]}'}"]
    {
        let dir = skill(&[
            (
                "SKILL.md",
                format!("---\nname: pdf\ndescription: x\nallowed-tools: Bash(rm:*)\nmetadata: {metadata}\n---\n")
                    .as_bytes(),
            ),
            ("a.py", b""),
        ]);
        let loaded = load(&dir.path().join("pdf")).unwrap();
        let requested = &loaded.tools[1].requested;
        assert!(
            requested.declared && requested.exec.is_empty() && matches!(requested.files, FileRequest::Workspace(_))
        );
        assert_eq!(requested.env, ["TZ"]);
        assert_eq!(loaded.tools[0].requested.files, FileRequest::None, "the instructions are read without a grant");
    }
}

#[test]
fn a_skill_whose_scripts_are_all_native_says_so() {
    let dir = skill(&[("SKILL.md", TEXT.as_bytes()), ("run.sh", b"")]);
    let runner = load(&dir.path().join("pdf")).unwrap().tools.remove(1);
    assert!(runner.disabled.unwrap().reason.ends_with("`run.sh` is a shell script"));
}

#[test]
fn more_files_or_bytes_than_a_skill_may_have_are_refused() {
    let dir = skill(&[("SKILL.md", TEXT.as_bytes())]);
    let folder = dir.path().join("pdf");
    let reason = || load_usable(&folder).unwrap().tools[0].unusable.as_ref().map(|unusable| unusable.reason.clone());
    for number in 0..511 {
        write(&folder, &format!("f/{number}"), "");
    }
    assert_eq!(reason(), None);
    write(&folder, "f/511", "");
    assert!(reason().unwrap().contains("more than the 512 files allowed"));
    for number in 512..4200 {
        write(&folder, &format!("f/{number}"), "");
    }
    assert!(reason().unwrap().contains("4096 entries allowed"));
    fs::remove_dir_all(folder.join("f")).unwrap();
    fs::File::create(folder.join("large")).unwrap().set_len((16 << 20) + 1).unwrap();
    assert!(reason().unwrap().contains("16777216 bytes allowed together"));
}

#[cfg(unix)]
#[test]
fn links_hidden_characters_and_strange_files_are_left_out_and_named() {
    use std::os::unix::fs::symlink;

    let dir = skill(&[("SKILL.md", TEXT.as_bytes()), ("a\u{202e}b.py", b""), ("c\nd", b""), ("e\\f", b"")]);
    let folder = dir.path().join("pdf");
    write(dir.path(), "secret", "s");
    symlink("../secret", folder.join("link")).unwrap();
    symlink("..", folder.join("up")).unwrap();
    let loaded = load(&folder).unwrap();
    assert_eq!(loaded.tools.len(), 1);
    assert_eq!(loaded.tools[0].body.skill().unwrap().files.len(), 1);
    let [warning] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
    assert_eq!(warning.severity, Severity::Warning);
    for name in ["link", "up", "a\\u{202e}b.py", "c\\nd", "e\\\\f"] {
        assert!(warning.message.contains(name), "{name}: {}", warning.message);
    }
    symlink(&folder, dir.path().join("linked")).unwrap();
    let loaded = load(dir.path()).unwrap();
    assert_eq!(loaded.tools.len(), 1);
    assert!(warnings(&loaded).contains("its folder is a link"), "{}", warnings(&loaded));
}
