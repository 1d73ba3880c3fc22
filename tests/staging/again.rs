//! Tests of files that run a second time with the writes of their calls held back and committed after each call: a tool sees no
//! difference, and the same is protected. The others of these tests make no call.

use crate::code::nested::again_with;
use crate::crib::staged_calls::SWITCH;

const FILES: &[&str] = &[
    "files::a_device_name_of_windows_is_a_plain_name_here",
    "files::a_flood_of_open_files_leaves_the_host_its_own",
    "files::a_loop_of_links_and_a_link_without_end_are_refused",
    "files::a_name_that_leads_out_is_denied_and_the_receipt_names_it",
    "files::a_read_grant_is_truncated_and_stretched_by_nobody",
    "files::listing::a_huge_folder_is_listed_a_part_at_a_time",
    "files::listing::a_listing_tells_every_entry_once_with_its_kind",
    "files::no_link_is_moved_or_followed_out_by_a_trailing_slash",
    "files::nothing_is_linked_or_moved_between_a_read_grant_and_a_writable_one",
    "files::planted::a_guest_makes_no_link_that_leads_out",
    "files::quota::a_call_makes_only_so_many_entries",
    "files::quota::a_call_that_fills_the_disk_ends_in_a_quota_error",
    "files::quota::a_file_is_not_stretched_beyond_the_quota",
    "files::quota::a_manifest_sets_the_quota_and_a_flag_only_lowers_it",
    "files::quota::a_million_small_files_end_at_the_default",
    "files::quota::a_tool_that_copes_with_the_refusal_succeeds",
    "files::quota::what_could_not_be_made_is_not_counted_and_what_is_there_is_no_new_entry",
    "files::race::a_file_that_is_swapped_for_a_fifo_keeps_no_thread_waiting",
    "files::race::a_file_that_is_swapped_for_a_link_is_not_written_through_it",
    "files::race::a_file_that_is_swapped_for_a_link_to_settings_is_not_written_through_it",
    "files::race::a_folder_on_the_way_that_is_swapped_for_a_link_never_leads_out",
    "files::race::a_link_that_is_swapped_while_it_is_opened_never_leads_out",
    "files::single::a_folder_covers_its_files_a_link_is_refused_and_denials_count",
    "files::single::a_guest_finds_the_granted_file_and_no_other",
    "files::single::a_written_file_stays_in_its_folder_and_the_folder_as_it_is",
    "files::single::the_shipped_tools_work_on_one_file",
    "files::the_windows_into_the_host_are_not_reached_through_a_link",
    "files::traces::a_call_leaves_no_file_but_those_it_wrote",
    "files::traces::no_error_text_names_a_place_of_the_host",
    "files::what_is_no_file_is_never_opened_and_keeps_nobody_waiting",
    "grants::a_denial_is_in_the_receipt_with_the_flag_that_would_have_allowed_it",
    "grants::a_denial_of_what_is_not_there_yet_holds_through_a_link",
    "grants::a_fifo_in_a_granted_folder_is_refused_and_blocks_nothing",
    "grants::a_folder_granted_for_reading_is_never_changed",
    "grants::a_window_into_the_host_is_never_granted",
    "grants::an_absolute_path_is_inside_the_grant_or_nowhere",
    "grants::no_grant_reaches_the_audit_log_or_the_compile_cache",
    "grants::no_path_leaves_the_granted_folder",
    "grants::nothing_moves_from_a_read_grant_into_a_writable_one",
    "grants::the_first_folder_is_the_root_and_each_of_several_has_its_name",
    "limits::a_flood_of_handles_is_refused",
    "limits::open_listings_are_bounded",
];

#[test]
fn tests_of_files_hold_for_calls_in_a_stage() {
    again_with(SWITCH, FILES);
}
