//! The promises of every store as code: one list of cases that each store passes.
//!
//! A case gets an empty store, made with [`options`], and the clock of that store. It panics if the
//! store breaks a promise.

#![expect(clippy::cloned_ref_to_slice_refs, reason = "lists in claims read best as lists")]

mod site;
mod submit;
mod attempt;
mod depend;
mod forget;
mod control;
mod lease;
mod lead;
mod read;
mod notice;
mod series;

use std::future::Future;
use std::pin::Pin;

pub use site::{Site, Time, options};

/// One promise.
#[derive(Clone, Copy)]
pub struct Case {
    /// The promise, in words.
    pub name: &'static str,
    /// Checks the promise.
    pub run: fn(Site) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Names a case after its function.
macro_rules! cases {
    ($($case:path),* $(,)?) => {
        vec![$(Case { name: stringify!($case), run: |site| Box::pin($case(site)) }),*]
    };
}

/// All promises, in the order of a job's life.
#[expect(clippy::too_many_lines, reason = "it is a list")]
pub fn cases() -> Vec<Case> {
    cases![
        submit::a_job_that_waits_for_nothing_is_queued,
        submit::everything_that_was_asked_is_kept,
        submit::numbers_go_up_and_are_never_used_twice,
        submit::reserved_numbers_are_never_used_by_other_jobs,
        submit::jobs_that_are_numbered_ahead_are_claimed_as_they_come_in,
        submit::room_is_kept_for_jobs_that_are_numbered_ahead,
        submit::the_same_key_and_body_give_the_same_jobs_again,
        submit::the_same_key_with_another_body_is_refused,
        submit::a_key_is_forgotten_with_the_first_of_its_jobs,
        submit::a_dedupe_key_is_joined_and_raises_the_priority,
        submit::a_dedupe_key_that_is_dropped_changes_nothing,
        submit::a_dedupe_key_is_free_again_when_its_job_is_final,
        submit::two_of_one_submission_join_each_other,
        submit::a_refused_submission_leaves_no_trace,
        submit::a_tenant_and_a_store_can_be_full,
        attempt::a_claim_needs_the_fence_that_is_there,
        attempt::only_one_claim_of_a_job_is_won,
        attempt::a_job_on_hold_or_blocked_cannot_be_claimed,
        attempt::a_start_said_again_changes_nothing,
        attempt::reports_of_a_stale_attempt_change_nothing,
        attempt::a_success_is_final_and_counted_once,
        forget::job_without_traces_is_deleted_at_its_end,
        forget::job_with_traces_is_not_deleted_at_its_end,
        attempt::end_stores_a_start_that_was_not_reported,
        attempt::the_same_end_again_is_repeated_and_another_is_stale,
        attempt::a_failure_waits_longer_each_time_and_keeps_its_age,
        attempt::every_ending_is_counted_charged_and_remembered_as_it_should,
        attempt::job_whose_workers_die_is_parked,
        attempt::costs_of_attempts_add_up,
        attempt::succeeded_attempt_is_stored_with_any_data,
        attempt::a_success_that_came_too_late_is_remembered_in_the_next_life,
        attempt::requests_in_one_list_take_effect_in_order,
        depend::job_is_released_by_its_last_blocker,
        depend::final_job_blocks_nothing,
        depend::places_in_a_submission_are_dependencies,
        depend::failure_cancels_or_releases_dependents,
        depend::cancelled_dependent_is_no_longer_counted,
        depend::a_diamond_is_cancelled_once,
        control::a_waiting_job_is_cancelled_at_once,
        control::cancelled_live_job_ends_as_cancelled,
        control::a_final_job_cannot_be_cancelled,
        control::hold_release_and_priority_change_waiting_jobs,
        control::a_revived_job_has_all_its_tries_and_new_tokens,
        control::a_job_is_not_revived_onto_a_key_that_is_taken,
        control::late_job_fails,
        lease::generations_go_up_and_the_newest_counts,
        lease::attempts_of_a_silent_worker_are_expired,
        lease::worker_with_a_heartbeat_in_time_keeps_its_attempts,
        lease::started_attempt_is_not_ended_as_never_started,
        lease::a_worker_that_left_has_no_lease,
        lease::renew_all_gives_busy_workers_a_fresh_lease,
        lease::attempt_of_a_worker_that_never_connected_expires,
        lead::one_holder_leads_until_its_time_is_over,
        lead::next_holder_gets_the_document_and_old_holders_change_nothing,
        lead::many_notes_of_one_kind_displace_no_other_kind,
        lead::a_note_of_a_key_is_written_once_and_only_some_age,
        read::unfinished_jobs_are_looked_at_by_id,
        read::lists_are_filtered_and_paged,
        read::unfinished_jobs_are_counted_by_type_and_state,
        read::attempts_of_several_jobs_come_each_to_its_own,
        read::output_is_kept_once_and_up_to_a_limit,
        read::output_is_read_a_page_at_a_time,
        read::settings_are_set_and_removed,
        read::one_of_many_concurrent_replacements_wins,
        read::usage_is_summed_to_the_minute,
        read::runs_are_newest_first_and_say_what_happened,
        read::old_jobs_are_deleted_in_steps,
        read::histories_are_trimmed,
        read::ids_that_are_no_numbers_name_nothing,
        notice::only_jobs_with_a_webhook_have_notices,
        notice::notice_is_due_again_after_a_wait_until_it_is_delivered,
        notice::notices_come_in_order_and_their_ids_are_never_used_twice,
        notice::every_final_state_has_a_notice,
        notice::a_notice_outlives_its_job_but_not_forever,
        series::a_minute_is_stored_once_and_its_last_document_counts,
        series::old_minutes_are_deleted,
    ]
}
