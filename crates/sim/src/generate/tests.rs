use super::*;
use crate::number::{count, ratio};

const RECIPE: &str = "\
jobs = 20000
rate_per_s = 2.0
seed = 7
priorities = [0, 10]
arrivals = { process = 'on-off', on_s = 60, off_s = 120, off_part = 0.1 }

[[type]]
name = 'A'
share = 3
on_demand = 0.25
size = { law = 'lognormal', mean = 20, sigma = 1.2 }

[[type]]
name = 'B'
slots = 4
labels = 3
requested = 3.0
size = { law = 'bounded-pareto', min = 1, max = 1000, alpha = 1.1 }

[[tenant]]
name = 'small'

[[tenant]]
name = 'large'
weight = 2
share = 3
burst = { every_s = 600, for_s = 60, factor = 5 }
";

fn workload(text: &str) -> Workload {
    Recipe::parse("r", text).expect("the recipe is well formed").workload()
}

#[test]
fn the_same_recipe_makes_the_same_workload_and_another_seed_another() {
    assert_eq!(workload(RECIPE), workload(RECIPE));
    assert_ne!(workload(RECIPE), workload(&RECIPE.replace("seed = 7", "seed = 8")));
}

#[test]
fn jobs_are_as_the_recipe_says() {
    let made = workload(RECIPE);
    assert_eq!(made.jobs.len(), 20_000);
    assert!(made.jobs.is_sorted_by_key(|job| job.arrival));
    let names: Vec<String> = made.tenants.iter().map(|own| own.id.to_string()).collect();
    assert_eq!((names.join(" "), made.tenants[0].weight), ("large small".to_owned(), 2));
    let part = |is: &dyn Fn(&Job) -> bool| {
        count(made.jobs.iter().filter(|job| is(job)).count()) / count(made.jobs.len())
    };
    assert!((part(&|job| job.fit == 0) - 0.75).abs() < 0.01);
    assert!((part(&|job| job.on_demand) - 0.75 * 0.25).abs() < 0.01);
    // Three of four without bursts; more with.
    assert!(part(&|job| job.tenant == 0) > 0.76);
    let of_a = || made.jobs.iter().filter(|job| job.fit == 0);
    let sum: i128 = of_a().map(|job| i128::from(job.duration.0)).sum();
    let mean_s = ratio(sum, 1_000) / count(of_a().count());
    assert!((mean_s - 20.0).abs() < 1.5, "{mean_s}");
    let of_b = || made.jobs.iter().filter(|job| job.fit == 1);
    assert!(of_b().all(|job| (1_000..=1_000_000).contains(&job.duration.0)));
    assert!(of_b().all(|job| job.slots == 4 && job.label.is_some_and(|label| label < 3)));
    assert!(of_b().all(|job| job.requested.is_some_and(|own| own >= job.duration)));
}

#[test]
fn the_mean_rate_is_kept_by_every_process() {
    for process in [
        "process = 'poisson'",
        "process = 'daily', amplitude = 0.8",
        "process = 'on-off', on_s = 60, off_s = 120, off_part = 0.1",
    ] {
        let text = format!(
            "jobs = 40000\nrate_per_s = 0.2\narrivals = {{ {process} }}\n\
             [[type]]\nsize = {{ law = 'fixed', seconds = 5 }}\n"
        );
        let span_s = ratio(workload(&text).last_arrival().0.into(), 1_000);
        assert!((span_s / 200_000.0 - 1.0).abs() < 0.06, "{process}: {span_s}");
    }
}

#[test]
fn a_recipe_beyond_limits_is_refused_by_field() {
    for (from, to, problem) in [
        ("jobs = 20000", "jobs = 0", "`jobs` 0"),
        ("rate_per_s = 2.0", "rate_per_s = -1.0", "`rate_per_s` -1"),
        ("mean = 20", "mean = 0", "`size`"),
        ("name = 'small'", "name = 'large'", "tenant `large` twice"),
        ("factor = 5", "factor = 0", "`burst`"),
        ("off_part = 0.1", "off_part = 2", "`arrivals`"),
        ("seed = 7", "sed = 7", "sed"),
    ] {
        let error = Recipe::parse("r", &RECIPE.replacen(from, to, 1)).expect_err(problem);
        assert!(error.to_string().contains(problem), "{error}");
    }
}
