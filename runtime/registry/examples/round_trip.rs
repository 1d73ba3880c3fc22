//! Pushes a blob, a manifest, a tag and a referrer to a registry, and pulls them again.
//!
//! Usage: `cargo run --example round_trip -- oci://localhost:5000/team/tool:v1 FILE`

#![allow(clippy::print_stdout)]

use std::path::PathBuf;

use toolcrib_registry::{
    BlobSource, Client, Content, CredentialStore, Descriptor, Digest, Manifest, OCI_MANIFEST, Reference, UploadMode,
};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(reference), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("expected a reference and a file".into());
    };
    let reference: Reference = reference.parse()?;
    let repository = reference.repository();
    let client = Client::builder().credentials(CredentialStore::from_variables(std::env::vars_os())).build()?;

    let file = PathBuf::from(file);
    let content = std::fs::read(&file)?;
    let layer = Descriptor::of("application/wasm", &content);
    for mode in [UploadMode::Chunked, UploadMode::Monolithic] {
        let pushed = client.push_blob(repository, &layer, &BlobSource::File(file.clone()), mode, None).await?;
        println!("layer {mode:?}: {pushed:?}");
    }
    let config = Descriptor::of("application/vnd.example.config.v1+json", b"{}");
    let pushed =
        client.push_blob(repository, &config, &BlobSource::Bytes("{}".into()), UploadMode::Monolithic, None).await?;
    println!("configuration: {pushed:?}");

    let body =
        serde_json::json!({ "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer] });
    let manifest = Manifest::new(OCI_MANIFEST, body.to_string())?;
    client.push_manifest(repository, &manifest, reference.tag()).await?;
    let resolved = client.resolve(&reference).await?;
    println!("resolved: {} {} {}", resolved.media_type, resolved.digest, resolved.size);

    let mut signature = body;
    signature["artifactType"] = "application/vnd.example.signature".into();
    signature["subject"] = serde_json::to_value(&resolved)?;
    let signature = Manifest::new(OCI_MANIFEST, signature.to_string())?;
    let pushed = client.push_manifest(repository, &signature, None).await?;
    println!("referrer listed by: {:?}", pushed.listed);
    for entry in client.referrers(repository, &resolved.digest, None).await? {
        println!("referrer: {} {}", entry.artifact_type.unwrap_or_default(), entry.digest);
    }
    client.tag(&reference, &"stable".parse()?).await?;
    println!("tags: {:?}", client.tags(repository).await?.iter().map(|tag| tag.as_str()).collect::<Vec<_>>());

    let folder = tempfile::tempdir()?;
    let (partial, target) = (folder.path().join("partial"), folder.path().join("target"));
    std::fs::write(&partial, &content[..content.len() / 2])?;
    let pulled = client.pull_manifest(&reference.clone().with_digest(resolved.digest)).await?;
    let Content::Image(image) = pulled.parse()? else { return Err("expected an image manifest".into()) };
    client.pull_blob_to_file(repository, &image.layers[0], &partial, &target, None).await?;
    println!("pulled, resumed at the half: {}", Digest::of(&std::fs::read(&target)?) == layer.digest);
    Ok(())
}
