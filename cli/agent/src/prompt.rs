//! Options for the initial messages: the prompt, the messages before it, or a saved conversation.

use std::path::{Path, PathBuf};

use toolcrib::flow::Label;
use toolcrib::tool::Access;
use toolcrib::{Builder, Runtime};
use toolcrib_base::input;
use toolcrib_base::render::usage_error;

use crate::runs::KeptRun;

use super::attachment::{self, MAX_TEXT};
use super::conversation::Conversation;
use super::message::{Message, Role};
use super::script::Script;

const MESSAGES: &str = "Messages";
/// Message of the user after an answer that broke off, if there is no prompt.
const GO_ON: &str = "Go on.";

/// Content of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinUse {
    /// Text of the conversation.
    Text,
    /// Answers to questions of the run, so no text.
    Answers,
    /// Messages of a chat, so no prompt is needed.
    Messages,
}

/// Options for the initial messages and for the conversation file.
#[derive(Debug, clap::Args)]
pub struct PromptOptions {
    /// The prompt, or `-` for standard input; piped text is added to a prompt
    #[arg(value_name = "PROMPT")]
    text: Option<String>,
    /// The prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = MESSAGES)]
    prompt: Option<String>,
    /// File with the prompt, or `-` for standard input
    #[arg(long, value_name = "FILE", help_heading = MESSAGES)]
    prompt_file: Option<PathBuf>,
    /// Add a text file or an image (PNG, JPEG, GIF, WebP) to the prompt; repeatable
    #[arg(long, value_name = "FILE", help_heading = MESSAGES)]
    attach: Vec<PathBuf>,
    /// The system message
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = MESSAGES)]
    system: Option<String>,
    /// File with the system message, or `-` for standard input
    #[arg(long, value_name = "FILE", help_heading = MESSAGES)]
    system_file: Option<PathBuf>,
    /// Developer message, after the system message; repeatable
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = MESSAGES)]
    developer: Vec<String>,
    /// Continue the conversation saved in this file
    #[arg(long, value_name = "FILE", help_heading = MESSAGES)]
    load_messages: Option<PathBuf>,
    /// Save the conversation to this file, starting before the first request
    #[arg(long, value_name = "FILE", help_heading = MESSAGES)]
    save_messages: Option<PathBuf>,
}

impl PromptOptions {
    /// Creates a conversation, or continues the conversation of an earlier run. In a new one, a script supplies a
    /// missing prompt or system message.
    pub async fn conversation(
        &self,
        script: Option<&Script>,
        stdin: StdinUse,
        earlier: Option<&KeptRun>,
    ) -> anyhow::Result<Conversation> {
        self.check(stdin)?;
        let prompt = match (&self.text, &self.prompt, &self.prompt_file) {
            (Some(dash), ..) if dash == "-" => Some(read(Path::new("-")).await?),
            (Some(text), ..) | (_, Some(text), _) => Some(text.clone()),
            (.., Some(file)) => Some(read(file).await?),
            _ if self.load_messages.is_some() || earlier.is_some() => None,
            _ => script.and_then(|script| script.prompt.clone()),
        };
        let mut conversation = match (&self.load_messages, earlier) {
            (Some(file), _) => Conversation::load(file)?,
            (None, Some(run)) => Conversation::resumed(run),
            (None, None) => Conversation::new(self.before_the_prompt(script).await?),
        };
        let piped = match stdin == StdinUse::Text && self.stdin_texts() == 0 {
            true => piped().await?.filter(|text| !text.trim().is_empty()),
            false => None,
        };
        match (prompt, piped) {
            (Some(prompt), _) if prompt.trim().is_empty() => return Err(usage_error("the prompt is empty")),
            (None, None) if conversation.awaits_model() && self.attach.is_empty() => {}
            (None, None) if conversation.is_broken_off() && stdin != StdinUse::Messages && self.attach.is_empty() => {
                conversation.push_user(Message::text(Role::User, GO_ON));
            }
            (None, None) if stdin == StdinUse::Messages && self.attach.is_empty() => {}
            // The caller decides about a run that has its answer.
            (None, None) if earlier.is_some() && self.attach.is_empty() => {}
            (None, None) => {
                return Err(usage_error(
                    "no prompt: pass PROMPT, `-` for standard input, `--prompt` or `--prompt-file`",
                ));
            }
            (prompt, piped) => {
                let content = attachment::content(prompt.as_deref(), piped.as_deref(), &self.attach)?;
                conversation.push_user(Message::with_content(Role::User, content));
            }
        }
        Ok(conversation.saved_to(self.save_messages.clone()))
    }

