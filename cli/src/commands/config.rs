//! `toolcrib config`: shows where each setting comes from, and changes the settings files without losing their comments.

mod edit;
mod editor;
mod explain;
mod keys;

use std::path::PathBuf;
use std::process::ExitCode;

use toolcrib_base::render;
use toolcrib_settings::config::schema;

const EXAMPLES: &str = "\
Examples:
  toolcrib config explain                         all settings and their files
  toolcrib config explain limits.max_memory       every layer that has the key
  toolcrib config keys limits                     type and default of each key
  toolcrib config get model.name
  toolcrib config set model.name gpt-5-mini       in your own file
  toolcrib config set --add permissions.deny 'fs_rm(path=*.git*)'
  toolcrib config set --project sources.tools builtin
  toolcrib config set --profile local model.base_url http://localhost:11434/v1
  toolcrib config edit                            opens $VISUAL or $EDITOR
  toolcrib config schema > toolcrib.schema.json   JSON Schema for editors

Layers, the strongest first: options, `--set NAME=VALUE`, environment variables, the project's \
./toolcrib.toml once it is trusted, the profile from --profile or TOOLCRIB_PROFILE, your file, the system's file. Rules, \
denials and tags from all layers add up; for other keys, the strongest value counts.";

/// Show and change settings.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show each setting with the layer, the file and the line that it comes from
    #[command(after_long_help = EXAMPLES)]
    Explain {
        /// Key, such as `limits.max_memory` [default: all keys that are set]
        #[arg(value_name = "KEY")]
        key: Option<String>,
        #[command(flatten)]
        view: View,
    },
    /// Print the value of a key
    #[command(after_long_help = EXAMPLES)]
    Get {
        /// Key, such as `model.name`
        #[arg(value_name = "KEY")]
        key: String,
        #[command(flatten)]
        view: View,
    },
    /// Set a key in your settings file, or in another
    #[command(after_long_help = EXAMPLES)]
    Set {
        /// Key, such as `model.name`
        #[arg(value_name = "KEY")]
        key: String,
        /// Value: text, a number, `true`, `false`, or a list such as `["a", "b"]`
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
        /// Add the value to the list instead of replacing the list
        #[arg(long)]
        add: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a key from your settings file, or from another
    #[command(after_long_help = EXAMPLES)]
    Unset {
        /// Key, such as `model.name`
        #[arg(value_name = "KEY")]
        key: String,
        #[command(flatten)]
        target: Target,
    },
    /// Edit your settings file, or another, in $VISUAL or $EDITOR; a text with a mistake does not replace it
    #[command(after_long_help = EXAMPLES)]
    Edit {
        #[command(flatten)]
        target: Target,
    },
    /// List all keys with their types, defaults and options
    #[command(after_long_help = EXAMPLES)]
    Keys {
        /// Section, such as `limits` [default: all]
        #[arg(value_name = "SECTION")]
        section: Option<String>,
        /// Print a JSON array, one object per key
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the settings files
    #[command(after_long_help = EXAMPLES)]
    Schema,
}

/// Form of what is shown.
#[derive(Debug, clap::Args)]
struct View {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Project settings file instead of ./toolcrib.toml
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
}

/// File to change; without an option the user's.
#[derive(Debug, clap::Args)]
struct Target {
    /// Use ./toolcrib.toml, the file of this project
    #[arg(long, conflicts_with = "system")]
    project: bool,
    /// Use the file of the system
    #[arg(long)]
    system: bool,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Explain { key, view } => explain::explain(key.as_deref(), &view).await,
        Action::Get { key, view } => explain::get(&key, &view),
        Action::Set { key, value, add, target } => edit::set(&target, &key, &value, add).await,
        Action::Unset { key, target } => edit::unset(&target, &key).await,
        Action::Edit { target } => edit::edit(target).await,
        Action::Keys { section, json } => keys::keys(section.as_deref(), json),
        Action::Schema => {
            serde_json::to_string_pretty(&schema())?.lines().try_for_each(render::print)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
