//! Context of the model: how full it is, and its compaction. The tokens are those that the server counted last, with an
//! estimate for what came after; without a count, all of them are an estimate.

use anyhow::bail;
use toolcrib_base::render::Advice;

use super::compaction::{self, Compaction};
use super::conversation::Conversation;
use super::event::Event;
use super::hooks;
use super::message::Message;
use super::turn::{LENGTH, Turn, Usage};
use super::{Agent, unless_interrupted};

/// Bytes of a message in one token, as an estimate.
const TOKEN_BYTES: u64 = 4;
/// Percentage of the window at which the user is warned.
const WARN_AT: u64 = 80;
/// Percentage of the window that stays as it is after a compaction; of the conversation where no window is known.
const KEPT: u64 = 25;

/// Estimates the tokens of a message.
pub(crate) fn tokens_of(message: &Message) -> u64 {
    serde_json::to_vec(message).map_or(0, |bytes| (bytes.len() as u64).div_ceil(TOKEN_BYTES))
}

/// Count of the tokens in the context.
#[derive(Debug, Default)]
pub(crate) struct ContextCount {
    /// Tokens that the server counted, and the number of messages that they are about.
    counted: Option<(u64, usize)>,
    is_warned: bool,
    /// `true` after a compaction failed: another one is made only if a person asks for it.
    has_failed: bool,
}

impl ContextCount {
    /// Notes the tokens that a server counted for a request and its answer, which `messages` messages are.
    pub(crate) fn note(&mut self, usage: Usage, messages: usize) {
        self.counted = Some((usage.prompt_tokens.saturating_add(usage.completion_tokens), messages));
    }

    /// Forgets what was counted, after the conversation became shorter.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Use of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextUse {
    /// Tokens in the context.
    pub(crate) tokens: u64,
    /// `true` if no server counted them.
    pub(crate) is_estimate: bool,
    /// Tokens that fit.
    pub(crate) window: Option<u64>,
}

impl ContextUse {
    fn percent(self) -> Option<u64> {
        self.window.map(|window| self.tokens.saturating_mul(100) / window.max(1))
    }

    /// Describes the use.
    pub(crate) fn in_words(self) -> String {
        let estimate = if self.is_estimate { ", estimated from its size" } else { "" };
        match (self.window, self.percent()) {
            (Some(window), Some(percent)) => format!("{} of {window} tokens ({percent} %{estimate})", self.tokens),
            _ => format!("{} tokens{estimate}; `model.context_window` is not set", self.tokens),
        }
    }
}

/// Sizes before and after a compaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compacted {
    pub(crate) messages: usize,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

impl Agent {
    /// Returns how full the context is.
    pub(crate) fn context(&self) -> ContextUse {
        let sent = self.conversation.sent();
        let (counted, messages) =
            self.context.counted.filter(|(_, messages)| *messages <= sent.len()).unwrap_or_default();
        ContextUse {
            tokens: counted.saturating_add(compaction::tokens(&sent[messages..])),
            is_estimate: counted == 0,
            window: self.options.limits.window,
        }
    }

    /// Compacts the conversation if its context is as full as the setting says, or warns once that it fills; `false` if the run
    /// is interrupted meanwhile.
    pub(super) async fn watch_context(&mut self) -> anyhow::Result<bool> {
        if self.options.limits.window.is_none() {
            return Ok(true);
        }
        let full = self.context();
        let (percent, limit) = (full.percent().unwrap_or_default(), self.options.limits.compact_at);
        if limit > 0 && percent >= limit && !self.context.has_failed {
            match self.compact_unless_interrupted().await {
                Ok(None) => return Ok(false),
                Ok(Some(_)) => return Ok(true),
                Err(error) => {
                    self.context.has_failed = true;
                    self.report.warn(&format!("the conversation is not compacted: {error:#}"))?;
                }
            }
        } else if percent >= WARN_AT && !self.context.is_warned {
            self.context.is_warned = true;
            let way = if self.report.is_chat() { "; `/compact` makes room" } else { "" };
            self.report.warn(&format!("the context of the model fills: {}{way}", full.in_words()))?;
        }
        Ok(true)
    }

