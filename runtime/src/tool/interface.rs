//! Behavior of a tool: the partitions in the Agent Tool interface (version 0.2.0), each field a [`Fact`]. The names
//! come from the standard; fields that toolcrib adds are marked as additions. Name, description and arguments of the
//! tool are fields of [`Tool`](super::Tool).

mod bounds;
mod field_error;
mod vocabulary;

use serde_json::Value;

use super::fact::{Basis, Fact, FactValue, Row};
use super::resource::{Resource, ValueRule};

pub use field_error::FieldError;
pub use vocabulary::{Callers, EmptyResult, Interrupt, Persistence, Risk, SiblingFailure, Visibility};

/// Declares the partitions: one struct of facts each, and one method each for setting and listing all fields.
macro_rules! partitions {
    ($($(#[$doc:meta])* $partition:ident: $Partition:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $default:expr,)*
    })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct $Partition {
            $($(#[$field_doc])* pub $field: Fact<$kind>,)*
        })*

        /// Behavior of a tool, by partition.
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct Interface {
            $($(#[$doc])* pub $partition: $Partition,)*
        }

        impl Default for Interface {
            /// Returns the interface with the safe default in every field.
            fn default() -> Self {
                Self { $($partition: $Partition { $($field: Fact::default($default),)* },)* }
            }
        }

        impl Interface {
            /// Names of the fields that a source can declare.
            pub const FIELDS: &'static [&'static str] = &[$($(stringify!($field),)*)*];

            /// Returns the partition of a field; `None` for an unknown field.
            pub fn partition(field: &str) -> Option<&'static str> {
                match field {
                    $($(stringify!($field) => Some(stringify!($partition)),)*)*
                    _ => None,
                }
            }

            /// Declares the value of a field. Returns `false` for an unknown field.
            ///
            /// # Errors
            ///
            /// [`FieldError`] if the value has another type or exceeds a size limit.
            pub fn declare(&mut self, field: &str, value: Value) -> Result<bool, FieldError> {
                bounds::check(Self::partition(field), field, &value)?;
                match field {
                    $($(stringify!($field) => {
                        let text = value.to_string();
                        let value = <$kind as FactValue>::read(value).ok_or_else(|| FieldError::Type {
                            field: field.to_owned(),
                            expected: <$kind as FactValue>::EXPECTED,
                            found: toolcrib_foundation::text::shown(&text),
                        })?;
                        self.$partition.$field = Fact::declared(value);
                        Ok(true)
                    })*)*
                    _ => Ok(false),
                }
            }

            /// Copies each field that `other` declares and `self` does not.
            pub(crate) fn fill(&mut self, other: &Self) {
                $($(if self.$partition.$field.basis != Basis::Declared
                    && other.$partition.$field.basis == Basis::Declared
                {
                    self.$partition.$field = other.$partition.$field.clone();
                })*)*
            }

            /// Returns every field in order.
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
    /// Identity of the tool.
    identity: Identity {
        /// Identifier in exported Agent Tool records; empty means `NAMESPACE.NAME`.
        tool_id: String = String::new(),
        /// Other names for calls.
        aliases: Vec<String> = Vec::new(),
        /// Namespace in which the name is unique.
        namespace: String = "toolcrib".to_owned(),
        /// Identifiers in other systems: an object from system to identifier.
        native_ids: Option<Value> = None,
        /// Name for people.
        user_facing_name: Option<String> = None,
    }
    /// Discovery of the tool by a model.
    discovery: Discovery {
        /// Additional words for the search for tools.
        search_hint: Option<String> = None,
        /// Capabilities of the tool, in the operator's terms.
        capability_refs: Vec<String> = Vec::new(),
        /// Visibility of the schema to the model.
        schema_visibility: Visibility = Visibility::Loaded,
        /// `true` if the model sees the tool only after a search.
        should_defer: bool = false,
        /// `true` if the model always sees the tool.
        always_load: bool = false,
        /// Callers of the tool where a model can write programs (addition).
        callers: Callers = Callers::Both,
    }
    /// Schemas of arguments and results.
    schemas: Schemas {
        /// Schema for the model; by default the tool's parameters without their internal fields.
        model_input_schema: Option<Value> = None,
        /// Schema of the arguments that the tool receives; by default the tool's parameters.
        runtime_input_schema: Option<Value> = None,
        /// Schema of the result. A result that violates it is a bad result.
        output_schema: Option<Value> = None,
        /// `true` if arguments that the schema does not name are rejected.
        strict: bool = false,
    }
    /// Availability of the tool.
    availability: Availability {
        /// `true` if the tool may be listed and called.
        is_enabled: bool = true,
        /// Required setup. A tool with a text in this field cannot be called.
        requires_setup: Option<String> = None,
        /// Names of required environment variables.
        required_credentials: Vec<String> = Vec::new(),
        /// Requirements for the model.
        model_requirements: Vec<String> = Vec::new(),
        /// Features that must be enabled.
        feature_gate_refs: Vec<String> = Vec::new(),
    }
    /// Checks before the tool runs.
    validation: Validation {
        /// Dialect of the arguments' schema.
        schema_validation: String = "json-schema-2020-12".to_owned(),
        /// Rules over the values of arguments.
        value_validation: Vec<ValueRule> = Vec::new(),
        /// Arguments that name files or hosts.
        io_preflight_validation: Vec<Resource> = Vec::new(),
        /// `true` if a call that names a resource outside the grant is denied before the tool starts.
        deny_before_io: bool = true,
    }
    /// Effects of the tool.
    safety: Safety {
        /// `true` if the tool changes nothing. A tool that declares this gets no write permission.
        is_read_only: bool = false,
        /// `true` if changes cannot be undone.
        is_destructive: bool = false,
        /// `true` if the tool communicates with other machines.
        is_open_world: bool = true,
        /// `true` if calls can run concurrently.
        is_concurrency_safe: bool = false,
        /// `true` if each call requires a person's approval.
        requires_user_interaction: bool = false,
        /// Sandbox that runs the tool.
        sandbox_profile: String = "wasi-component".to_owned(),
        /// Input for a classifier of calls: a template over the arguments.
        classifier_input: String = String::new(),
    }
    /// Permission to call the tool.
    permission: Permission {
        /// Permission profile in exported Agent Tool records; empty means a profile of the tool's own.
        permission_profile_ref: String = String::new(),
        /// Argument that permission rules match.
        permission_matcher: Option<String> = None,
        /// Channel for approval requests.
        permission_channel: String = "terminal".to_owned(),
        /// Existing decision for all calls of the tool.
        decision_ref: Option<String> = None,
        /// Maximum harm of a call (addition).
        risk_level: Risk = Risk::Medium,
        /// Reason why each call requires approval (addition).
        approval_reason: Option<String> = None,
    }
    /// Execution of calls.
    execution: Execution {
        /// Execution profile in exported Agent Tool records; empty means a profile of the tool's own.
        execution_profile_ref: String = String::new(),
        /// Maximum duration of a call in milliseconds; by default the deadline in the limits.
        timeout_ms: Option<usize> = None,
        /// Effects of a call that is stopped.
        abort_semantics: String = "stopped at once; files that it wrote remain".to_owned(),
        /// Effect of an interruption on a running call.
        interrupt_behavior: Interrupt = Interrupt::Block,
        /// Effect of a failure on other calls in the step; by default the effect set for the step (addition).
        sibling_failure_policy: Option<SiblingFailure> = None,
        /// Schema of progress reports.
        progress_schema: Option<Value> = None,
        /// Permission to change the conversation.
        context_modifier_policy: String = "forbid".to_owned(),
    }
    /// Processing of results.
    result: ResultRules {
        /// Conversion of output to a result.
        result_mapper: String = "one-line-of-json".to_owned(),
        /// Maximum number of characters in a result that the model receives in full.
        max_inline_chars: usize = 64 << 10,
        /// Handling of a longer result.
        persistence_policy_ref: Persistence = Persistence::PreviewAndPersist,
        /// Result for the model if the tool wrote nothing.
        empty_result_policy: EmptyResult = EmptyResult::Object,
        /// Names of the operator's masks for results.
        redaction_policy_refs: Vec<String> = Vec::new(),
    }
    /// Display of a call: templates in which `{argument}` is replaced by the argument with that name.
    rendering: Rendering {
        /// Summary of the call in one line.
        ui_summary: Option<String> = None,
        /// Activity while the call runs.
        activity_description: Option<String> = None,
        /// Display of progress.
        progress_render_hint: Option<String> = None,
        /// Line for a denied call.
        rejected_render_hint: Option<String> = None,
        /// Line for a failed call.
        error_render_hint: Option<String> = None,
        /// Words for searching the call in a transcript.
        transcript_search_text: Option<String> = None,
    }
}

impl Interface {
    /// Applies the proof that the tool can change nothing: its calls can run concurrently and be interrupted at any time.
    pub(crate) fn infer_read_only(&mut self) {
        if !(self.safety.is_destructive.value && self.safety.is_destructive.basis == Basis::Declared) {
            self.safety.is_read_only.infer(true);
        }
        if !self.safety.is_read_only.value {
            // The source declares that the tool makes changes.
            return;
        }
        self.safety.is_destructive.infer(false);
        self.safety.is_concurrency_safe.infer(true);
        self.execution.interrupt_behavior.infer(Interrupt::Cancel);
        self.permission.risk_level.infer(Risk::Low);
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
        assert_eq!(interface.declare("is_read_only", json!("false")), Ok(true));
        interface.safety.is_read_only.infer(true);
        assert_eq!(interface.safety.is_read_only, Fact { value: false, basis: Basis::Declared });
        assert_eq!(interface.declare("no_such_field", json!(1)), Ok(false));
    }

    #[test]
    fn a_wrong_value_is_an_error_that_names_it() {
        let mut interface = Interface::default();
        let error = interface.declare("is_destructive", json!("when it rains")).unwrap_err().to_string();
        assert_eq!(error, "is_destructive must be true or false, found \"when it rains\"");
        let error = interface.declare("interrupt_behavior", json!("explode")).unwrap_err().to_string();
        assert_eq!(error, "interrupt_behavior must be `cancel` or `block`, found \"explode\"");
        assert!(interface.declare("max_inline_chars", json!(0)).is_err());
    }
}
