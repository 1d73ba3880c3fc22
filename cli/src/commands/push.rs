//! `toolcrib push`: pushes a bundle or a component to a registry.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::{self, usage_error};
use toolcrib_packages::registries::RegistryOptions;
use toolcrib_packages::registries::{self, Pushed};
use toolcrib_registry::Reference;

const EXAMPLES: &str = "\
Examples:
  toolcrib push weather.tar registry.example.com/tools/weather:1.2.0
  toolcrib push greet.wasm localhost:5000/greet:1
  toolcrib push weather.tar registry.example.com/tools/weather --json

A bundle is pushed as it is: its digest stays. A component is pushed in the layout that other WebAssembly tools use \
(config application/vnd.wasm.config.v0+json, one layer application/wasm).
Prints the reference with the digest, which always names this content.";

/// Push a bundle or a component to a registry.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// A bundle, or a component or core module of WebAssembly
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Its place: HOST[:PORT]/PATH:TAG, with or without `oci://`
    #[arg(value_name = "REFERENCE")]
    reference: Reference,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: RegistryOptions,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let reference = &args.reference;
    if reference.tag().is_none() && reference.digest().is_none() {
        return Err(usage_error(format!("`{reference}` has no tag; add one, as in `{reference}:1.0.0`")));
    }
    let client = args.connection.client(&[reference.repository().registry()])?;
    let Pushed { reference, bytes, uploaded, existing, attached } =
        registries::push(&client, &args.bundle, reference).await?;
    if args.json {
        let digest = reference.digest();
        let record = json!({
            "reference": reference.to_string(), "digest": digest, "bytes": bytes, "uploaded": uploaded,
            "existing": existing, "attached": attached,
        });
        render::print_json(&record.to_string())?;
    } else {
        render::print(&reference.to_string())?;
        let (all, sent) = (render::counted(uploaded + existing, "blob"), rounded_size(bytes));
        render::aside(&format!("pushed {all}, {sent}; {existing} already in the repository"));
    }
    Ok(ExitCode::SUCCESS)
}
