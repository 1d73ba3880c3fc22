//! Passphrase of a secret key: from a hidden prompt, a file, a variable or an open descriptor, never from an argument.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use toolcrib_base::render::{Advice, usage_error};
use toolcrib_settings::secrets::prompt;
use toolcrib_signature::limits::MAX_FIELD_BYTES;
use zeroize::Zeroizing;

/// Minimum length of a new passphrase, in characters.
const MIN_PASSPHRASE_LEN: usize = 8;
const FORMS: &str = "`file:PATH`, `env:NAME` or `fd:NUMBER`";

/// Source of a passphrase.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PassphraseOptions {
    /// Read the passphrase of the key from `file:PATH`, `env:NAME` or `fd:NUMBER` instead of asking for it
    #[arg(long, value_name = "SOURCE")]
    passphrase_from: Option<String>,
}

impl PassphraseOptions {
    /// Returns the passphrase of an existing key.
    ///
    /// # Errors
    ///
    /// The source cannot be read, or there is no terminal to ask at.
    pub(crate) fn existing(&self, key: &str) -> anyhow::Result<Zeroizing<String>> {
        match &self.passphrase_from {
            Some(source) => from_source(source),
            None => ask(&format!("passphrase of `{key}` (not shown): ")),
        }
    }

    /// Returns the passphrase of a new key. It is asked for twice.
    ///
    /// # Errors
    ///
    /// As `Self::existing`; also if the passphrase is too short or the two differ.
    pub fn new_key(&self, key: &str) -> anyhow::Result<Zeroizing<String>> {
        let passphrase = self.existing(key)?;
        let characters = passphrase.chars().count();
        ensure!(
            characters >= MIN_PASSPHRASE_LEN,
            Advice::new(
                format!("the passphrase has {characters} characters, but at least {MIN_PASSPHRASE_LEN} are required"),
                "choose a longer one, or create a key without a passphrase with `--no-passphrase`"
            )
        );
        if self.passphrase_from.is_none() {
            let again = ask("the same passphrase again: ")?;
            ensure!(*passphrase == *again, "the passphrases differ: nothing was created");
        }
        Ok(passphrase)
    }
}

fn ask(question: &str) -> anyhow::Result<Zeroizing<String>> {
    let hint = format!("pass `--passphrase-from` with {FORMS}");
    ensure!(io::stdin().is_terminal(), Advice::new("cannot ask for the passphrase: no terminal is available", hint));
    let line = prompt::ask(question)
        .map_err(|error| Advice::new(format!("cannot ask for the passphrase: {error}"), format!("use {FORMS}")))?;
    line.ok_or_else(|| {
        Advice::new("no passphrase was given", "type it at the prompt, or name its source with `--passphrase-from`")
            .into()
    })
}

/// Reads a source. Errors never contain its value, which may be a passphrase by mistake.
fn from_source(source: &str) -> anyhow::Result<Zeroizing<String>> {
    let malformed = || usage_error(format!("--passphrase-from takes {FORMS}, never the passphrase itself"));
    let (kind, value) = source.split_once(':').filter(|(_, value)| !value.is_empty()).ok_or_else(malformed)?;
    match kind {
        "file" => from_file(value.into()),
        "env" => {
            let value = std::env::var(value).ok().map(Zeroizing::new);
            checked(value.context("the variable named by --passphrase-from is not set, or is not UTF-8")?)
        }
        "fd" => {
            let number: u16 = value.parse().map_err(|_| malformed())?;
            from_file(format!("/dev/fd/{number}").into())
        }
        _ => Err(malformed()),
    }
}

fn from_file(path: PathBuf) -> anyhow::Result<Zeroizing<String>> {
    const FAILED: &str = "cannot read the passphrase from the file or descriptor of --passphrase-from";
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FIELD_BYTES + 3));
    let file = File::open(path).context(FAILED)?;
    file.take(MAX_FIELD_BYTES as u64 + 3).read_to_end(&mut bytes).context(FAILED)?;
    let text = std::str::from_utf8(&bytes).ok().context("the passphrase is not UTF-8")?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    checked(Zeroizing::new(line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

fn checked(passphrase: Zeroizing<String>) -> anyhow::Result<Zeroizing<String>> {
    ensure!(!passphrase.is_empty(), "the passphrase is empty");
    let bytes = passphrase.len();
    ensure!(bytes <= MAX_FIELD_BYTES, "the passphrase has more than {MAX_FIELD_BYTES} bytes");
    Ok(passphrase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> anyhow::Result<Zeroizing<String>> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), content).expect("a written file");
        from_source(&format!("file:{}", file.path().display()))
    }

    #[test]
    fn one_line_is_read_from_a_file_within_the_limit() {
        assert_eq!(*read(b"correct horse\r\n").expect("a passphrase"), "correct horse");
        assert_eq!(*read(b" two\nlines\n\n").expect("a passphrase"), " two\nlines\n");
        assert!(read(&vec![b'x'; MAX_FIELD_BYTES]).is_ok());
        assert!(read(&vec![b'x'; MAX_FIELD_BYTES + 1]).is_err());
        assert!(read(b"\n").is_err());
        assert!(read(b"\xff").is_err());
    }

    #[test]
    fn an_error_never_repeats_a_passphrase() {
        for source in ["hunter2canary", "pass:hunter2canary", "env:hunter2canary", "fd:hunter2canary", "file:"] {
            let error = from_source(source).expect_err("no source");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
