//! `toolcrib key`: creates keys that sign bundles.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde_json::json;
use toolcrib_base::render::{self, Advice};
use toolcrib_base::whole_file::{self, Readers};
use toolcrib_packages::signing::{self, PassphraseOptions};
use toolcrib_signature::key::{Algorithm, Signer, write_key_file};
use toolcrib_signature::minisign;
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  toolcrib key new team.key                     asks for a passphrase, twice
  toolcrib key new team.key --passphrase-from env:KEY_PASSPHRASE
  toolcrib key new ci.key --no-passphrase       anyone with the file can sign
  toolcrib key new team.minisign.key --minisign

Creates FILE, the secret key, which only you can read, and FILE.pub, the public key, which you publish. \
Keep a copy of the secret key offline: it cannot be restored. Other programs read both: PKCS#8 and \
SubjectPublicKeyInfo in PEM, or with --minisign the files of minisign.";
const PUBLIC_SUFFIX: &str = ".pub";

/// Create keys that sign bundles.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Create a secret key and its public key; existing files are never overwritten
    #[command(after_long_help = EXAMPLES)]
    New(NewArgs),
}

#[derive(clap::Args)]
struct NewArgs {
    /// File of the secret key; the public key is FILE.pub
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Algorithm of the key
    #[arg(long, value_enum, default_value_t, value_name = "NAME", conflicts_with = "minisign")]
    algorithm: KeyAlgorithm,
    /// Create a minisign key, for signatures next to a tar
    #[arg(long)]
    minisign: bool,
    #[command(flatten)]
    passphrase: PassphraseOptions,
    /// Do not encrypt the key
    #[arg(long, conflicts_with = "passphrase_from")]
    no_passphrase: bool,
    /// Print JSON: one object
    #[arg(long)]
    json: bool,
}

/// Algorithm of a new key: ECDSA on curve P-256, which every verifier knows, or Ed25519.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum KeyAlgorithm {
    #[default]
    P256,
    Ed25519,
}

/// New key, as its files hold it.
struct NewKey {
    secret: Zeroizing<String>,
    public: String,
    id: String,
    algorithm: String,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Action::New(args) = args.action;
    // The prompt and the key derivation block the thread.
    tokio::task::spawn_blocking(move || create(&args)).await?
}

fn create(args: &NewArgs) -> anyhow::Result<ExitCode> {
    let public_file = signing::beside(&args.file, PUBLIC_SUFFIX);
    for path in [&args.file, &public_file] {
        // Checked before the prompt, so that no passphrase is typed in vain.
        ensure!(
            path.symlink_metadata().is_err(),
            Advice::new(
                format!("`{}` already exists", path.display()),
                "keys are never overwritten: choose another name"
            )
        );
    }
    let shown = args.file.display().to_string();
    let passphrase = match args.no_passphrase {
        true => None,
        false => Some(args.passphrase.new_key(&shown)?),
    };
    let passphrase = passphrase.as_ref().map(|words| words.as_bytes());
    let key = if args.minisign { minisign_key(passphrase)? } else { signing_key(args.algorithm, passphrase)? };
    write_key_file(&args.file, key.secret.as_bytes())?;
    write_public(&public_file, &args.file, &key.public)?;
    let public = public_file.display().to_string();
    if args.json {
        let line = json!({ "secret_key": shown, "public_key": public, "id": key.id, "algorithm": key.algorithm });
        render::print_json(&line.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    render::aside(&format!("created the secret key `{shown}` and the public key `{public}`"));
    render::aside(&format!("signer: {} ({})", key.id, key.algorithm));
    if passphrase.is_none() {
        render::warning("the secret key is not encrypted: anyone who reads the file can sign");
    }
    let flag = if args.minisign { " --minisign" } else { "" };
    render::hint(&format!("publish `{public}`, and sign with `toolcrib sign BUNDLE --key {shown}{flag}`"));
    Ok(ExitCode::SUCCESS)
}

/// Writes the public key. Without it the new secret key is removed, so that the command can be repeated.
fn write_public(path: &Path, secret: &Path, text: &str) -> anyhow::Result<()> {
    let created = whole_file::create(path, text.as_bytes(), Readers::Default);
    created.with_context(|| format!("cannot create `{}`", path.display())).inspect_err(|_| {
        // Nobody has used the key yet.
        let _ = std::fs::remove_file(secret);
    })
}

fn signing_key(algorithm: KeyAlgorithm, passphrase: Option<&[u8]>) -> anyhow::Result<NewKey> {
    let algorithm = match algorithm {
        KeyAlgorithm::P256 => Algorithm::EcdsaP256,
        KeyAlgorithm::Ed25519 => Algorithm::Ed25519,
    };
    let signer = Signer::generate(algorithm)?;
    let public = signer.public_key();
    let secret = match passphrase {
        Some(passphrase) => signer.to_encrypted_pem(passphrase)?,
        None => signer.to_pem()?,
    };
    let id = format!("key:{}", public.id()?);
    Ok(NewKey { secret, public: public.to_pem()?, id, algorithm: algorithm.to_string() })
}

fn minisign_key(passphrase: Option<&[u8]>) -> anyhow::Result<NewKey> {
    let key = minisign::SecretKey::generate()?;
    let public = key.public_key()?;
    let id = format!("minisign:{}", public.to_base64());
    let secret = key.to_file(passphrase).context("cannot encrypt the key")?;
    Ok(NewKey { secret, public: public.to_file(), id, algorithm: "minisign".to_owned() })
}