    /// Compacts the conversation; `None` if the run is interrupted first.
    pub(crate) async fn compact_unless_interrupted(&mut self) -> anyhow::Result<Option<Compacted>> {
        let compacted = unless_interrupted(self.compact()).await;
        // An interruption leaves the spinner.
        self.report.end_answer();
        compacted
    }

    /// Lets the model summarize the older part of the conversation, and continues with the summary in its place.
    ///
    /// # Errors
    ///
    /// Nothing can be replaced, or the model gives no summary that is shorter. The conversation is then as before.
    async fn compact(&mut self) -> anyhow::Result<Compacted> {
        let before = self.context();
        let kept = before.window.unwrap_or(before.tokens).saturating_mul(KEPT) / 100;
        let messages = self.conversation.messages();
        let earlier = self.conversation.replaced();
        let Some(until) = compaction::replaced(messages, earlier, kept) else {
            bail!(Advice::new("no older messages to replace", "the newest messages stay as they are"));
        };
        let of_system = messages.iter().take_while(|message| message.role.is_system()).count();
        let older = &messages[earlier.max(of_system)..until];
        let (count, size) = (older.len(), compaction::tokens(&self.conversation.sent()));
        let question = compaction::question(self.conversation.compaction(), older.iter());
        let summary = self.summary(Conversation::new(question)).await?;
        let sent = compaction::with_summary(self.conversation.messages(), until, &summary);
        if compaction::tokens(&sent) >= size {
            bail!("the summary is not shorter than what it would replace");
        }
        self.conversation.compact(until, summary);
        self.context.forget();
        self.keep()?;
        let compacted = Compacted { messages: count, before: before.tokens, after: self.context().tokens };
        let Compacted { messages, before, after } = compacted;
        self.report.emit(&Event::Compacted { messages, before, after })?;
        Ok(compacted)
    }

    /// Asks the model for a summary, like for every other answer: within the budgets, and with the hooks of requests.
    async fn summary(&mut self, question: Conversation) -> anyhow::Result<String> {
        self.options.budget.check_counted()?;
        if let Some(used_up) = self.options.budget.used_up(0) {
            bail!("{used_up}");
        }
        let step = self.totals.steps;
        hooks::asking(&self.session, &self.options, &question, step).await?;
        let mut request = self.options.request(question.messages(), &[]);
        (request.stream, request.stream_usage, request.reasoning) = (false, false, false);
        self.report.begin_answer(&self.options.model);
        let answered = self.model.answer(request, step, &mut self.report).await;
        self.report.end_answer();
        let turn = answered?;
        self.spend(turn.usage)?;
        let reviewed = hooks::answered(&self.session, step, &turn).await?;
        let text = self.report_hooks("model.post", reviewed)?;
        let Turn { calls, finish, .. } = turn;
        match (calls.is_empty(), text.trim(), finish.as_deref()) {
            (false, ..) => bail!("the model called a tool instead of writing a summary"),
            (_, "", _) => bail!("the model returned no summary"),
            (_, _, Some(LENGTH)) => bail!("the summary was cut at the server's token limit"),
            (_, summary, _) => Ok(summary.to_owned()),
        }
    }
}

impl Compaction {
    /// Returns `true` if a conversation that is cut to its first `messages` still has all that the summary is about.
    pub(crate) fn survives(&self, messages: usize) -> bool {
        messages >= self.messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_use_of_the_context_says_whether_it_was_counted() {
        let full = ContextUse { tokens: 850, is_estimate: false, window: Some(1000) };
        assert_eq!((full.percent(), full.in_words().as_str()), (Some(85), "850 of 1000 tokens (85 %)"));
        let estimate = ContextUse { is_estimate: true, ..full };
        assert_eq!(estimate.in_words(), "850 of 1000 tokens (85 %, estimated from its size)");
        let unknown = ContextUse { window: None, ..estimate };
        assert_eq!(unknown.percent(), None);
        assert_eq!(unknown.in_words(), "850 tokens, estimated from its size; `model.context_window` is not set");
    }
}
