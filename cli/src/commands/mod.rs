//! The commands, one file each: the arguments, then a call into the library. This file only lists them.

pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod build;
pub(crate) mod bundle;
pub(crate) mod cache;
pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod compile_worker;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod console;
pub(crate) mod describe;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod outdated;
pub(crate) mod pull;
pub(crate) mod push;
mod remote;
pub(crate) mod remove;
pub(crate) mod result;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod secret;
pub(crate) mod sign;
pub(crate) mod stage;
pub(crate) mod test;
pub(crate) mod trust;
mod undo;
pub(crate) mod update;
pub(crate) mod validate;
pub(crate) mod verify;
pub(crate) mod worker;

use std::process::ExitCode;

/// Declares the commands by their names and arguments.
macro_rules! commands {
    ($($(#[$meta:meta])* $name:literal => $command:ident($args:ty),)*) => {
        /// Commands of the program.
        #[derive(clap::Subcommand)]
        pub(crate) enum Command { $($(#[$meta])* #[command(name = $name)] $command($args),)* }

        impl Command {
            /// Returns the definition of the command with this name, if any.
            pub(crate) fn define(name: &str) -> Option<clap::Command> {
                match name {
                    $($name => Some(<$args as clap::Args>::augment_args(clap::Command::new($name))),)*
                    _ => None,
                }
            }
        }
    };
}

commands! {
    "run" => Run(run::Args),
    "chat" => Chat(chat::Args),
    "runs" => Runs(runs::Args),
    "console" => Console(console::Args),
    "call" => Call(call::Args),
    "list" => List(list::Args),
    "inspect" => Inspect(inspect::Args),
    "mcp" => Mcp(mcp::Args),
    "worker" => Worker(worker::Args),
    "fleet" => Fleet(fleet::Args),
    "stage" => Stage(stage::Args),
    "undo" => Undo(undo::Args),
    "result" => Result(result::Args),
    "schema" => Schema(schema::Args),
    "validate" => Validate(validate::Args),
    "init" => Init(init::Args),
    "new" => New(new::Args),
    "build" => Build(build::Args),
    "test" => Test(test::Args),
    "describe" => Describe(describe::Args),
    "bundle" => Bundle(bundle::Args),
    "install" => Install(install::Args),
    "update" => Update(update::Args),
    "outdated" => Outdated(outdated::Args),
    "remove" => Remove(remove::Args),
    "trust" => Trust(trust::Args),
    "push" => Push(push::Args),
    "pull" => Pull(pull::Args),
    "login" => Login(login::Args),
    "logout" => Logout(login::LogoutArgs),
    "key" => Key(key::Args),
    "sign" => Sign(sign::Args),
    "verify" => Verify(verify::Args),
    "approvals" => Approvals(approvals::Args),
    "secret" => Secret(secret::Args),
    "config" => Config(config::Args),
    "cache" => Cache(cache::Args),
    "audit" => Audit(audit::Args),
    "export" => Export(export::Args),
    "doctor" => Doctor(doctor::Args),
    "completions" => Completions(completions::Args),
    #[command(hide = true)]
    "compile-worker" => CompileWorker(compile_worker::Args),
}

impl Command {
    /// Reports an error that prevents the command from starting, in the form of its output.
    pub(crate) fn refuse(&self, error: &anyhow::Error) -> ExitCode {
        match self {
            Command::Run(args) => run::refuse(args, error),
            Command::Call(args) => call::refuse(args, error),
            _ => {}
        }
        toolcrib_base::render::failure(error)
    }

    /// Runs the command.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            // The largest futures, apart from the futures of all other commands.
            Command::Run(args) => Box::pin(run::run(args)).await,
            Command::Chat(args) => Box::pin(chat::run(args)).await,
            Command::Runs(args) => runs::run(&args),
            Command::Console(args) => console::run(args).await,
            Command::Call(args) => call::run(args).await,
            Command::List(args) => list::run(args).await,
            Command::Mcp(args) => mcp::run(args).await,
            Command::Worker(args) => worker::run(args).await,
            Command::Fleet(args) => fleet::run(args).await,
            Command::Stage(args) => stage::run(args).await,
            Command::Undo(args) => undo::run(args).await,
            Command::Inspect(args) => inspect::run(args).await,
            Command::Result(args) => result::run(args),
            Command::Schema(args) => schema::run(args).await,
            Command::Validate(args) => validate::run(args).await,
            Command::Init(args) => init::run(&args),
            Command::New(args) => new::run(args),
            Command::Build(args) => build::run(args).await,
            Command::Test(args) => test::run(args).await,
            Command::Describe(args) => describe::run(args).await,
            Command::Bundle(args) => bundle::run(args).await,
            Command::Install(args) => install::run(args).await,
            Command::Update(args) => update::run(args).await,
            Command::Outdated(args) => outdated::run(args).await,
            Command::Remove(args) => remove::run(args),
            Command::Trust(args) => trust::run(args).await,
            Command::Push(args) => push::run(args).await,
            Command::Pull(args) => pull::run(args).await,
            Command::Login(args) => login::run(args).await,
            Command::Logout(args) => login::log_out(args).await,
            Command::Key(args) => key::run(args).await,
            Command::Sign(args) => sign::run(args).await,
            Command::Verify(args) => verify::run(args).await,
            Command::Approvals(args) => approvals::run(args).await,
            Command::Secret(args) => secret::run(args).await,
            Command::Config(args) => config::run(args).await,
            Command::Cache(args) => cache::run(args).await,
            Command::Audit(args) => audit::run(args).await,
            Command::Export(args) => export::run(args).await,
            Command::Doctor(args) => doctor::run(args).await,
            Command::Completions(args) => completions::run(args),
            Command::CompileWorker(args) => compile_worker::run(&args),
        }
    }
}