    /// Returns the label of the files that are given to the model: nothing is known about loaded messages.
    pub fn label(&self, runtime: &Runtime) -> Label {
        let mut label = Label::default();
        let files = self.attach.iter().chain(&self.prompt_file).chain(&self.system_file);
        for file in files.filter(|file| *file != Path::new("-")) {
            label.join(&runtime.label_of_file(file));
        }
        if let Some(file) = &self.load_messages {
            label.join(&Label::unknown(&format!("messages:{}", file.display())));
        }
        label
    }

    /// Reserves the conversation file, since the next run may start from it, and protects the files that this run reads.
    pub fn keep_apart(&self, builder: Builder) -> Builder {
        let read = [&self.prompt_file, &self.system_file, &self.load_messages];
        let builder = read.into_iter().flatten().fold(builder, Builder::protect);
        let file = self.save_messages.iter();
        file.fold(builder, |builder, file| builder.reserve("saved messages", file, Access::Write))
    }

    async fn before_the_prompt(&self, script: Option<&Script>) -> anyhow::Result<Vec<Message>> {
        let system = match (&self.system, &self.system_file) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(file)) => Some(read(file).await?),
            (None, None) => script.and_then(|script| script.system.clone()),
        };
        let system = system.map(|text| Message::text(Role::System, text));
        let developer = self.developer.iter().map(|text| Message::text(Role::Developer, text));
        Ok(system.into_iter().chain(developer).collect())
    }

    /// Counts the texts that are read from standard input.
    fn stdin_texts(&self) -> usize {
        let sources = [self.text.as_deref().map(Path::new), self.prompt_file.as_deref(), self.system_file.as_deref()];
        sources.into_iter().filter(|source| *source == Some(Path::new("-"))).count()
    }

    fn check(&self, stdin: StdinUse) -> anyhow::Result<()> {
        let given = [
            ("PROMPT", self.text.is_some()),
            ("--prompt", self.prompt.is_some()),
            ("--prompt-file", self.prompt_file.is_some()),
            ("--system", self.system.is_some()),
            ("--system-file", self.system_file.is_some()),
            ("--developer", !self.developer.is_empty()),
            ("--load-messages", self.load_messages.is_some()),
        ];
        let given: Vec<&str> = given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
        let exclusive: [&[&str]; 5] = [
            &["PROMPT", "--prompt", "--prompt-file"],
            &["--system", "--system-file"],
            &["--system", "--load-messages"],
            &["--system-file", "--load-messages"],
            &["--developer", "--load-messages"],
        ];
        for group in exclusive {
            let both: Vec<&str> = group.iter().copied().filter(|name| given.contains(name)).collect();
            if let [first, second, ..] = both[..] {
                return Err(usage_error(format!("{first} and {second} are mutually exclusive")));
            }
        }
        match (self.stdin_texts(), stdin) {
            (0, _) | (1, StdinUse::Text) => {}
            (_, StdinUse::Messages) => {
                return Err(usage_error("standard input holds the messages of the chat: pass the text in a file"));
            }
            (_, StdinUse::Answers) => {
                return Err(usage_error("standard input holds the answers (--answers): pass the text in a file"));
            }
            _ => return Err(usage_error("standard input can be read only once: pass one of the texts in a file")),
        }
        Ok(())
    }
}

/// Reads the text that is piped besides a prompt, if any.
async fn piped() -> anyhow::Result<Option<String>> {
    let hint = "`< /dev/null` adds nothing, and a tool can read a file in parts";
    let read = input::piped(MAX_TEXT).await;
    let read =
        read.map_err(|error| usage_error(format!("cannot add standard input to the prompt: {error}; {hint}")))?;
    Ok(read.map(without_line_break))
}

/// Reads a text from a file or standard input, without the final line break.
async fn read(file: &Path) -> anyhow::Result<String> {
    let read = match file.as_os_str() == "-" {
        true => input::stdin().await,
        false => input::file(file),
    };
    let text = read.map_err(|error| usage_error(format!("cannot read `{}`: {error}", file.display())))?;
    Ok(without_line_break(text))
}

fn without_line_break(mut text: String) -> String {
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    text
}
