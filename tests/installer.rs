//! `cli/install/install.sh` installs only what a release lists, verifies before it changes anything, and removes only what it
//! installed; and `cargo binstall` looks for the archives under the names that `.ci/package` gives them.
//!
//! The releases of these tests hold a script in place of the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ring::digest::{SHA256, digest};
use tempfile::TempDir;

const INSTALLER: &str = "cli/install/install.sh";
/// Shells that read the installer here, if they are there.
const SHELLS: [&[&str]; 3] = [&["sh"], &["dash"], &["busybox", "sh"]];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A folder with the files of a release, and an empty home.
struct Release {
    folder: TempDir,
    home: TempDir,
}

impl Release {
    /// A release with an archive per target, whose program answers with its target.
    fn new(targets: &[&str]) -> Self {
        let release = Self { folder: TempDir::new().unwrap(), home: TempDir::new().unwrap() };
        for target in targets {
            release.add(target, &format!("#!/bin/sh\necho toolcrib 0.1.0 for {target}\n"));
        }
        release.list();
        release
    }

    fn archive(target: &str) -> String {
        format!("toolcrib-0.1.0-{target}.tar.gz")
    }

    fn add(&self, target: &str, program: &str) {
        let work = TempDir::new().unwrap();
        let top = work.path().join(format!("toolcrib-0.1.0-{target}"));
        fs::create_dir_all(top.join("completions")).unwrap();
        fs::write(top.join("toolcrib"), program).unwrap();
        fs::set_permissions(top.join("toolcrib"), fs::Permissions::from_mode(0o755)).unwrap();
        for shell in ["bash", "zsh", "fish"] {
            fs::write(top.join(format!("completions/toolcrib.{shell}")), "# completions\n").unwrap();
        }
        let archive = self.folder.path().join(Self::archive(target));
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(archive).arg("-C").arg(work.path()).arg(top.file_name().unwrap());
        assert!(tar.status().unwrap().success());
    }

    /// Writes `SHA256SUMS` for the files that are there.
    fn list(&self) {
        let mut lines = String::new();
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let digest = digest(&SHA256, &fs::read(&path).unwrap());
            let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            lines.push_str(&format!("{digest}  {}\n", path.file_name().unwrap().display()));
        }
        fs::write(self.folder.path().join("SHA256SUMS"), lines).unwrap();
    }

    fn run_with(&self, shell: &[&str], arguments: &[&str]) -> Output {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(repository().join(INSTALLER)).args(arguments);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home.path());
        command.current_dir(self.folder.path()).output().unwrap()
    }

    fn install(&self, arguments: &[&str]) -> Output {
        let mut all = vec!["--from", self.folder.path().to_str().unwrap()];
        all.extend(arguments);
        self.run_with(&["sh"], &all)
    }

    fn program(&self) -> PathBuf {
        self.home.path().join(".local/bin/toolcrib")
    }

    /// Files below the home.
    fn files(&self) -> usize {
        fn count(folder: &Path) -> usize {
            let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
        }
        count(self.home.path())
    }

    /// Asserts that the installation failed for this reason, and that nothing was changed.
    fn assert_refused(&self, output: &Output, reason: &str) {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(reason), "{output:?}");
        assert_eq!(self.files(), 0, "{output:?}");
    }
}

fn target(libc: &str) -> String {
    format!("{}-unknown-linux-{libc}", std::env::consts::ARCH)
}

