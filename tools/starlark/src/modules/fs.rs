//! Module `fs`: files of the granted folders. The sandbox decides about paths; this module limits reads and listings.

use std::fs;
use std::io::{ErrorKind, Write};
use std::time::UNIX_EPOCH;

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::{Heap, Value};
use toolcrib_guest::{PathContext, files};

use super::{Fields, error, fields};

/// Default maximum of a read, in bytes.
const READ_BYTES: i64 = 1 << 20;

/// Maximum of a read, in bytes.
const MAX_READ_BYTES: i64 = 16 << 20;

/// Maximum entries of a listed folder.
const MAX_ENTRIES: usize = 10_000;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Reads the text of a file of at most `max_bytes`.
    fn read(path: &str, #[starlark(default = READ_BYTES)] max_bytes: i64) -> starlark::Result<String> {
        if !(0..=MAX_READ_BYTES).contains(&max_bytes) {
            return Err(error("fs.read", format!("max_bytes must be 0 to {MAX_READ_BYTES}, found {max_bytes}")));
        }
        let size = files::open(path).and_then(|file| Ok(file.metadata().at("read", path)?.len()));
        let size = size.map_err(|what| error("fs.read", what))?;
        if size > max_bytes as u64 {
            return Err(error(
                "fs.read",
                format!("`{path}` is {size} bytes, over the limit of {max_bytes}: max_bytes"),
            ));
        }
        files::read_text(path, max_bytes as u64).map_err(|what| error("fs.read", what))
    }

    /// Replaces a file as a whole, or appends to it.
    fn write<'v>(
        path: &'v str,
        content: &str,
        #[starlark(default = false)] append: bool,
        heap: Heap<'v>,
    ) -> starlark::Result<Fields<'v>> {
        let written = match append {
            true => add(path, content),
            false => files::replace(path, content.as_bytes()),
        };
        written.map_err(|what| error("fs.write", what))?;
        Ok(fields([("path", heap.alloc(path)), ("bytes", heap.alloc(content.len()))]))
    }

    /// Checks if a file or folder exists.
    fn exists(path: &str) -> starlark::Result<bool> {
        match fs::metadata(path) {
            Ok(_) => Ok(true),
            Err(failed) if matches!(failed.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(failed) => Err::<bool, _>(failed).at("look at", path).map_err(|what| error("fs.exists", what)),
        }
    }

    /// Describes a path: `path`, `type` (`file`, `dir`, `symlink` or `other`), `size` and `modified_ms`.
    fn stat<'v>(path: &'v str, heap: Heap<'v>) -> starlark::Result<Fields<'v>> {
        let found = fs::symlink_metadata(path).at("look at", path).map_err(|what| error("fs.stat", what))?;
        let modified = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(fields([
            ("path", heap.alloc(path)),
            ("type", heap.alloc(kind(found.file_type()))),
            ("size", heap.alloc(found.len())),
            ("modified_ms", modified.map_or(Value::new_none(), |time| heap.alloc(time.as_millis() as u64))),
        ]))
    }

    /// Lists the entries of a folder by name: `name`, `type` and `size`.
    fn list<'v>(#[starlark(default = ".")] path: &str, heap: Heap<'v>) -> starlark::Result<Vec<Fields<'v>>> {
        let mut entries = entries(path).map_err(|what| error("fs.list", what))?;
        entries.sort();
        let entry = |(name, kind, size): (String, &str, u64)| {
            fields([("name", heap.alloc(name)), ("type", heap.alloc(kind)), ("size", heap.alloc(size))])
        };
        Ok(entries.into_iter().map(entry).collect())
    }
}

fn add(path: &str, content: &str) -> Result<(), toolcrib_guest::Error> {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path).at("write", path)?;
    file.write_all(content.as_bytes()).at("write", path)
}

fn entries(path: &str) -> Result<Vec<(String, &'static str, u64)>, toolcrib_guest::Error> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).at("list", path)? {
        let entry = entry.at("list", path)?;
        if entries.len() == MAX_ENTRIES {
            return Err(toolcrib_guest::error!("list `{path}`: the folder has more than {MAX_ENTRIES} entries"));
        }
        let found = entry.metadata().at("list", entry.path())?;
        entries.push((entry.file_name().to_string_lossy().into_owned(), kind(found.file_type()), found.len()));
    }
    Ok(entries)
}

fn kind(kind: fs::FileType) -> &'static str {
    if kind.is_file() {
        "file"
    } else if kind.is_dir() {
        "dir"
    } else if kind.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}
