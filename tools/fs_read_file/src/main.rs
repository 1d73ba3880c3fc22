//! Tool `fs_read_file`: reads one or several files, or a part of one, by bytes.

mod several;

use std::io::{Read, Seek, SeekFrom};
use std::process::ExitCode;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde::{Deserialize, Serialize};
use toolcrib_guest::{Encoding, Error, PathContext, error, files};

use crate::several::Read as Outcome;

const MAX_LIMIT: u64 = 128 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: Paths,
    #[serde(default)]
    offset: u64,
    #[serde(default = "default_limit")]
    limit: u64,
    #[serde(default)]
    encoding: Encoding,
}

/// One path, or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`path` is neither a path nor a list of paths")]
enum Paths {
    One(String),
    Several(Vec<String>),
}

fn default_limit() -> u64 {
    32 * 1024
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output {
    One(Content),
    Several { files: Vec<Outcome> },
}

/// Content of a file, or of a part of it.
#[derive(Serialize)]
struct Content {
    path: String,
    encoding: Encoding,
    content: String,
    offset: u64,
    /// Number of bytes of the file in `content`.
    bytes: u64,
    /// Size of the whole file.
    size: u64,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, offset, limit, encoding } = args;
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(error!("limit `{limit}` is not between 1 and {MAX_LIMIT}"));
    }
    match path {
        Paths::One(path) => read(path, offset, limit, encoding).map(Output::One),
        Paths::Several(_) if offset > 0 => Err(error!("`offset` is for one path, not for a list of paths")),
        Paths::Several(paths) => several::read_all(paths, limit, encoding).map(|files| Output::Several { files }),
    }
}

/// Reads a part of a file.
fn read(path: String, offset: u64, limit: u64, encoding: Encoding) -> Result<Content, Error> {
    let mut file = files::open(&path)?;
    let size = file.metadata().at("read", &path)?.len();
    if offset > size {
        return Err(error!("offset `{offset}` is past the end of `{path}`, which has {size} bytes"));
    }
    file.seek(SeekFrom::Start(offset)).at("read", &path)?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).at("read", &path)?;
    let more = offset + (bytes.len() as u64) < size;
    let (content, used) = match encoding {
        Encoding::Base64 => (BASE64_STANDARD.encode(&bytes), bytes.len()),
        Encoding::Utf8 => {
            let text = text(&bytes, more).map_err(|problem| error!("read `{path}`: {problem}"))?;
            (text.into(), text.len())
        }
    };
    let end = offset + used as u64;
    let truncated = end < size;
    Ok(Content {
        path,
        encoding,
        content,
        offset,
        bytes: used as u64,
        size,
        truncated,
        next_offset: truncated.then_some(end),
    })
}

/// Text of `bytes`, without a last character that the limit has cut, which is only possible if `more` of the file
/// follows.
fn text(bytes: &[u8], more: bool) -> Result<&str, String> {
    let error = match str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let valid = error.valid_up_to();
    let cut = error.error_len().is_none() && more;
    match str::from_utf8(&bytes[..valid]) {
        Ok(text) if cut && valid > 0 => Ok(text),
        _ if cut => Err("the limit is smaller than the character at the offset".into()),
        _ if bytes[0] & 0b1100_0000 == 0b1000_0000 => {
            Err("the offset is inside a character, or the file is not UTF-8 text; set `encoding` to `base64` to read its bytes".into())
        }
        _ => Err("the file is not UTF-8 text; set `encoding` to `base64` to read its bytes".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_cut_by_the_limit_is_left_for_the_next_call() {
        assert_eq!(text("aé".as_bytes(), false), Ok("aé"));
        assert_eq!(text(&"aé".as_bytes()[..2], true), Ok("a"));
    }

    #[test]
    fn a_character_cut_by_the_end_of_the_file_is_not_text() {
        assert!(text(&"aé".as_bytes()[..2], false).is_err());
        assert!(text(&"é".as_bytes()[..1], true).is_err());
    }
}