#[test]
fn each_shell_installs_a_program_for_the_user_and_removes_exactly_its_files() {
    for shell in SHELLS {
        if Command::new(shell[0]).args(&shell[1..]).args(["-c", "true"]).output().is_err() {
            eprintln!("skipped: no `{}` here", shell[0]);
            continue;
        }
        let release = Release::new(&[&target("musl")]);
        let own = release.home.path().join(".local/bin/own");
        let output = release.run_with(shell, &["--from", release.folder.path().to_str().unwrap(), "--libc", "musl"]);
        assert!(output.status.success(), "{shell:?}: {output:?}");
        let answer = Command::new(release.program()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), format!("toolcrib 0.1.0 for {}", target("musl")));
        assert_eq!(release.files(), 5, "the program, three completions and the list");
        fs::write(&own, "").unwrap();
        let output = release.run_with(shell, &["uninstall"]);
        assert!(output.status.success() && own.exists(), "{shell:?}: {output:?}");
        assert_eq!(release.files(), 1, "{output:?}");
        let output = release.run_with(shell, &["uninstall"]);
        assert!(!output.status.success(), "{shell:?}: {output:?}");
    }
}

#[test]
fn files_of_other_installations_are_neither_replaced_nor_removed() {
    let release = Release::new(&[&target("musl")]);
    let install = || release.install(&["--libc", "musl"]);
    fs::create_dir_all(release.program().parent().unwrap()).unwrap();
    fs::write(release.program(), "of cargo").unwrap();
    let output = install();
    assert!(!output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("does not name it"), "{output:?}");
    assert_eq!((fs::read_to_string(release.program()).unwrap().as_str(), release.files()), ("of cargo", 1));
    fs::remove_file(release.program()).unwrap();
    let fish = release.home.path().join(".config/fish/completions/toolcrib.fish");
    fs::create_dir_all(fish.parent().unwrap()).unwrap();
    fs::write(&fish, "of the system").unwrap();
    for _ in ["new", "again"] {
        let output = install();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no completions for fish: "), "{output:?}");
    }
    assert!(release.run_with(&["sh"], &["uninstall"]).status.success());
    assert_eq!((fs::read_to_string(&fish).unwrap().as_str(), release.files()), ("of the system", 1));
}

#[test]
fn a_folder_is_known_by_each_of_its_paths() {
    let release = Release::new(&[&target("musl")]);
    let home = release.home.path().display();
    for folder in ["bin", "bin/", "./bin"] {
        let output = release.install(&["--libc", "musl", "--dir", &format!("{home}/{folder}")]);
        assert!(output.status.success(), "{folder}: {output:?}");
    }
    assert!(release.run_with(&["sh"], &["uninstall"]).status.success());
    assert_eq!(release.files(), 0);
}

#[test]
fn a_completion_that_was_not_written_is_not_removed_later() {
    let release = Release::new(&[&target("musl")]);
    let config = release.home.path().join(".config");
    fs::write(&config, "a file where a folder would be").unwrap();
    assert!(release.install(&["--libc", "musl"]).status.success());
    fs::remove_file(&config).unwrap();
    fs::create_dir_all(config.join("fish/completions")).unwrap();
    fs::write(config.join("fish/completions/toolcrib.fish"), "of the system").unwrap();
    assert!(release.run_with(&["sh"], &["uninstall"]).status.success());
    assert_eq!(release.files(), 1, "the completions of the system stay");
}

#[test]
fn an_installation_in_another_folder_keeps_the_first_one_removable() {
    let release = Release::new(&[&target("gnu"), &target("musl")]);
    let other = release.home.path().join("other");
    for arguments in [&[][..], &["--dir", other.to_str().unwrap()], &[]] {
        let installed = release.install(arguments);
        assert!(installed.status.success(), "{installed:?}");
    }
    assert!(release.program().exists() && other.join("toolcrib").exists());
    let removed = release.run_with(&["sh"], &["uninstall"]);
    assert!(removed.status.success() && release.files() == 0, "{removed:?}");
}

#[test]
fn completions_that_cannot_be_written_are_left_out() {
    let release = Release::new(&[&target("musl")]);
    fs::write(release.home.path().join(".config"), "a file where a folder would be").unwrap();
    let installed = release.install(&["--libc", "musl"]);
    let notes = String::from_utf8_lossy(&installed.stderr);
    assert!(installed.status.success() && notes.contains("warning: no completions for fish: "), "{installed:?}");
    assert!(release.program().exists());
    let removed = release.run_with(&["sh"], &["uninstall"]);
    assert!(removed.status.success() && release.files() == 1, "{removed:?}");
}

