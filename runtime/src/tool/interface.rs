//! How a tool behaves: the partitions of the Agent Tool interface (version 0.2.0), each field a [`Fact`]. The names are
//! the standard's; what it leaves to a runtime and we add is marked so. The tool's own name, description and arguments
//! stand in [`Tool`](super::Tool).

use serde_json::Value;

use super::bounds;
use super::fact::{Basis, Fact, Row, Stated};
use super::resource::{Resource, ValueRule};
use super::word::words;

/// Declares the partitions: for each a struct of facts, and for all of them one way to state a field and to list them.
macro_rules! partitions {
    ($($(#[$doc:meta])* $partition:ident: $Partition:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $default:expr,)*
    })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $Partition {
            $($(#[$field_doc])* pub $field: Fact<$kind>,)*
        })*

        /// How a tool behaves, by partition.
        #[derive(Debug, Clone)]
        pub struct Interface {
            $($(#[$doc])* pub $partition: $Partition,)*
        }

        impl Default for Interface {
            /// Nothing is stated: every field at its safe default.
            fn default() -> Self {
                Self { $($partition: $Partition { $($field: Fact::default($default),)* },)* }
            }
        }

        impl Interface {
            /// The names of the fields that can be stated.
            pub const FIELDS: &'static [&'static str] = &[$($(stringify!($field),)*)*];

            /// The partition that a field belongs to, if there is such a field.
            pub fn partition(field: &str) -> Option<&'static str> {
                match field {
                    $($(stringify!($field) => Some(stringify!($partition)),)*)*
                    _ => None,
                }
            }

            /// States a field; `Ok(false)` where no field has this name.
            ///
            /// # Errors
            ///
            /// A text without the place, where the value is not of the field's kind.
            pub fn state(&mut self, field: &str, value: Value) -> Result<bool, String> {
                bounds::check(Self::partition(field), field, &value)?;
                match field {
                    $($(stringify!($field) => {
                        let wanted = <$kind as Stated>::WANTED;
                        let text = value.to_string();
                        let value = <$kind as Stated>::read(value)
                            .ok_or_else(|| format!("{field} must be {wanted}, found {}", clip(&text)))?;
                        self.$partition.$field = Fact { value, basis: Basis::Declared };
                        Ok(true)
                    })*)*
                    _ => Ok(false),
                }
            }

            /// Takes what `other` declares wherever nothing is declared here.
            pub(crate) fn fill(&mut self, other: &Self) {
                $($(if self.$partition.$field.basis != Basis::Declared
                    && other.$partition.$field.basis == Basis::Declared
                {
                    self.$partition.$field = other.$partition.$field.clone();
                })*)*
            }

            /// Every field in order.
            pub fn rows(&self) -> Vec<Row> {
                vec![$($(Row {
                    partition: stringify!($partition),
                    field: stringify!($field),
                    value: serde_json::to_value(&self.$partition.$field.value).unwrap_or_default(),
                    basis: self.$partition.$field.basis,
                },)*)*]
            }
        }
    };
}

partitions! {
    /// Who it is.
    identity: Identity {
        /// Its identifier in records; empty means `NAMESPACE.NAME`.
        tool_id: String = String::new(),
        /// Other names under which it can be called.
        aliases: Vec<String> = Vec::new(),
        /// The space in which its name is unique.
        namespace: String = "toolcrib".to_owned(),
        /// What other systems call it: an object, from system to identifier.
        native_ids: Option<Value> = None,
        /// Its name for people.
        user_facing_name: Option<String> = None,
    }
    /// How it is found.
    discovery: Discovery {
        /// Words by which a search finds it.
        search_hint: Option<String> = None,
        /// What it is for, in the operator's own terms.
        capability_refs: Vec<String> = Vec::new(),
        /// Whether the model sees its schema.
        schema_visibility: Visibility = Visibility::Loaded,
        /// Whether the model is shown it only after a search.
        should_defer: bool = false,
        /// Whether the model is always shown it.
        always_load: bool = false,
    }
    /// What goes in and what comes out.
    schemas: Schemas {
        /// The schema that the model is shown; absent, the tool's parameters without their internal fields.
        model_input_schema: Option<Value> = None,
        /// The schema of what the tool gets; absent, the tool's parameters.
        runtime_input_schema: Option<Value> = None,
        /// The schema of the answer: an answer that breaks it is a bad result.
        output_schema: Option<Value> = None,
        /// Whether arguments that the schema does not name are refused.
        strict: bool = false,
    }
    /// Whether it can be used.
    availability: Availability {
        /// Whether it may be listed and called.
        is_enabled: bool = true,
        /// What has to be set up first; a tool that says something here cannot be called.
        requires_setup: Option<String> = None,
        /// Names of the variables without which it cannot work.
        required_credentials: Vec<String> = Vec::new(),
        /// What it wants of a model.
        model_requirements: Vec<String> = Vec::new(),
        /// Features that have to be switched on.
        feature_gate_refs: Vec<String> = Vec::new(),
    }
    /// What is checked before it runs.
    validation: Validation {
        /// How the arguments' schema is understood.
        schema_validation: String = "json-schema-2020-12".to_owned(),
        /// Rules over the arguments' values.
        value_validation: Vec<ValueRule> = Vec::new(),
        /// Which arguments name files or hosts.
        io_preflight_validation: Vec<Resource> = Vec::new(),
        /// Whether a resource outside the grant is refused before the tool starts.
        deny_before_io: bool = true,
    }
    /// What it can do to the world.
    safety: Safety {
        /// Whether it changes nothing. A tool that declares this is granted nothing to write.
        is_read_only: bool = false,
        /// Whether what it changes cannot be had back.
        is_destructive: bool = false,
        /// Whether it reaches what is outside this machine.
        is_open_world: bool = true,
        /// Whether several calls of it can run at once.
        is_concurrency_safe: bool = false,
        /// Whether a person has to agree to each call.
        requires_user_interaction: bool = false,
        /// What holds it.
        sandbox_profile: String = "wasi-component".to_owned(),
        /// What a classifier is given to judge a call by: a template over the arguments.
        classifier_input: String = String::new(),
    }
    /// Who may call it.
    permission: Permission {
        /// The profile in the exported records; empty means one of its own.
        permission_profile_ref: String = String::new(),
        /// The argument by which rules tell its calls apart.
        permission_matcher: Option<String> = None,
        /// Where a person is asked.
        permission_channel: String = "terminal".to_owned(),
        /// A decision that was made for all its calls.
        decision_ref: Option<String> = None,
        /// How much harm a call can do (ours).
        risk_level: Risk = Risk::Medium,
        /// Why a person has to agree to each call, where one has to (ours).
        approval_reason: Option<String> = None,
    }
    /// How it runs.
    execution: Execution {
        /// The profile in the exported records; empty means one of its own.
        execution_profile_ref: String = String::new(),
        /// The longest that a call may take, in milliseconds; absent, the limits decide.
        timeout_ms: Option<usize> = None,
        /// What remains of a call that is stopped.
        abort_semantics: String = "stopped at once; what it wrote stays".to_owned(),
        /// What happens to a call that runs when somebody interrupts.
        interrupt_behavior: Interrupt = Interrupt::Block,
        /// What its failure means to the other calls of its step; absent, the step decides (ours).
        sibling_failure_policy: Option<SiblingFailure> = None,
        /// The schema of its progress.
        progress_schema: Option<Value> = None,
        /// Whether it may change the conversation.
        context_modifier_policy: String = "forbid".to_owned(),
    }
    /// What becomes of its answer.
    result: ResultRules {
        /// How output becomes an answer.
        result_mapper: String = "one-line-of-json".to_owned(),
        /// The most characters that the model is given whole.
        max_inline_chars: usize = 64 << 10,
        /// What becomes of a longer answer.
        persistence_policy_ref: Persistence = Persistence::PreviewAndPersist,
        /// What the model is told where the tool wrote nothing.
        empty_result_policy: EmptyResult = EmptyResult::Object,
        /// Names of the operator's masks that its answers pass through.
        redaction_policy_refs: Vec<String> = Vec::new(),
    }
    /// How a call of it is shown: templates in which `{argument}` stands for the argument of that name.
    rendering: Rendering {
        /// The call in one line.
        ui_summary: Option<String> = None,
        /// What it does while it runs.
        activity_description: Option<String> = None,
        /// How its progress is shown.
        progress_render_hint: Option<String> = None,
        /// The line of a call that was refused.
        rejected_render_hint: Option<String> = None,
        /// The line of a call that failed.
        error_render_hint: Option<String> = None,
        /// The words under which a transcript finds the call.
        transcript_search_text: Option<String> = None,
    }
}

words! {
    /// Whether a model sees a tool's schema.
    Visibility {
        /// From the start.
        Loaded = "loaded",
        /// After a search.
        Deferred = "deferred",
        /// Never: only the host calls it.
        Internal = "internal",
        /// It is defined elsewhere.
        NativeRef = "native_ref",
    }
    /// How much harm a call can do.
    Risk {
        /// Nothing that stays.
        Low = "low",
        /// Something that can be undone.
        Medium = "medium",
        /// Something that cannot.
        High = "high",
        /// Something that must not happen unseen.
        Critical = "critical",
    }
    /// What an interruption does to a call that runs.
    Interrupt {
        /// It is stopped.
        Cancel = "cancel",
        /// It may end.
        Block = "block",
    }
    /// What the failure of a call means to the others of its step.
    SiblingFailure {
        /// Nothing.
        Ignore = "ignore",
        /// They are all cancelled.
        CancelSiblings = "cancel_siblings",
        /// Those that wait for it are cancelled.
        CancelDependent = "cancel_dependent",
    }
    /// What becomes of an answer that is too long to be told whole.
    Persistence {
        /// It is told whole nevertheless.
        Inline = "inline",
        /// The model gets a part and a reference to the whole.
        PreviewAndPersist = "preview_and_persist",
        /// The model gets the reference alone.
        RefOnly = "ref_only",
        /// It is not told, and the model is told why.
        DropWithReason = "drop_with_reason",
        /// The model gets a part; the whole is kept nowhere.
        NeverPersist = "never_persist",
    }
    /// What the model is told where a tool wrote nothing.
    EmptyResult {
        /// An empty object, which is the rule of command tools.
        Object = "object",
        /// That nothing was written.
        Note = "note",
        /// That the call has failed.
        Error = "error",
    }
}

impl Interface {
    /// Takes what follows from a proof that the tool can change nothing: its calls can run together and be cut off
    /// anywhere.
    pub(crate) fn infer_read_only(&mut self) {
        if !(self.safety.is_destructive.value && self.safety.is_destructive.basis == Basis::Declared) {
            self.safety.is_read_only.infer(true);
        }
        if !self.safety.is_read_only.value {
            // Its source knows of something that it changes.
            return;
        }
        self.safety.is_destructive.infer(false);
        self.safety.is_concurrency_safe.infer(true);
        self.execution.interrupt_behavior.infer(Interrupt::Cancel);
        self.permission.risk_level.infer(Risk::Low);
    }
}

/// The start of a long text.
fn clip(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_states_is_safe() {
        let interface = Interface::default();
        let safety = &interface.safety;
        assert!(!safety.is_concurrency_safe.value && !safety.is_read_only.value && !safety.is_destructive.value);
        assert!(safety.is_open_world.value && !safety.requires_user_interaction.value);
        assert_eq!(interface.execution.interrupt_behavior.value, Interrupt::Block);
        assert_eq!(safety.classifier_input.value, "");
        assert!(interface.rows().iter().all(|row| row.basis == Basis::Default));
    }

    #[test]
    fn a_stated_field_is_declared_and_stands_against_inference() {
        let mut interface = Interface::default();
        assert_eq!(interface.state("is_read_only", json!("false")), Ok(true));
        interface.safety.is_read_only.infer(true);
        assert_eq!(interface.safety.is_read_only, Fact { value: false, basis: Basis::Declared });
        assert_eq!(interface.state("no_such_field", json!(1)), Ok(false));
    }

    #[test]
    fn a_wrong_value_is_an_error_that_names_it() {
        let mut interface = Interface::default();
        let error = interface.state("is_destructive", json!("when it rains")).unwrap_err();
        assert_eq!(error, "is_destructive must be true or false, found \"when it rains\"");
        let error = interface.state("interrupt_behavior", json!("explode")).unwrap_err();
        assert_eq!(error, "interrupt_behavior must be `cancel` or `block`, found \"explode\"");
        assert!(interface.state("max_inline_chars", json!(0)).is_err());
    }
}
