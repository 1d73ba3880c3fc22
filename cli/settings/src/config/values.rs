//! Check of a settings file's values as the options that they are the defaults of, before the file is written: a value
//! that an option refuses would stop every later command.

use anyhow::bail;
use clap::error::ErrorKind;
use clap::{ArgMatches, Command};

use super::defaults::defaulted;
use super::layer::Layer;
use super::layer_kind::LayerKind;
use super::layers::Layers;

/// Command whose options include all permissions, and that needs no argument.
const PERMISSIONS: &str = "list";

/// Parses a layer's values as option values for each command, and returns the options of `PERMISSIONS`.
///
/// # Errors
///
/// The first value that an option refuses.
pub fn check_values(mut layer: Layer, program: &Command) -> anyhow::Result<Option<ArgMatches>> {
    if layer.kind == LayerKind::Project {
        layer.confine()?;
    }
    let layers = Layers::of(layer);
    let mut permissions = None;
    for command in program.get_subcommands() {
        let name = command.get_name();
        let defaulted = defaulted(command.clone().no_binary_name(true), &layers);
        match defaulted.try_get_matches_from(std::iter::empty::<&str>()) {
            Ok(matches) if name == PERMISSIONS => permissions = Some(matches),
            Err(error) if matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) => {
                let text = error.render().to_string();
                bail!("{}", text.lines().next().unwrap_or_default().trim_start_matches("error: "));
            }
            _ => {}
        }
    }
    Ok(permissions)
}
