//! Executes one raw operation of `wasi:filesystem` on a granted folder, without the checks of libc, and reports the
//! result or the error code.

use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Error, Value, error, json};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, ErrorCode, NewTimestamp, OpenFlags, PathFlags, filesystem_error_code,
};
use wasip2::io::streams::StreamError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Operation: see [`act`].
    op: String,
    #[serde(default)]
    path: String,
    /// Path that `hard_link` and `rename` create, or target of `symlink`.
    #[serde(default)]
    to: String,
    #[serde(default)]
    text: String,
    /// Granted folder of `path`.
    #[serde(default = "first")]
    root: String,
    /// Granted folder of `to`.
    #[serde(default = "first")]
    to_root: String,
}

fn first() -> String {
    "/".into()
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Value, Error> {
    let roots = get_directories();
    if args.op == "roots" {
        return Ok(json!({ "ok": roots.into_iter().map(|(_, name)| name).collect::<Vec<_>>() }));
    }
    let folder = |name: &str| {
        let found = roots.iter().find(|(_, root)| root == name).map(|(folder, _)| folder);
        found.ok_or_else(|| error!("no folder is granted as `{name}`"))
    };
    let done =
        act(&args, folder(&args.root)?, folder(&args.to_root)?).ok_or_else(|| error!("unknown op `{}`", args.op))?;
    Ok(match done {
        Ok(value) => json!({ "ok": value }),
        Err(code) => json!({ "error": code.name() }),
    })
}

/// Executes the operation; `None` for an unknown one.
fn act(args: &Args, root: &Descriptor, to_root: &Descriptor) -> Option<Result<Value, ErrorCode>> {
    let (path, to) = (args.path.as_str(), args.to.as_str());
    let open = |open, flags| root.open_at(PathFlags::SYMLINK_FOLLOW, path, open, flags);
    let (read, write) = (DescriptorFlags::READ, DescriptorFlags::WRITE);
    let done = |result: Result<(), ErrorCode>| result.map(|()| Value::Null);
    let answer = match args.op.as_str() {
        "open" => open(OpenFlags::empty(), read).map(|_| Value::Null),
        "open_for_write" => open(OpenFlags::empty(), read | write).map(|_| Value::Null),
        "open_for_change" => open(OpenFlags::DIRECTORY, read | DescriptorFlags::MUTATE_DIRECTORY).map(|_| Value::Null),
        "read" => open(OpenFlags::empty(), read)
            .and_then(|file| file.read(1 << 20, 0))
            .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into()),
        "write" => open(OpenFlags::CREATE | OpenFlags::TRUNCATE, write)
            .and_then(|file| file.write(args.text.as_bytes(), 0))
            .map(Value::from),
        "append" => open(OpenFlags::CREATE, write)
            .and_then(|file| file.write(args.text.as_bytes(), file.stat()?.size))
            .map(Value::from),
        "truncate" => open(OpenFlags::TRUNCATE, read).map(|_| Value::Null),
        "set_size" => done(open(OpenFlags::empty(), write).and_then(|file| file.set_size(1 << 40))),
        "write_far" => {
            open(OpenFlags::CREATE, write).and_then(|file| file.write(args.text.as_bytes(), 1 << 40)).map(Value::from)
        }
        "stream_far" => open(OpenFlags::CREATE, write).and_then(|file| stream_far(&file, &args.text)),
        "open_new" => open(OpenFlags::CREATE | OpenFlags::EXCLUSIVE, write).map(|_| Value::Null),
        "open_link" => root.open_at(PathFlags::empty(), path, OpenFlags::empty(), read).map(|_| Value::Null),
        "set_times" => {
            let now = NewTimestamp::Now;
            done(root.set_times_at(PathFlags::SYMLINK_FOLLOW, path, now, now))
        }
        "set_times_of_name" => {
            let now = NewTimestamp::Now;
            done(root.set_times_at(PathFlags::empty(), path, now, now))
        }
        "set_times_of_open" => {
            open(OpenFlags::empty(), read).and_then(|file| done(file.set_times(NewTimestamp::Now, NewTimestamp::Now)))
        }
        "stat" => root.stat_at(PathFlags::empty(), path).map(|stat| stat.size.into()),
        "grow" => open(OpenFlags::empty(), read | write).and_then(|file| {
            file.write(args.text.as_bytes(), file.stat()?.size + 2)?;
            file.read(64, 0).map(|(bytes, _)| String::from_utf8_lossy(&bytes).into())
        }),
        "kinds" => open(OpenFlags::DIRECTORY, read).and_then(|folder| kinds(&folder)),
        "list" => open(OpenFlags::DIRECTORY, read).and_then(|folder| list(&folder)),
        "symlink" => done(root.symlink_at(to, path)),
        "read_link" => root.readlink_at(path).map(Value::from),
        "hard_link" => done(root.link_at(PathFlags::empty(), path, to_root, to)),
        "rename" => done(root.rename_at(path, to_root, to)),
        "mkdir" => done(root.create_directory_at(path)),
        "remove" => done(root.unlink_file_at(path)),
        "remove_folder" => done(root.remove_directory_at(path)),
        _ => return None,
    };
    Some(answer)
}

/// Writes far behind the end, twice: a refused write is refused again.
fn stream_far(file: &Descriptor, text: &str) -> Result<Value, ErrorCode> {
    let stream = file.write_via_stream(1 << 40)?;
    let mut refused = None;
    for _ in 0..2 {
        match stream.blocking_write_and_flush(text.as_bytes()) {
            Err(StreamError::LastOperationFailed(error)) => refused = filesystem_error_code(&error),
            other => return Ok(format!("{other:?}").into()),
        }
    }
    refused.map_or_else(|| Ok("no code".into()), Err)
}

fn list(folder: &Descriptor) -> Result<Value, ErrorCode> {
    let entries = folder.read_directory()?;
    let mut names = Vec::new();
    while let Some(entry) = entries.read_directory_entry()? {
        names.push(entry.name);
    }
    names.sort();
    Ok(names.into())
}

fn kinds(folder: &Descriptor) -> Result<Value, ErrorCode> {
    let entries = folder.read_directory()?;
    let mut kinds = serde_json::Map::new();
    while let Some(entry) = entries.read_directory_entry()? {
        let kind = match entry.type_ {
            DescriptorType::RegularFile => "regular-file",
            DescriptorType::Directory => "directory",
            DescriptorType::SymbolicLink => "symbolic-link",
            _ => "special",
        };
        kinds.insert(entry.name, kind.into());
    }
    Ok(kinds.into())
}
