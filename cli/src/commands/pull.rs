//! `toolcrib pull`: pulls a bundle or a component from a registry.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render;
use toolcrib_packages::cache::{CacheFolder, CacheLimit};
use toolcrib_packages::registries::SourceRegistries;
use toolcrib_packages::registries::{self, BundleStore, Fetched};
use toolcrib_registry::Reference;

const EXAMPLES: &str = "\
Examples:
  toolcrib pull registry.example.com/tools/weather:1.2.0
  toolcrib pull registry.example.com/tools/weather@sha256:… -o weather.tar
  toolcrib call get_weather --tools \"$(toolcrib pull localhost:5000/weather:1)\"

Every command takes a reference with `oci://` in place of a source, and pulls it by itself. The bundle is stored in \
the cache directory; `toolcrib cache` lists and removes it. An interrupted pull continues where it stopped. Prints \
the reference with the digest, which always names this content.";

/// Pull a bundle or a component from a registry.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// HOST[:PORT]/PATH with :TAG or @DIGEST, with or without `oci://`
    #[arg(value_name = "REFERENCE")]
    reference: Reference,
    /// Also write the bundle to this file, replacing it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    registries: SourceRegistries,
    #[command(flatten)]
    folder: CacheFolder,
    #[command(flatten)]
    limit: CacheLimit,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let reference = &args.reference;
    let client = args.registries.connection.client(&[reference.repository().registry()])?;
    let store = BundleStore::new(Some(args.folder.cache()?.max_bytes(args.limit.bytes())))?;
    let fetched = registries::fetch(&client, &store, reference, args.registries.offline).await?;
    let Fetched { file, bytes, digest, reference, was_stored, held: _held } = fetched;
    if let Some(output) = &args.output {
        registries::copy_to(&file, output).with_context(|| format!("cannot write `{}`", output.display()))?;
    }
    let file = args.output.unwrap_or(file);
    if args.json {
        let record = json!({
            "reference": reference.to_string(), "digest": digest, "bytes": bytes, "file": file.to_string_lossy(),
            "wasStored": was_stored,
        });
        render::print_json(&record.to_string())?;
    } else {
        render::print(&reference.to_string())?;
        let done = if was_stored { "already stored" } else { "pulled" };
        render::aside(&format!("{done}, {}", rounded_size(bytes)));
    }
    Ok(ExitCode::SUCCESS)
}
