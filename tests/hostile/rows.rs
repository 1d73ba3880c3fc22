//! Coverage of the attack catalogue: names of the tests for each kind of attack and each known defect of other runtimes.

/// Number of kinds of attack.
pub(super) const LAST: u8 = 95;

/// Kinds that are not covered yet: a port for a browser.
pub(super) const NOT_BUILT: [u8; 1] = [69];

/// Tests of each kind, beside the measured cases.
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
            "compiling::refused::ten_thousand_instances_are_refused_however_they_are_made",
        ],
    ),
    (10, &["limits::a_flood_of_handles_is_refused", "limits::handles_of_the_guests_own_resources_count_too"]),
    (
        11,
        &[
            "limits::what_one_host_call_copies_is_bounded",
            "sandbox::wasi::preview1::tests::an_address_outside_the_memory_ends_the_program",
            "sandbox::wasi::preview1::tests::a_call_that_copies_too_much_comes_back_short",
            "sandbox::wasi::preview1::tests::arguments::no_arguments_harm_the_host",
        ],
    ),
    (12, &["limits::an_absurd_request_to_the_host_is_a_trap"]),
    (
        13,
        &[
            "compiling::process::a_program_that_takes_too_long_to_compile_is_stopped_and_named",
            "compiling::process::a_program_that_takes_too_much_memory_to_compile_is_stopped_and_the_host_stays_small",
        ],
    ),
    (14, &["limits::a_guest_asleep_in_the_host_is_stopped_at_its_deadline"]),
    (15, &["limits::a_thousand_timeouts_leave_nothing_behind", "limits::a_dropped_call_stops_and_frees_its_slot"]),
    (16, &["limits::a_guest_that_polls_forever_is_stopped_at_its_deadline"]),
    (
        17,
        &[
            "grants::a_fifo_in_a_granted_folder_is_refused_and_blocks_nothing",
            "files::what_is_no_file_is_never_opened_and_keeps_nobody_waiting",
            "files::race::a_file_that_is_swapped_for_a_fifo_keeps_no_thread_waiting",
        ],
    ),
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
    (
        30,
        &[
            "grants::no_path_leaves_the_granted_folder",
            "files::race::a_link_that_is_swapped_while_it_is_opened_never_leads_out",
            "files::a_loop_of_links_and_a_link_without_end_are_refused",
        ],
    ),
    (31, &["grants::no_path_leaves_the_granted_folder", "files::no_link_is_moved_or_followed_out_by_a_trailing_slash"]),
    (
        32,
        &[
            "grants::nothing_moves_from_a_read_grant_into_a_writable_one",
            "files::nothing_is_linked_or_moved_between_a_read_grant_and_a_writable_one",
        ],
    ),
    (
        33,
        &[
            "grants::a_folder_granted_for_reading_is_never_changed",
            "files::a_read_grant_is_truncated_and_stretched_by_nobody",
        ],
    ),
    (
        34,
        &[
            "grants::a_window_into_the_host_is_never_granted",
            "files::what_is_no_file_is_never_opened_and_keeps_nobody_waiting",
            "files::a_device_name_of_windows_is_a_plain_name_here",
        ],
    ),
    (
        35,
        &[
            "files::quota::a_call_that_fills_the_disk_ends_in_a_quota_error",
            "files::quota::a_file_is_not_stretched_beyond_the_quota",
            "files::quota::a_million_small_files_end_at_the_default",
        ],
    ),
    (36, &["limits::open_listings_are_bounded", "files::listing::a_huge_folder_is_listed_a_part_at_a_time"]),
    (37, &["limits::a_flood_of_handles_is_refused", "files::a_flood_of_open_files_leaves_the_host_its_own"]),
    (38, &["programs::a_guest_sees_its_own_path_and_home_and_what_was_granted"]),
    (
        39,
        &[
            "programs::a_guest_sees_its_own_path_and_home_and_what_was_granted",
            "files::traces::no_error_text_names_a_place_of_the_host",
        ],
    ),
    (
        40,
        &[
            "programs::no_byte_of_an_earlier_call_is_seen_later",
            "files::traces::nothing_of_an_earlier_call_is_left_in_a_later_one",
            "files::traces::a_call_leaves_no_file_but_those_it_wrote",
        ],
    ),
    (
        41,
        &[
            "gate::notations::no_address_of_the_inside_is_reached_by_number",
            "gate::notations::no_address_of_the_inside_is_reached_by_name",
        ],
    ),
    (
        42,
        &[
            "gate::notations::an_address_is_written_in_one_way",
            "gate::notations::a_mapped_address_is_not_the_one_that_it_holds",
        ],
    ),
    (
        43,
        &[
            "gate::resolving::a_name_that_changes_between_the_look_and_the_connection_gains_nothing",
            "gate::resolving::one_address_of_the_inside_spoils_the_name",
            "gate::resolving::the_connection_goes_to_the_address_that_was_checked",
        ],
    ),
    (
        44,
        &["gate::redirects::each_hop_is_checked", "gate::redirects::a_loop_of_redirects_ends_at_the_count_of_requests"],
    ),
    (
        45,
        &[
            "gate::notations::an_authority_that_hides_another_is_refused",
            "gate::notations::a_name_in_another_script_is_granted_as_one_and_not_for_its_look",
        ],
    ),
    (46, &["gate::requests::what_would_be_read_in_two_ways_is_not_sent", "gate::requests::a_request_is_bounded_too"]),
    (
        47,
        &[
            "gate::answers::an_answer_of_ten_gigabytes_is_cut_at_its_cap",
            "gate::answers::a_compressed_answer_stays_as_it_came",
        ],
    ),
    (48, &["gate::patience::the_deadline_holds_however_slow_the_server_is"]),
    (49, &["gate::counting::a_hundred_thousand_requests_end_at_their_count"]),
    (
        50,
        &[
            "programs::no_guest_has_a_socket",
            "contract::nothing_outside_the_world_is_linked",
            "gate::sockets::no_grant_gives_a_socket_a_datagram_or_a_lookup",
            "preview1::a_socket_is_refused_and_the_record_says_so",
        ],
    ),
    (
        51,
        &[
            "compiling::damage::every_truncation_of_a_component_is_refused",
            "compiling::damage::every_flipped_bit_of_a_component_is_refused_or_runs",
        ],
    ),
    (52, &["programs::a_program_that_cannot_run_says_why"]),
    (
        53,
        &[
            "interface::hostile::a_size_that_lies_is_not_believed",
            "compiling::refused::a_giant_or_second_custom_section_that_is_read_is_refused",
        ],
    ),
    (54, &["bundles::hostile::entries_that_lead_out_links_devices_and_lies_about_sizes_are_refused"]),
    (55, &["bundles::hostile::compressed_and_oversized_archives_are_refused_at_once"]),
    (
        56,
        &[
            "bundles::hostile::content_that_does_not_match_its_digest_and_short_blobs_are_refused",
            "registries::hostile::a_blob_with_another_content_is_refused",
            "registries::hostile::a_short_body_and_a_long_one_are_refused",
            "registries::hostile::a_tag_with_another_digest_than_the_reference_is_refused",
        ],
    ),
    (57, &["registries::hostile::a_redirect_to_another_network_is_refused"]),
    (
        58,
        &[
            "programs::two_tools_whose_names_look_alike_are_refused_and_both_named",
            "programs::two_tools_of_one_name_are_refused_and_both_sources_named",
        ],
    ),
    (59, &["manifest::endless_files_are_not_read", "schema::a_reference_outside_is_refused_and_never_fetched"]),
    (60, &["schema::a_pattern_made_to_backtrack_is_matched_in_linear_time"]),
    (61, &["permissions::asking::an_answer_for_always_holds_until_the_program_changes_or_it_is_taken_back"]),
    (
        62,
        &[
            "compiling::damage::code_that_was_tampered_with_is_never_loaded_wherever_it_was",
            "compiling::damage::code_of_another_program_engine_or_folder_is_never_loaded",
            "sandbox::cache::code_of_one_form_is_never_loaded_as_the_other",
        ],
    ),
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
            "turn::empty_and_repeated_identifiers_become_numbers",
        ],
    ),
    (66, &["run::retries::a_stream_cut_amid_the_arguments_executes_nothing"]),
    (
        67,
        &[
            "run::retries::a_server_may_ask_for_a_wait_and_an_absurd_one_is_not_believed",
            "run::retries::giving_up_names_the_status_the_words_and_the_attempts",
            "retry::a_server_may_ask_for_a_wait_in_bounds_and_no_other",
        ],
    ),
    (68, &["run::ending::a_model_that_never_stops_calling_is_stopped"]),
    (
        70,
        &[
            "run::requests::the_key_is_sent_and_shown_nowhere",
            "records::run::what_a_tool_marks_as_sensitive_stands_in_no_record",
            "secrets::everywhere::a_run_leaves_no_trace_of_a_secret_anywhere",
            "secrets::placing::a_response_that_holds_it_is_cut_in_every_encoding",
        ],
    ),
    (
        71,
        &[
            "audit::a_name_with_newlines_is_one_line_and_a_long_one_is_cut",
            "audit::arguments::hostile_arguments_give_one_bounded_line_each",
        ],
    ),
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
            "hostile::life::an_interrupted_call_is_out_before_its_deadline",
            "run::ending::an_interrupt_stops_every_call_and_leaves_their_records",
        ],
    ),
    (76, &["hostile::life::a_writer_that_is_killed_leaves_a_sound_log"]),
    (77, &["workers::ends::a_worker_that_dies_in_the_middle_of_a_call_is_replaced_by_another"]),
    (
        78,
        &[
            "hostile::life::tools_run_while_no_server_answers",
            "run::retries::nobody_at_the_address_is_said_after_every_attempt",
        ],
    ),
    (79, &["results::what_a_crash_left_is_swept_by_the_next_put"]),
    (80, &["hostile::life::a_clock_that_jumps_moves_no_deadline"]),
    (81, &["programs::a_tool_that_is_replaced_during_a_call_ends_on_the_old_version"]),
    (
        82,
        &[
            "files::swapped::a_folder_swapped_for_a_link_to_the_hosts_own_state_is_never_granted",
            "files::swapped::a_folder_swapped_for_a_link_to_a_denied_folder_is_never_granted",
            "files::swapped::a_folder_on_the_way_swapped_for_a_link_leads_to_nothing_denied",
            "files::swapped::a_folder_that_a_manifest_names_is_never_another_while_it_is_swapped",
        ],
    ),
    (
        83,
        &[
            "files::planted::a_guest_makes_no_link_that_leads_out",
            "files::planted::a_link_is_not_moved_to_where_it_leads_out",
            "files::planted::a_manifest_names_no_folder_by_a_link",
            "files::planted::a_record_and_a_markdown_tool_name_no_folder_by_a_link",
            "files::planted::a_flag_goes_through_no_link_inside_a_folder_that_tools_may_write",
            "files::planted::nothing_that_the_host_writes_lies_where_a_tool_may_write",
            "files::planted::a_link_in_the_place_of_a_folder_that_the_host_writes_is_refused",
        ],
    ),
    (
        84,
        &[
            "files::swapped::own_state_is_granted_under_no_other_name",
            "files::swapped::a_file_of_the_hosts_own_is_not_read_by_a_hard_link_to_it",
            "files::swapped::a_denied_folder_is_denied_under_its_other_names",
            "files::swapped::the_default_places_are_never_granted_while_flags_name_others",
        ],
    ),
    (
        85,
        &[
            "computing::costly_schemas_stop_at_the_deadline",
            "computing::a_costly_schema_freezes_no_other_call",
            "computing::a_check_for_which_nobody_waits_stops",
            "computing::an_answer_is_checked_within_the_deadline_of_its_call",
            "computing::rules_over_many_paths_end_with_the_call",
            "computing::an_interruption_ends_a_check",
        ],
    ),
    (
        86,
        &[
            "computing::bounds_of_a_source_name_the_file_the_field_and_the_limit",
            "computing::a_large_argument_is_shown_no_further_than_its_line",
            "tool::glob::a_pattern_of_four_thousand_stars_is_refused",
        ],
    ),
    (
        87,
        &[
            "files::settling::the_sources_of_later_sessions_are_written_by_no_tool",
            "files::settling::what_editors_shells_and_version_control_follow_is_written_by_no_tool",
            "files::settling::a_write_that_would_settle_something_is_recorded_and_explained",
            "permissions::no_tool_may_write_the_rules_or_what_was_agreed_to",
        ],
    ),
    (
        88,
        &[
            "files::settling::sources_with_names_of_their_own_and_links_to_them_are_written_by_no_tool",
            "files::settling::a_project_that_is_a_link_is_written_by_no_tool_where_it_leads",
        ],
    ),
    (
        89,
        &[
            "trust::folders::no_spelling_of_a_changed_folder_is_granted_anything",
            "trust::settings::an_untrusted_file_allows_nothing_and_silences_no_question",
            "trust::settings::routes_of_an_untrusted_file_reroute_nothing",
        ],
    ),
    (
        90,
        &[
            "permissions::always::every_change_of_a_definition_is_asked_about_again",
            "permissions::always::the_same_tool_from_another_source_or_under_another_order_is_asked_about_again",
            "permissions::always::the_text_of_a_markdown_tool_is_part_of_what_was_agreed_to",
            "permissions::always::the_descriptor_of_a_component_is_part_of_what_was_agreed_to",
            "permissions::always::what_an_earlier_version_stored_is_read_and_asked_about_again",
        ],
    ),
    (
        91,
        &[
            "scripted::scope::hooks_of_another_source_change_and_block_nothing_without_the_flag",
            "scripted::scope::no_pattern_reaches_a_tool_of_another_source",
            "scripted::scope::a_route_decides_by_the_tool_and_not_by_the_name",
            "scripted::scope::events_without_a_tool_are_not_handled_beside_tools_of_other_sources",
            "scripted::scope::a_nested_call_is_handled_by_the_hooks_of_the_called_tools_source",
            "scripted::effects::a_receipt_and_its_record_name_the_hooks_that_acted_and_never_the_content",
            "scripted::effects::the_trace_has_one_line_for_each_call_that_hooks_acted_on",
            "scripted::effects::a_list_names_hooks_with_their_matchers_and_scopes",
        ],
    ),
    (
        92,
        &[
            "unusable::many::thousands_of_tools_of_one_program_are_listed_called_and_run",
            "unusable::many::more_tools_than_a_run_may_have_are_refused_with_the_limit",
            "unusable::many::one_program_under_several_names_is_one",
        ],
    ),
    (93, &["preview1::memory_that_a_program_grew_is_its_own_while_it_calls_the_host"]),
    (
        94,
        &[
            "permissions::dead::a_rule_over_an_argument_that_no_tool_has_is_an_error",
            "permissions::dead::a_rule_over_a_value_that_no_argument_takes_is_an_error",
            "permissions::dead::a_hook_over_an_argument_that_its_tools_do_not_have_is_an_error",
            "permissions::dead::tools_that_are_searched_for_are_judged_like_others",
        ],
    ),
    (
        95,
        &[
            "unusable::each_bad_tool_is_named_in_a_warning_and_the_others_are_listed",
            "unusable::loading::one_bad_entry_of_a_manifest_leaves_the_others",
            "unusable::loading::a_guard_that_cannot_be_loaded_is_never_left_out",
            "unusable::a_run_goes_on_without_bad_tools_and_tells_the_model_why",
        ],
    ),
];

/// Defects that were seen in other runtimes, and the tests for them.
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
    ("a network grant for one port", &["gate::destinations::a_grant_for_one_port_opens_no_other"]),
    ("a grant for every name below one", &["gate::destinations::a_wildcard_holds_every_name_below_and_no_other"]),
];
