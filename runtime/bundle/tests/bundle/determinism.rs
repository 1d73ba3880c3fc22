//! A bundle depends on its content alone.

use std::fs::File;
use std::path::Path;

use crate::support::{sample, sample_files, sample_metadata};
use proptest::prelude::*;
use toolcrib_bundle::{BundleBuilder, BundledTool, Digest, MediaType};

/// Digest of the sample bundle. It changes only with the format, which then needs a new version.
const SAMPLE: &str = "sha256:f5aa2a16df08cc8b34e452afb6d356e00b1a03e694a891af9643f6446547c488";

type Files = Vec<(&'static str, MediaType, Vec<u8>)>;

/// Writes a bundle from files and tools in this order.
fn write(files: &Files, tools: &[&str]) -> Vec<u8> {
    let mut builder = BundleBuilder::new(sample_metadata()).unwrap();
    for name in tools {
        builder.add_tool(BundledTool::new(*name, "tools.json".parse().unwrap()));
    }
    for (path, media_type, bytes) in files {
        builder.add_bytes(path, media_type.clone(), bytes).unwrap();
    }
    let mut bytes = Vec::new();
    builder.write_to(&mut bytes).unwrap();
    bytes
}

/// Writes the sample files to a folder, and a bundle of these files.
fn write_from(folder: &Path) -> Vec<u8> {
    for (path, _, bytes) in sample_files() {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let mut builder = BundleBuilder::new(sample_metadata()).unwrap();
    builder.add_tool(BundledTool::new("read", "tools.json".parse().unwrap()));
    for (path, media_type, bytes) in sample_files() {
        let file = File::open(folder.join(path)).unwrap();
        builder.add_source(path, media_type, bytes.len() as u64, file).unwrap();
    }
    let output = folder.join("output.tar");
    builder.write_to(File::create(&output).unwrap()).unwrap();
    std::fs::read(output).unwrap()
}

#[test]
fn the_format_has_not_changed() {
    assert_eq!(Digest::of(&sample()).to_string(), SAMPLE);
}

#[test]
fn two_folders_and_memory_produce_the_same_bytes() {
    let (first, second) =
        (tempfile::tempdir().unwrap(), tempfile::Builder::new().prefix("Ünïcode folder").tempdir().unwrap());
    let bytes = write_from(first.path());
    assert_eq!(bytes, write_from(second.path()));
    assert_eq!(bytes, write(&sample_files(), &["read"]));
}

#[test]
fn the_archive_holds_no_path_time_or_user_of_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = write_from(folder.path());
    let name = folder.path().file_name().unwrap().as_encoded_bytes();
    assert!(!bytes.windows(name.len()).any(|window| window == name));
    let mut offset = 0;
    while bytes[offset] != 0 {
        let header = &bytes[offset..offset + 512];
        assert_eq!(&header[108..124], b"0000000\x000000000\0", "owner");
        assert_eq!(&header[136..148], b"00000000000\0", "time");
        assert!(header[265..329].iter().all(|byte| *byte == 0), "names of the owner");
        assert!([&b"0000644\0"[..], b"0000755\0"].contains(&&header[100..108]), "mode");
        let size = usize::from_str_radix(std::str::from_utf8(&header[124..135]).unwrap(), 8).unwrap();
        offset += 512 + size.next_multiple_of(512);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_additions_does_not_matter(
        files in Just(sample_files()).prop_shuffle(),
        tools in Just(vec!["a", "b", "C", "é", "ä"]).prop_shuffle(),
    ) {
        prop_assert!(write(&files, &tools) == write(&sample_files(), &["a", "b", "C", "é", "ä"]));
    }
}

/// The environment of a process is inherited, so it is changed for a child: this test program, with one test.
#[cfg(unix)]
mod environment {
    use std::process::Command;

    use super::{Digest, write_from};

    const CHILD: &str = "TOOLCRIB_BUNDLE_TEST_CHILD";

    #[test]
    fn umask_locale_time_zone_and_working_folder_do_not_matter() {
        let run = |umask: &str, locale: &str, zone: &str, folder: &str| {
            let program = std::env::current_exe().unwrap();
            let output = Command::new("sh")
                .args(["-c", r#"umask "$1"; shift; exec "$@""#, "sh", umask])
                .arg(program)
                .args(["--exact", "determinism::environment::child_prints_a_digest", "--nocapture", "--test-threads=1"])
                .env(CHILD, "1")
                .env("LC_ALL", locale)
                .env("LANG", locale)
                .env("TZ", zone)
                .env("SOURCE_DATE_EPOCH", zone.len().to_string())
                .env("USER", locale)
                .current_dir(folder)
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let position = text.find("sha256:").unwrap_or_else(|| panic!("no digest: {text}"));
            text[position..position + 71].to_owned()
        };
        let first = run("022", "C", "UTC", "/");
        assert_eq!(first, run("077", "tr_TR.UTF-8", "Pacific/Kiritimati", "/tmp"));
        assert_eq!(first, run("000", "ar_EG.UTF-8", "America/St_Johns", "/"));
    }

    #[test]
    fn child_prints_a_digest() {
        if std::env::var_os(CHILD).is_some() {
            let folder = tempfile::tempdir().unwrap();
            println!("{}", Digest::of(&write_from(folder.path())));
        }
    }
}
