//! `toolcrib sign`: signs a bundle, beside its tar or in a registry.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde_json::json;
use toolcrib_base::render::{self, usage_error};
use toolcrib_base::whole_file::{self, Readers};
use toolcrib_packages::registries::RegistryOptions;
use toolcrib_packages::signing::{
    self, BundleName, Format, MINISIGN_SUFFIX, PassphraseOptions, SIGSTORE_SUFFIX, SecretKey,
};
use toolcrib_registry::Reference;
use toolcrib_signature::statement::SIGNATURE_PREDICATE;
use toolcrib_signature::{Digest, minisign};

const EXAMPLES: &str = "\
Examples:
  toolcrib key new team.key                       create a key once
  toolcrib sign tools.tar --key team.key          write tools.tar.sigstore.json
  toolcrib sign tools.tar --key m.key --minisign  write tools.tar.minisig
  toolcrib sign oci://registry.example.com/acme/tools@sha256:… --key team.key

A signature says that the holder of the key approves exactly this bundle: it covers the digest of the \
manifest, and with --minisign the bytes of the tar. In a registry it is attached to the bundle, where \
`toolcrib verify`, `install` and cosign 3 find it. A tag can move: name the digest that you reviewed.";

/// Sign a bundle.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Tar, or reference `oci://HOST/PATH[:TAG][@DIGEST]`
    #[arg(value_name = "BUNDLE")]
    bundle: OsString,
    /// Secret key: PEM (P-256 or Ed25519), a cosign key, or with --minisign a minisign key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    passphrase: PassphraseOptions,
    /// Sign the bytes of the tar with a minisign key
    #[arg(long)]
    minisign: bool,
    /// Write the signature to this file instead of pushing it [default: next to the tar]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    registries: RegistryOptions,
    /// Print JSON: one object
    #[arg(long)]
    json: bool,
}

/// Signature that was made.
struct Made {
    bundle: String,
    digest: Digest,
    key: String,
    format: Format,
    /// File, or reference to the attached manifest.
    place: String,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let json = args.json;
    let made = match BundleName::parse(&args.bundle)? {
        // Digests, the prompt and the key derivation block the thread.
        BundleName::File(path) => tokio::task::spawn_blocking(move || sign_file(&args, &path)).await??,
        BundleName::Reference(_) if args.minisign => {
            return Err(usage_error("minisign signs files: sign the tar, or leave out --minisign"));
        }
        BundleName::Reference(reference) => sign_reference(args, reference).await?,
    };
    let Made { bundle, digest, key, format, place } = made;
    if json {
        let line = json!({
            "bundle": bundle, "digest": digest.to_string(), "key": key, "format": format.as_str(), "signature": place,
        });
        render::print_json(&line.to_string())?;
    } else {
        render::aside(&format!("signed `{bundle}` ({digest})"));
        render::aside(&format!("signer: {key}"));
        render::aside(&format!("signature: {place}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn sign_file(args: &Args, path: &Path) -> anyhow::Result<Made> {
    let (bundle, mut file) = signing::open(path)?;
    let digest = bundle.digest();
    let (content, key, format, suffix) = match SecretKey::read(&args.key, args.minisign, &args.passphrase)? {
        SecretKey::Sigstore(signer) => {
            let id = format!("key:{}", signer.public_key().id()?);
            (signer.sign_digest(&digest)?, id, Format::Sigstore, SIGSTORE_SUFFIX)
        }
        SecretKey::Minisign(key) => {
            let id = format!("minisign:{}", key.public_key()?.to_base64());
            (minisign_signature(&mut file, path, &key)?.into_bytes(), id, Format::Minisign, MINISIGN_SUFFIX)
        }
    };
    let place = args.output.clone().unwrap_or_else(|| signing::beside(path, suffix));
    put(&place, &content)?;
    Ok(Made { bundle: path.display().to_string(), digest, key, format, place: place.display().to_string() })
}

/// Creates or replaces the file of a signature.
fn put(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    whole_file::replace(path, content, Readers::Default).with_context(|| format!("cannot write `{}`", path.display()))
}

fn minisign_signature(file: &mut File, path: &Path, key: &minisign::SecretKey) -> anyhow::Result<String> {
    file.seek(SeekFrom::Start(0)).with_context(|| format!("cannot read `{}`", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let comment = minisign::signature_comment(Timestamp::now(), &name);
    Ok(minisign::sign(file, key, &comment)?)
}

async fn sign_reference(args: Args, reference: Reference) -> anyhow::Result<Made> {
    let client = args.registries.client(&[reference.repository().registry()])?;
    let subject = signing::signable(&client, &reference).await?;
    let digest: Digest = subject.digest.to_string().parse()?;
    let key = tokio::task::spawn_blocking(move || SecretKey::read(&args.key, false, &args.passphrase)).await??;
    let SecretKey::Sigstore(signer) = key else { bail!("the key cannot sign a reference") };
    let content = signer.sign_digest(&digest)?;
    let repository = reference.repository();
    let place = match args.output {
        Some(path) => {
            put(&path, &content)?;
            path.display().to_string()
        }
        None => {
            let attached = signing::attach(&client, repository, &subject, content, SIGNATURE_PREDICATE).await?;
            format!("oci://{repository}@{attached}")
        }
    };
    let key = format!("key:{}", signer.public_key().id()?);
    if reference.digest().is_none() {
        render::hint(&format!("the tag named {digest} now; to sign exactly what you reviewed, name the digest"));
    }
    Ok(Made { bundle: reference.to_string(), digest, key, format: Format::Sigstore, place })
}
