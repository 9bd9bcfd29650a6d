//! What a job needs and what a worker has: types, keys, values, pools.

use model::{Preset, Reason};

use crate::specs::{JobSpec, WorkerSpec};
use crate::world::{decided, pairs, placed, reason};

/// Whether the worker takes the job, in every preset.
fn takes(worker: impl Fn(WorkerSpec<'_>), job: impl Fn(JobSpec<'_>)) -> bool {
    let taken = Preset::ALL.map(|preset| {
        let decision = decided(preset, |world| {
            worker(world.worker("w"));
            job(world.job("1").rescored(4));
        });
        let is_taken = placed(&decision) == pairs([("1", "w")]);
        let is_hopeless = reason(&decision, "1") == Some(Reason::NoWorkerEver);
        assert_ne!(is_taken, is_hopeless, "{preset:?}: {decision:?}");
        is_taken
    });
    assert!(taken.iter().all(|is_taken| *is_taken == taken[0]), "presets differ: {taken:?}");
    taken[0]
}

#[test]
fn any_of_several_values_of_a_worker_is_enough() {
    let both = |worker: WorkerSpec<'_>| worker.offers("os", &["linux", "bsd"]).done();
    assert!(takes(both, |job| job.needs("os", &["linux"]).done()));
    assert!(takes(both, |job| job.needs("os", &["bsd"]).done()));
    assert!(!takes(both, |job| job.needs("os", &["plan9"]).done()));
}

#[test]
fn any_of_several_alternatives_of_a_job_is_enough() {
    let either = |job: JobSpec<'_>| job.needs("os", &["linux", "bsd"]).done();
    assert!(takes(|worker| worker.offers("os", &["bsd"]).done(), either));
    assert!(takes(|worker| worker.offers("os", &["plan9", "linux"]).done(), either));
    assert!(!takes(|worker| worker.offers("os", &["plan9"]).done(), either));
}

#[test]
fn every_key_must_match() {
    let two = |job: JobSpec<'_>| job.needs("os", &["linux"]).needs("arch", &["arm", "x86"]).done();
    let linux = |worker: WorkerSpec<'_>| worker.offers("os", &["linux"]).done();
    assert!(!takes(linux, two));
    let linux_arm =
        |worker: WorkerSpec<'_>| worker.offers("os", &["linux"]).offers("arch", &["arm"]).done();
    assert!(takes(linux_arm, two));
}

#[test]
fn a_key_that_a_job_does_not_name_does_not_matter() {
    assert!(takes(|worker| worker.offers("gpu", &["h100"]).done(), |_| ()));
}

#[test]
fn a_worker_that_lists_types_takes_only_those() {
    let pdf = |worker: WorkerSpec<'_>| worker.types(&["pdf", "png"]).done();
    assert!(takes(pdf, |job| job.kind("pdf").done()));
    assert!(!takes(pdf, |job| job.kind("xls").done()));
    assert!(takes(pdf, |_| ()));
}

#[test]
fn a_worker_that_lists_no_types_takes_any() {
    assert!(takes(|_| (), |job| job.kind("pdf").done()));
}

#[test]
fn a_job_with_a_pool_stays_in_it() {
    let blue = |worker: WorkerSpec<'_>| worker.pool("blue").done();
    assert!(takes(blue, |job| job.pool("blue").done()));
    assert!(!takes(blue, |job| job.pool("red").done()));
    assert!(takes(blue, |_| ()));
}

#[test]
fn a_job_without_a_pool_takes_that_of_its_type() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("a");
            world.worker("b").pool("blue");
            world.job_type("pdf").pool("blue");
            world.job("1").kind("pdf").rescored(4);
        });
        assert_eq!(placed(&decision), pairs([("1", "b")]), "{preset:?}");
    }
}

#[test]
fn a_jobs_own_pool_counts_before_that_of_its_type() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("a").pool("red");
            world.worker("b").pool("blue");
            world.job_type("pdf").pool("blue");
            world.job("1").kind("pdf").pool("red").rescored(4);
        });
        assert_eq!(placed(&decision), pairs([("1", "a")]), "{preset:?}");
    }
}