#[test]
fn a_folder_in_the_place_of_the_program_is_neither_replaced_nor_filled() {
    let release = Release::new(&[&target("musl")]);
    fs::create_dir_all(release.program()).unwrap();
    release.assert_refused(&release.install(&["--libc", "musl"]), "is a folder");
    fs::remove_dir(release.program()).unwrap();
    assert!(release.install(&["--libc", "musl"]).status.success());
    // What is in the way stays in the list, and everything else goes.
    fs::remove_file(release.program()).unwrap();
    fs::create_dir(release.program()).unwrap();
    let left = release.run_with(&["sh"], &["uninstall"]);
    assert!(!left.status.success() && release.files() == 1, "{left:?}");
    fs::remove_dir(release.program()).unwrap();
    assert!(release.run_with(&["sh"], &["uninstall"]).status.success());
    assert_eq!(release.files(), 0);
}

#[test]
fn a_list_that_cannot_be_written_prevents_the_installation() {
    let release = Release::new(&[&target("musl")]);
    fs::create_dir_all(release.home.path().join(".local/share/toolcrib/install.txt")).unwrap();
    release.assert_refused(&release.install(&["--libc", "musl"]), "cannot write");
}

#[test]
fn a_changed_archive_is_refused() {
    let release = Release::new(&[&target("musl")]);
    let archive = release.folder.path().join(Release::archive(&target("musl")));
    let mut content = fs::read(&archive).unwrap();
    content.push(0);
    fs::write(&archive, content).unwrap();
    release.assert_refused(&release.install(&["--libc", "musl"]), "SHA256SUMS says");
}

#[test]
fn a_release_without_an_archive_for_this_machine_is_refused() {
    let release = Release::new(&["riscv64gc-unknown-linux-gnu", "x86_64-unknown-freebsd"]);
    release.assert_refused(&release.install(&[]), "lists no archive for");
}

#[test]
fn another_version_than_the_wanted_one_is_refused() {
    let release = Release::new(&[&target("musl")]);
    let output = release.install(&["--libc", "musl", "--version", "0.2.0"]);
    release.assert_refused(&output, "lists no archive of version 0.2.0");
}

#[test]
fn a_folder_without_checksums_is_refused() {
    let release = Release::new(&[&target("musl")]);
    fs::remove_file(release.folder.path().join("SHA256SUMS")).unwrap();
    release.assert_refused(&release.install(&[]), "cannot read `SHA256SUMS`");
}

#[test]
fn an_address_without_encryption_is_refused() {
    let release = Release::new(&[]);
    let output = release.run_with(&["sh"], &["--from", "http://releases.example/v0.1.0"]);
    release.assert_refused(&output, "is not encrypted");
    // An address that only begins like one of this machine.
    let output = release.run_with(&["sh"], &["--from", "http://localhost.example/v0.1.0"]);
    release.assert_refused(&output, "is not encrypted");
    let output = release.run_with(&["sh"], &["--from", "http://127.0.0.1:80@releases.example/v0.1.0"]);
    release.assert_refused(&output, "holds a user name");
}

#[test]
fn a_program_that_does_not_start_is_passed_over_for_a_static_one() {
    let release = Release::new(&[&target("musl")]);
    release.add(&target("gnu"), "#!/bin/sh\necho 'GLIBC_2.99 not found'; exit 1\n");
    release.list();
    let output = release.install(&["--libc", "gnu"]);
    release.assert_refused(&output, "does not start here: GLIBC_2.99 not found");
    let output = release.install(&[]);
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && notes.contains(&target("musl")), "{output:?}");
}

