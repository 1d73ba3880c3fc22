//! Programs of a package: fetched by its package manager, which runs nothing of the package, and checked by their digests.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tokio::process::Command;
use toolcrib::source::digest;
use toolcrib_base::progress;
use toolcrib_base::render::{self, Advice};

use super::recipe::{Encoding, Program, Recipe, Registry};

/// Maximum size of a program or of its file in bytes.
const MAX_PROGRAM: u64 = 256 << 20;
/// Time limit of a package manager.
const MAX_TIME: Duration = Duration::from_mins(10);
/// Maximum number of lines of a package manager's errors that are shown.
const MAX_LINES: usize = 6;
/// Script that decodes [`Encoding::Z85Brotli`].
const DECODE: &str = include_str!("decode.js");

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
        Some(path) if path.is_dir() => path.to_path_buf(),
        Some(file) => return one_file(recipe, file),
        None if offline => {
            let message =
                format!("the package of `{}` is not stored, and --offline connects to no registry", recipe.name);
            return Err(Advice::new(message, "name its files with `--from=PATH`").into());
        }
        None => fetch(recipe, folder).await?,
    };
    let mut programs = Vec::with_capacity(recipe.programs.len());
    for program in &recipe.programs {
        programs.push(read(recipe, program, &files.join(&program.file)).await?);
    }
    Ok(programs)
}

/// Takes the only program of a recipe from a file.
fn one_file(recipe: &Recipe, file: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let [program] = recipe.programs.as_slice() else {
        let message =
            format!("`{}` has {} programs, but `{}` is one file", recipe.name, recipe.programs.len(), file.display());
        return Err(Advice::new(message, "name a folder with the files of the package").into());
    };
    let bytes = bytes_of(file)?;
    check(recipe, program, &bytes, file)?;
    Ok(vec![bytes])
}

/// Fetches the package into a folder, and returns the folder of its files.
async fn fetch(recipe: &Recipe, folder: &Path) -> anyhow::Result<PathBuf> {
    let (name, version) = (&recipe.package.name, &recipe.package.version);
    let registry = recipe.package.registry;
    let doing = format!("fetching {name} {version} from {}", registry.as_str());
    match registry {
        Registry::Npm => {
            let arguments = [
                "install",
                "--prefix=.",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--no-save",
                "--no-package-lock",
                "--omit=dev",
                "--omit=optional",
                "--omit=peer",
                &format!("{name}@{version}"),
            ];
            let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
            run(recipe, doing, &[program], &arguments, folder).await?;
            Ok(folder.join("node_modules").join(name))
        }
        Registry::Pypi => {
            let arguments = [
                "-m",
                "pip",
                "install",
                "--no-deps",
                "--no-compile",
                "--only-binary=:all:",
                "--ignore-requires-python",
                "--disable-pip-version-check",
                "--target=files",
                &format!("{name}=={version}"),
            ];
            run(recipe, doing, &["python3", "python"], &arguments, folder).await?;
            Ok(folder.join("files"))
        }
    }
}

/// Runs the first of these programs that exists. It runs in a folder of its own, so that no settings or modules of the current
/// folder apply.
async fn run(
    recipe: &Recipe,
    doing: String,
    programs: &[&str],
    arguments: &[&str],
    folder: &Path,
) -> anyhow::Result<Output> {
    let registry = recipe.package.registry.as_str();
    let found = programs.iter().map(|program| start(program, arguments, folder));
    for started in found {
        let child = match started {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            child => child.with_context(|| format!("cannot start `{}`", programs[0]))?,
        };
        let ended = progress::during(doing, tokio::time::timeout(MAX_TIME, child.wait_with_output())).await;
        let ended = ended.map_err(|_| anyhow!("{registry} did not deliver the package within {MAX_TIME:?}"))??;
        if ended.status.success() {
            return Ok(ended);
        }
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINES).collect();
        let said = lines.into_iter().map(render::one_line).collect::<Vec<_>>().join("\n  ");
        bail!("`{}` of {registry} was not fetched ({}):\n  {said}", recipe.package.name, ended.status);
    }
    let message = format!("`{}` is a package of {registry}, and `{}` is not installed", recipe.name, programs[0]);
    Err(Advice::new(message, format!("install `{}`, or name the package's files with `--from=PATH`", programs[0]))
        .into())
}

fn start(program: &str, arguments: &[impl AsRef<OsStr>], folder: &Path) -> std::io::Result<tokio::process::Child> {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// Reads a program from its file in the package.
async fn read(recipe: &Recipe, program: &Program, file: &Path) -> anyhow::Result<Vec<u8>> {
    let stored = bytes_of(file)?;
    let bytes = match program.encoding {
        Some(Encoding::Z85Brotli) if digest(&stored) != program.digest => decoded(recipe, file).await?,
        _ => stored,
    };
    check(recipe, program, &bytes, file)?;
    Ok(bytes)
}

/// Decodes a program by `node`, which comes with npm and reads the file as text.
async fn decoded(recipe: &Recipe, file: &Path) -> anyhow::Result<Vec<u8>> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let doing = format!("decoding {name}");
    Ok(run(recipe, doing, &["node"], &["--eval", DECODE, &format!("./{name}")], folder).await?.stdout)
}

fn bytes_of(file: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("cannot read `{}`", file.display());
    let mut bytes = Vec::new();
    File::open(file).with_context(failed)?.take(MAX_PROGRAM + 1).read_to_end(&mut bytes).with_context(failed)?;
    if bytes.len() as u64 > MAX_PROGRAM {
        bail!("`{}` has more than the {MAX_PROGRAM} bytes allowed", file.display());
    }
    Ok(bytes)
}

/// Checks that these are the bytes of the program.
fn check(recipe: &Recipe, program: &Program, bytes: &[u8], file: &Path) -> anyhow::Result<()> {
    let found = digest(bytes);
    if found == program.digest {
        return Ok(());
    }
    let message = format!(
        "`{}` is not the program `{}` of the recipe `{}`: it has {found}, and the recipe names {}",
        file.display(),
        program.name,
        recipe.name,
        program.digest
    );
    Err(Advice::new(message, "nothing was installed; a package whose content changed may be an attack").into())
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let file = folder.path().join("dist/area.wasm");
        fs::create_dir(folder.path().join("dist")).unwrap();
        fs::write(&file, "program").unwrap();
        assert_eq!(from(&recipe, folder.path()).await, Ok(vec![b"program".to_vec()]));
        assert_eq!(from(&recipe, &file).await, Ok(vec![b"program".to_vec()]));
        fs::write(&file, "another").unwrap();
        for local in [folder.path(), &file] {
            let refused = from(&recipe, local).await.unwrap_err();
            assert!(refused.contains("is not the program `area`"), "{refused}");
        }
        assert!(from(&recipe, &folder.path().join("none")).await.is_err());
        fs::remove_file(&file).unwrap();
        assert!(from(&recipe, folder.path()).await.is_err());
    }

    #[tokio::test]
    async fn nothing_is_fetched_offline() {
        let folder = tempfile::tempdir().unwrap();
        let refused = programs(&recipe(b""), None, true, folder.path()).await.unwrap_err();
        assert!(render::message(&refused).contains("--offline"), "{refused}");
    }
}
