//! The file of a bundle: written beside its final path, checked by loading it, and then renamed, so that the path holds an
//! earlier file or the whole bundle.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use toolcrib::owner_only;
use toolcrib::source;
use toolcrib_authoring::component::UNFINISHED;
use toolcrib_base::render::{self, Advice};
use toolcrib_base::whole_file::folder_of;
use toolcrib_bundle::{BlobSource, Bundle, BundleBuilder, MediaType, Metadata, WrittenBundle};

use super::contents::{BILL, Contents};

/// File on disk that is opened for each of its readings.
struct OnDisk<'a>(&'a Path);

impl BlobSource for OnDisk<'_> {
    fn reader(&mut self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(File::open(self.0)?))
    }
}

/// Refuses a path at which a bundle cannot be written, or where it would replace a file of another kind.
///
/// # Errors
///
/// The folder does not exist, or the path names a folder or, without `force`, a file that is not a bundle.
pub(super) fn check_target(out: &Path, force: bool) -> anyhow::Result<()> {
    let shown = out.display();
    let folder = folder_of(out);
    let (message, hint) = if out.is_dir() {
        let file = render::shell_path(&out.join("tools.tar"));
        (format!("`{shown}` is a folder"), format!("name a file, such as `-o {file}`"))
    } else if !folder.is_dir() {
        let create = format!("create it with `mkdir -p {}`", render::shell_path(folder));
        (format!("the directory `{}` of `{shown}` does not exist", folder.display()), create)
    } else if !force && out.exists() && !is_bundle(out) {
        let hint = "name another file with `-o`, or replace this one with `--force`".to_owned();
        (format!("`{shown}` exists and is not a bundle"), hint)
    } else {
        return Ok(());
    };
    Err(Advice::new(message, hint).into())
}

/// Returns `true` if a file can be opened as a bundle, whatever its name.
fn is_bundle(path: &Path) -> bool {
    path.is_file() && File::open(path).is_ok_and(|file| Bundle::open(file).is_ok())
}

/// Writes a bundle. A bundle that cannot be loaded changes nothing.
pub(super) fn write(out: &Path, metadata: Metadata, contents: &Contents, bill: &[u8]) -> anyhow::Result<WrittenBundle> {
    let context = || format!("cannot write `{}`", out.display());
    let name = out.file_name().with_context(context)?;
    let unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(folder_of(out)).with_context(context)?;
    let fresh = unfinished.path().join(name);
    let mut file = File::create(&fresh).with_context(context)?;
    let builder = builder(metadata, contents, bill)?;
    let written = builder.write_to(io::BufWriter::new(&mut file)).with_context(context)?;
    file.sync_all().with_context(context)?;
    check(&fresh, out, contents)?;
    owner_only::rename(&fresh, out).with_context(context)?;
    Ok(written)
}

fn builder<'a>(metadata: Metadata, contents: &'a Contents, bill: &'a [u8]) -> anyhow::Result<BundleBuilder<'a>> {
    let mut builder = BundleBuilder::new(metadata)?;
    for (inner, file) in &contents.files {
        let context = || format!("cannot pack `{}`", file.path.display());
        let size = file.path.metadata().with_context(context)?.len();
        builder.add_source(inner, file.media_type.clone(), size, OnDisk(&file.path)).with_context(context)?;
    }
    builder.add_bytes(BILL, MediaType::SBOM, bill)?;
    for tool in &contents.tools {
        builder.add_tool(tool.listed()?);
    }
    for source in &contents.sources {
        builder.add_source_path(source.parse()?);
    }
    Ok(builder)
}

/// Checks that a written bundle defines the same tools as its sources.
fn check(fresh: &Path, out: &Path, contents: &Contents) -> anyhow::Result<()> {
    let shown = |text: String| text.replace(&*fresh.to_string_lossy(), &out.to_string_lossy());
    let hint = "correct the definition; `toolcrib validate` lists every problem of a source";
    let failed = |reason: String| Advice::new(format!("the sources cannot be used as a bundle: {reason}"), hint);
    let loaded = source::load(fresh).map_err(|error| failed(shown(error.to_string())))?;
    let found: BTreeSet<_> = loaded.tools.iter().map(|tool| tool.name.as_str()).collect();
    let packed: BTreeSet<_> = contents.tools.iter().map(|packed| packed.tool.name.as_str()).collect();
    match found.symmetric_difference(&packed).next() {
        None => Ok(()),
        Some(name) => Err(failed(format!("tool `{name}` is only in the sources or only in the bundle")).into()),
    }
}