/// Creates a key in the folder and returns its public part; nothing if `minisign` is not here.
fn new_key(folder: &Path, name: &str) -> Option<String> {
    let mut minisign = Command::new("minisign");
    minisign.args(["-G", "-W", "-f", "-s", name, "-p"]).arg(format!("{name}.pub")).current_dir(folder);
    let output = minisign.output().ok()?;
    assert!(output.status.success(), "{output:?}");
    let public = fs::read_to_string(folder.join(format!("{name}.pub"))).unwrap();
    Some(public.lines().last().unwrap().to_owned())
}

#[test]
fn a_named_key_demands_a_valid_signature_by_it() {
    let release = Release::new(&[&target("musl")]);
    let unsigned = "RWQZz6Oxt5/ua33SopTlyTOHqdkt6U65kxjHsoUQwfprP95bdwN4tQSD";
    let output = release.install(&["--libc", "musl", "--key", unsigned]);
    release.assert_refused(&output, "error:");
    let keys = TempDir::new().unwrap();
    let (Some(key), Some(other)) = (new_key(keys.path(), "key"), new_key(keys.path(), "other")) else {
        eprintln!("skipped: no `minisign` here");
        return;
    };
    let mut minisign = Command::new("minisign");
    minisign.args(["-S", "-m"]).arg(release.folder.path().join("SHA256SUMS")).arg("-s").arg(keys.path().join("key"));
    assert!(minisign.output().unwrap().status.success());
    let output = release.install(&["--libc", "musl", "--key", &other]);
    release.assert_refused(&output, "the signature of SHA256SUMS is not valid");
    let output = release.install(&["--libc", "musl", "--key", &key]);
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && notes.contains("signature: valid"), "{output:?}");
}

#[test]
fn binstall_looks_for_the_archives_that_are_packed() {
    let manifest = fs::read_to_string(repository().join("cli/Cargo.toml")).unwrap();
    let metadata: toml_edit::DocumentMut = manifest.parse().unwrap();
    let binstall = &metadata["package"]["metadata"]["binstall"];
    let targets =
        ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-musl", "aarch64-apple-darwin", "x86_64-pc-windows-gnu"];
    let script = "import sys; from pathlib import Path; sys.dont_write_bytecode = True; sys.path.insert(0, '.ci/packages')\n\
                  import archive, program, release\n\
                  for triple in sys.argv[1:]:\n\
                  \x20   machine, _, rest = triple.partition('-')\n\
                  \x20   one = program.Program(Path('.'), triple, machine, *program.SYSTEMS[rest])\n\
                  \x20   print(archive.file(release.Release('0.1.0', 0), one), archive.name(release.Release('0.1.0', 0), one), one.file)";
    let python = Command::new("python3").args(["-c", script]).args(targets).current_dir(repository()).output();
    let Ok(output) = python else {
        eprintln!("skipped: no `python3` here");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), targets.len());
    for (line, target) in lines.lines().zip(targets) {
        let format = binstall.get("overrides").and_then(|all| all.get(target)).and_then(|one| one.get("pkg-fmt"));
        let format = format.unwrap_or(&binstall["pkg-fmt"]).as_str().unwrap();
        let suffix = match format {
            "tgz" => ".tar.gz",
            "zip" => ".zip",
            _ => panic!("{format}"),
        };
        let end = if target.contains("windows") { ".exe" } else { "" };
        let fill = |template: &toml_edit::Item| {
            let template = template.as_str().unwrap().replace("{ version }", "0.1.0").replace("{ target }", target);
            template.replace("{ archive-suffix }", suffix).replace("{ bin }", "toolcrib").replace("{ binary-ext }", end)
        };
        let url = fill(&binstall["pkg-url"]);
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(url.rsplit('/').next(), Some(words[0]));
        assert!(url.contains("/v0.1.0/"), "{url}");
        assert_eq!(fill(&binstall["bin-dir"]), format!("{}/{}", words[1], words[2]));
    }
}
