//! Which test answers for which kind of attack and for which known failing of other runtimes: names alone, each held
//! against the sources.

/// How many kinds of attack there are.
pub(super) const LAST: u8 = 81;

/// Kinds that concern what is not built yet: archives and registries, and a port for a browser.
pub(super) const NOT_BUILT: [u8; 6] = [54, 55, 56, 57, 69, 77];

/// The tests of each kind, beside the cases that are measured.
pub(super) const ROWS: &[(u8, &[&str])] = &[
    (1, &["limits::a_guest_that_computes_is_stopped_at_its_deadline", "limits::fuel_is_counted_when_it_is_limited"]),
    (
        2,
        &[
            "limits::a_start_function_that_loops_is_stopped_at_the_deadline",
            "decisions::an_interruption_reaches_a_tools_own_check",
        ],
    ),
    (3, &["limits::a_guest_that_asks_for_4_gib_is_refused_memory"]),
    (4, &["limits::memories_and_tables_count_together"]),
    (6, &["limits::endless_recursion_ends_in_a_stack_error"]),
    (
        8,
        &[
            "limits::a_component_with_more_parts_than_a_slot_has_is_refused_at_load",
            "interface::hostile::types_and_components_nested_without_end_are_refused_and_the_host_stands",
        ],
    ),
    (10, &["limits::a_flood_of_handles_is_refused", "limits::handles_of_the_guests_own_resources_count_too"]),
    (11, &["limits::what_one_host_call_copies_is_bounded"]),
    (12, &["limits::an_absurd_request_to_the_host_is_a_trap"]),
    (14, &["limits::a_guest_asleep_in_the_host_is_stopped_at_its_deadline"]),
    (15, &["limits::a_thousand_timeouts_leave_nothing_behind", "limits::a_dropped_call_stops_and_frees_its_slot"]),
    (16, &["limits::a_guest_that_polls_forever_is_stopped_at_its_deadline"]),
    (17, &["grants::a_fifo_in_a_granted_folder_is_refused_and_blocks_nothing"]),
    (18, &["limits::hung_calls_of_one_tool_leave_room_for_the_others"]),
    (20, &["limits::endless_output_is_cut_at_its_cap"]),
    (21, &["limits::a_result_over_the_cap_is_refused_and_one_at_the_cap_is_not"]),
    (22, &["limits::what_is_not_one_line_of_json_is_a_bad_result"]),
    (23, &["hostile::text::bytes_that_are_not_utf_8_are_replaced_and_flagged"]),
    (
        24,
        &[
            "hostile::text::no_answer_moves_a_terminal",
            "run::events::what_comes_from_outside_has_no_power_over_a_terminal",
        ],
    ),
    (25, &["limits::what_is_not_one_line_of_json_is_a_bad_result"]),
    (26, &["hostile::text::the_dark_corners_of_json_have_one_behaviour"]),
    (27, &["hostile::text::what_an_eye_does_not_see_is_flagged"]),
    (28, &["hostile::text::an_answer_is_data_whatever_it_says", "answers::a_tool_cannot_forge_the_hosts_words"]),
    (29, &["grants::no_path_leaves_the_granted_folder", "grants::an_absolute_path_is_inside_the_grant_or_nowhere"]),
    (30, &["grants::no_path_leaves_the_granted_folder"]),
    (31, &["grants::no_path_leaves_the_granted_folder"]),
    (32, &["grants::nothing_moves_from_a_read_grant_into_a_writable_one"]),
    (33, &["grants::a_folder_granted_for_reading_is_never_changed"]),
    (34, &["grants::a_window_into_the_host_is_never_granted"]),
    (36, &["limits::open_listings_are_bounded"]),
    (37, &["limits::a_flood_of_handles_is_refused"]),
    (38, &["programs::a_guest_sees_its_own_path_and_home_and_what_was_granted"]),
    (39, &["programs::a_guest_sees_its_own_path_and_home_and_what_was_granted"]),
    (40, &["programs::no_byte_of_an_earlier_call_is_seen_later"]),
    (50, &["programs::no_guest_has_a_socket", "contract::nothing_outside_the_world_is_linked"]),
    (51, &["programs::a_truncated_or_bit_flipped_component_never_brings_the_host_down"]),
    (52, &["programs::a_program_that_cannot_run_says_why"]),
    (53, &["interface::hostile::a_size_that_lies_is_not_believed"]),
    (58, &["programs::two_tools_of_one_name_are_refused_and_both_sources_named"]),
    (59, &["manifest::endless_files_are_not_read", "schema::a_reference_outside_is_refused_and_never_fetched"]),
    (60, &["schema::a_pattern_made_to_backtrack_is_matched_in_linear_time"]),
    (61, &["permissions::asking::an_answer_for_always_holds_until_the_program_changes_or_it_is_taken_back"]),
    (62, &["programs::a_damaged_or_foreign_cache_file_is_ignored_and_made_again"]),
    (
        63,
        &[
            "manifest::a_wrong_call_never_starts_the_guest",
            "cli::call::arguments_against_the_schema_never_start_the_tool",
            "run::answers::wrong_calls_are_answered_and_no_guest_is_started",
        ],
    ),
    (64, &["limits::more_calls_than_slots_wait_their_turn", "schedule::a_full_queue_refuses_instead_of_waiting"]),
    (
        65,
        &[
            "run::answers::identifiers_are_unique_and_every_call_is_answered_in_order",
            "agent::turn::empty_and_repeated_identifiers_become_numbers",
        ],
    ),
    (66, &["run::retries::a_stream_cut_amid_the_arguments_executes_nothing"]),
    (
        67,
        &[
            "run::retries::a_server_may_ask_for_a_wait_and_an_absurd_one_is_not_believed",
            "run::retries::giving_up_names_the_status_the_words_and_the_attempts",
            "agent::retry::a_server_may_ask_for_a_wait_in_bounds_and_no_other",
        ],
    ),
    (68, &["run::ending::a_model_that_never_stops_calling_is_stopped"]),
    (
        70,
        &[
            "run::requests::the_key_is_sent_and_shown_nowhere",
            "records::run::what_a_tool_marks_as_sensitive_stands_in_no_record",
        ],
    ),
    (71, &["audit::a_name_with_newlines_is_one_line_and_a_long_one_is_cut"]),
    (72, &["audit::a_full_disk_refuses_the_call_before_it_runs", "audit::a_call_that_cannot_be_logged_is_refused"]),
    (73, &["audit::sixteen_processes_tear_no_line"]),
    (
        74,
        &[
            "audit::a_torn_tail_is_mended_and_costs_no_record",
            "audit::chain::one_changed_byte_is_found",
            "hostile::life::a_writer_that_is_killed_leaves_a_sound_log",
        ],
    ),
    (
        75,
        &[
            "hostile::life::an_interrupted_call_is_out_in_two_seconds",
            "run::ending::an_interrupt_stops_every_call_and_leaves_their_records",
        ],
    ),
    (76, &["hostile::life::a_writer_that_is_killed_leaves_a_sound_log"]),
    (
        78,
        &[
            "hostile::life::tools_run_while_no_server_answers",
            "run::retries::nobody_at_the_address_is_said_after_every_attempt",
        ],
    ),
    (79, &["results::what_a_crash_left_is_swept_by_the_next_put"]),
    (80, &["hostile::life::a_clock_that_jumps_moves_no_deadline"]),
];

