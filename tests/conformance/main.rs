//! What every executor does, whatever it runs agents on: each behaviour is one test for each of them.
//!
//! A new executor joins with one line in the call of `conformance!` and a [`Subject`] that says how it starts
//! agents that are described abstractly.

#![cfg(test)]

mod agents;
mod behaviours;
mod director;
mod process_only;
mod stage;
mod subjects;

use std::fmt::Write as _;

use subjects::Subject;

/// Makes `SUBJECT::BEHAVIOUR` a test for every pair, and `BEHAVIOURS` and `SUBJECTS` from the same lists.
macro_rules! conformance {
    (subjects { $($subject:ident: $type:ty,)+ } behaviours $behaviours:tt) => {
        const SUBJECTS: &[&str] = &[$(<$type as Subject>::NAME),+];
        conformance!(@names $behaviours);
        $(conformance!(@tests $subject, $type, $behaviours);)+
    };
    (@names { $($behaviour:ident,)+ }) => {
        const BEHAVIOURS: &[&str] = &[$(stringify!($behaviour)),+];
    };
    (@tests $subject:ident, $type:ty, { $($behaviour:ident,)+ }) => {
        mod $subject {
            use crate::{behaviours, stage, subjects};

            $(
                #[test]
                fn $behaviour() {
                    stage::run::<$type, _>(behaviours::$behaviour);
                }
            )+
        }
    };
}

conformance! {
    subjects {
        process: subjects::process::Process,
        fake: subjects::fake::Fake,
    }
    // A behaviour that isn't in this list is code that nobody calls, which doesn't compile without a warning.
    behaviours {
        ensure_is_idempotent,
        ensure_at_the_same_time_is_one_run,
        ensure_after_the_end_starts_nothing,
        an_unknown_run_is_absent,
        states_go_from_starting_to_running_to_ended,
        every_change_of_state_is_told,
        what_is_unsupported_is_said_once,
        no_agent_starts_before_the_answer,
        a_refused_run_starts_no_agent,
        without_an_answer_no_agent_starts,
        the_outcome_is_reported_once_and_before_the_end,
        exit_codes_are_in_the_outcome,
        a_signal_is_exit_code_minus_one,
        what_is_printed_is_in_the_outcome,
        what_is_printed_is_shown_live,
        what_is_written_is_in_the_outcome,
        the_deadline_ends_the_agent,
        a_stop_before_the_answer_starts_no_agent,
        a_stop_ends_the_agent,
        a_stop_after_the_end_changes_nothing,
        a_stop_of_an_unknown_run_is_fine,
        the_first_reason_counts,
        an_agent_that_ignores_sigterm_is_killed_after_the_grace,
        a_later_stop_can_shorten_the_grace,
        remove_ends_a_running_agent_and_leaves_nothing,
        remove_ends_a_run_that_waits_for_its_answer,
        remove_after_the_end_leaves_nothing,
        remove_twice_is_fine,
        remove_at_the_same_time_waits_for_the_end,
        a_removed_run_can_be_made_anew,
        runs_side_by_side_do_not_disturb_each_other,
        attempts_of_one_task_are_apart,
    }
}

/// What is tested of whom, for people: the tests are made from the same two lists.
#[test]
fn the_table() {
    let mut table = String::new();
    for behaviour in BEHAVIOURS {
        // Writing to a String can't fail.
        let _ = writeln!(table, "{behaviour:<60}{}", SUBJECTS.join("  "));
    }
    println!("{table}");
    let count = |names: &[&str]| names.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!((count(BEHAVIOURS), count(SUBJECTS)), (BEHAVIOURS.len(), SUBJECTS.len()), "{table}");
}
