//! `toolcrib verify`: shows the signatures of a bundle and checks that a trusted signer made one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use toolcrib_base::render::{self, Advice, usage_error};
use toolcrib_packages::registries::RegistryOptions;
use toolcrib_packages::signing::{self, BundleName, SignatureReport, SignerOptions};

/// Exit code for a bundle without a valid signature by a trusted signer.
const NOT_VERIFIED: u8 = 3;

const EXAMPLES: &str = "\
Examples:
  toolcrib verify tools.tar --key team.key.pub
  toolcrib verify tools.tar --key minisign.pub         checks tools.tar.minisig
  toolcrib verify oci://registry.example.com/acme/tools:1.2 --key team.key.pub
  toolcrib verify tools.tar --trust-root trusted_root.json \\
    --identity release@acme.example --issuer https://accounts.example.com

For a tar, FILE.sigstore.json and FILE.minisig next to it and attached signatures inside are checked; in a registry, \
what is attached to the bundle. Without a trusted signer, signatures are only listed. The only network connection is \
to the registry that you name.

Exit status: 0 a trusted signer made a valid signature, 3 none did, 1 failure, 2 usage error.";

/// Verify the signatures of a bundle.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Tar, or reference `oci://HOST/PATH[:TAG][@DIGEST]`
    #[arg(value_name = "BUNDLE")]
    bundle: OsString,
    /// Check this signature of a tar too; repeatable
    #[arg(long = "signature", value_name = "FILE")]
    signatures: Vec<PathBuf>,
    #[command(flatten)]
    signers: SignerOptions,
    #[command(flatten)]
    registries: RegistryOptions,
    /// Print JSON: one object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let trusted = args.signers.trusted()?;
    let report = match BundleName::parse(&args.bundle)? {
        BundleName::File(path) => {
            let signatures = args.signatures;
            // Digests block the thread.
            tokio::task::spawn_blocking(move || signing::of_file(&path, &signatures, &trusted)).await??
        }
        BundleName::Reference(_) if !args.signatures.is_empty() => {
            return Err(usage_error("--signature is for a tar; the signatures of a reference are in its registry"));
        }
        BundleName::Reference(reference) => {
            let client = args.registries.client(&[reference.repository().registry()])?;
            signing::of_reference(&client, &reference, &trusted).await?
        }
    };
    match args.json {
        true => render::print_json(&report.to_json().to_string())?,
        false => render::print_screen(&report.text())?,
    }
    if report.signers().is_empty() {
        render::explain(&not_verified(&report, args.signers.is_empty()).into());
        return Ok(ExitCode::from(NOT_VERIFIED));
    }
    Ok(ExitCode::SUCCESS)
}

fn not_verified(report: &SignatureReport, trusts_nobody: bool) -> Advice {
    let hint = match trusts_nobody {
        true => "name a signer whom you trust: `--key FILE`, or `--identity`, `--issuer` and `--trust-root`",
        false => "get the public key from its publisher in a way that you trust, or do not use this bundle",
    };
    Advice::new(format!("{} has no valid signature by a trusted signer", report.digest), hint)
}