/// Rows that another part of the tests is to answer for, and nothing does yet.
pub(super) const OPEN: &[u8] = &[13, 35, 41, 42, 43, 44, 45, 46, 47, 48, 49, 81];

/// What other runtimes were seen to get wrong, and the tests that hold it here.
pub(super) const PROBES: &[(&str, &[&str])] = &[
    ("two endless loops on two cores", &["hostile::probes::as_many_endless_loops_as_cores_leave_room_for_others"]),
    ("the client cancels", &["limits::a_dropped_call_stops_and_frees_its_slot"]),
    ("any deadline on processor time", &["hostile::probes::every_limit_is_on_by_default"]),
    ("memory cap", &["limits::a_guest_that_asks_for_4_gib_is_refused_memory"]),
    (
        "output cap",
        &["limits::endless_output_is_cut_at_its_cap", "answers::five_megabytes_become_a_preview_and_a_reference"],
    ),
    ("state seen by the next call", &["programs::no_byte_of_an_earlier_call_is_seen_later"]),
    ("after a trap", &["hostile::probes::a_tool_that_trapped_runs_again"]),
    (
        "a long argument cut inside a UTF-8 character for the log",
        &["hostile::probes::a_long_argument_is_cut_between_characters"],
    ),
    ("several requests of 3 KB and more at once", &["hostile::probes::many_large_calls_at_once_are_all_answered"]),
    (
        "the model grants itself a folder through a tool",
        &["hostile::probes::no_call_changes_a_grant", "permissions::no_tool_may_write_the_rules_or_what_was_agreed_to"],
    ),
    ("two tools of one name", &["programs::two_tools_of_one_name_are_refused_and_both_sources_named"]),
];
