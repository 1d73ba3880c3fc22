//! `toolcrib bundle inspect`: shows the content of a bundle. Every digest is checked; nothing is compiled or run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::{Value, json};
use toolcrib_base::parse::rounded_size;
use toolcrib_base::progress;
use toolcrib_base::render::{self, counted, one_line};
use toolcrib_bundle::{Bundle, BundledFile, MediaType};
use toolcrib_packages::install::ReleaseOptions;
use toolcrib_packages::registries;
use toolcrib_packages::registries::SourceRegistries;
use toolcrib_packages::signing::{self, BundleName, SignatureReport};
use toolcrib_settings::subjects;
use toolcrib_settings::trust::Subject;

const EXAMPLES: &str = "\
Examples:
  toolcrib bundle inspect weather.tar
  toolcrib bundle inspect weather.tar --json | jq -r '.files[].path'

Name, version and licences are the author's statements. The digest identifies the bundle with all its content. A \
tool gets what it requests only once flags allow it or you trust the bundle.";
const FILES: [&str; 4] = ["FILE", "TYPE", "BYTES", "DIGEST"];
/// Maximum size of a bill of materials that is read, in bytes.
const MAX_BILL: u64 = 64 << 20;
/// Maximum number of files that are listed without `--json`.
const MAX_FILES: usize = 200;

/// Show the tools, requests and files of a bundle.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Bundle, a WebAssembly artifact of another tool in the same form, or an `oci://` reference
    bundle: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    releases: ReleaseOptions,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let trusted = args.releases.signers.trusted()?;
    let (path, signatures, _held) = match BundleName::parse(args.bundle.as_os_str())? {
        BundleName::File(path) => (path, None, None),
        BundleName::Reference(reference) => {
            let SourceRegistries { connection, offline } = &args.releases.registries;
            let client = connection.client(&[reference.repository().registry()])?;
            let fetched = registries::fetch(&client, &args.releases.store()?, &reference, *offline).await?;
            let signatures = match offline {
                true => None,
                false => Some(signing::of_reference(&client, &fetched.reference, &trusted).await?),
            };
            (fetched.file, signatures, fetched.held)
        }
    };
    let work = tokio::task::spawn_blocking(move || {
        let signatures = signatures.map_or_else(|| signing::of_file(&path, &[], &trusted), Ok)?;
        Sheet::read(&path, signatures)
    });
    let sheet = progress::during("checking the bundle", work).await.context("the check did not finish")??;
    if args.json {
        render::print_json(&sheet.describe(&args.bundle).to_string())?;
    } else {
        render::print_screen(&sheet.text(&args.bundle))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Facts about a bundle.
struct Sheet {
    bundle: Bundle<File>,
    bytes: u64,
    subject: Subject,
    /// Number of components in the bill of materials.
    components: Option<usize>,
    signatures: SignatureReport,
}

impl Sheet {
    fn read(path: &Path, signatures: SignatureReport) -> anyhow::Result<Self> {
        let context = || format!("cannot use `{}` as a bundle", path.display());
        let file = File::open(path).with_context(context)?;
        let bytes = file.metadata().with_context(context)?.len();
        let mut bundle = Bundle::open(file).with_context(context)?;
        bundle.verify().with_context(context)?;
        let components = components(&mut bundle).with_context(context)?;
        Ok(Self { bytes, subject: subjects::read(path)?, components, signatures, bundle })
    }

    fn of_type(&self, media_type: &MediaType) -> impl Iterator<Item = &BundledFile> {
        self.bundle.files().iter().filter(move |file| file.media_type == *media_type)
    }

    fn describe(&self, path: &Path) -> Value {
        let metadata = self.bundle.metadata();
        let paths = |media_type| self.of_type(&media_type).map(|file| file.path.as_str()).collect::<Vec<_>>();
        let file = |file: &BundledFile| {
            let (path, digest) = (file.path.as_str(), file.digest.to_string());
            json!({ "path": path, "mediaType": file.media_type.as_str(), "digest": digest, "bytes": file.size })
        };
        json!({
            "path": path.to_string_lossy(),
            "name": metadata.map(|metadata| &metadata.name),
            "version": metadata.map(|metadata| &metadata.version),
            "description": metadata.and_then(|metadata| metadata.description.as_ref()),
            "licenses": metadata.and_then(|metadata| metadata.licenses.as_ref()),
            "digest": self.bundle.digest().to_string(),
            "bytes": self.bytes,
            "items": self.subject.items,
            "trust": self.subject.digest,
            "licenseFiles": paths(MediaType::LICENSE),
            "sbom": { "paths": paths(MediaType::SBOM), "components": self.components },
            "signatures": self.signatures.to_json()["signatures"],
            "provenance": self.signatures.to_json()["provenance"],
            "files": self.bundle.files().iter().map(file).collect::<Vec<_>>(),
        })
    }

    fn text(&self, path: &Path) -> String {
        let mut lines = vec![match self.bundle.metadata() {
            Some(metadata) => one_line(&format!("{} {}", metadata.name, metadata.version)),
            None => "a WebAssembly artifact without name and version".to_owned(),
        }];
        let mut add = |label: &str, text: &str| lines.push(format!("  {label:10}{}", one_line(text)));
        let metadata = self.bundle.metadata();
        if let Some(description) = metadata.and_then(|metadata| metadata.description.as_deref()) {
            add("about", description);
        }
        add("file", &format!("{}, {}", render::from_here(path).display(), rounded_size(self.bytes)));
        add("digest", &self.bundle.digest().to_string());
        let stated = metadata.and_then(|metadata| metadata.licenses.as_deref());
        let files = self.of_type(&MediaType::LICENSE).map(|file| file.path.as_str());
        let licenses = stated.into_iter().chain(files).collect::<Vec<_>>().join(", ");
        add("licences", if licenses.is_empty() { "none stated" } else { &licenses });
        add("sbom", &self.components.map_or("none".to_owned(), |count| counted(count, "component")));
        self.signatures.finding_lines().iter().for_each(|line| add("signature", line.trim()));
        let tools: Vec<_> = self.subject.items.iter().map(|item| one_line(&item.name)).collect();
        let files = self.bundle.files();
        let row = |file: &BundledFile| {
            [
                one_line(file.path.as_str()),
                one_line(file.media_type.as_str()),
                file.size.to_string(),
                file.digest.to_string(),
            ]
        };
        let table = render::table(FILES, files.iter().take(MAX_FILES).map(row));
        let more = files.len().saturating_sub(MAX_FILES);
        let more = if more == 0 { String::new() } else { format!("\n… and {more} more, which --json lists") };
        format!(
            "{}\n\nTools: {}\n\nThey request:\n{}\n{table}{more}",
            lines.join("\n"),
            tools.join(", "),
            self.subject.requests(),
        )
    }
}

/// Counts the components in the bill of materials.
fn components(bundle: &mut Bundle<File>) -> toolcrib_bundle::Result<Option<usize>> {
    let bill = bundle.files().iter().find(|file| file.media_type == MediaType::SBOM);
    let Some(path) = bill.map(|file| file.path.to_string()) else { return Ok(None) };
    let bytes = bundle.read_file(&path)?.into_vec(MAX_BILL)?;
    let bill: Option<Value> = serde_json::from_slice(&bytes).ok();
    Ok(bill.and_then(|bill| bill["components"].as_array().map(Vec::len)))
}
