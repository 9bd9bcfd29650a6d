//! What `docs/quality.md` says about our own workloads is what replays give. `cargo xtask quality`
//! writes it anew, and the pictures with it.

use std::fs;
use std::path::{Path, PathBuf};

use model::policy::{Preset as Named, Rule, Turn};
use model::{Fixed, Millis, Policy};
use sim::preset::{Options, Preset};
use sim::report::{self, Picture, Run};
use sim::share::Share;
use sim::{Baseline, Bounds, Conditions, Estimates, Many, Measures, Replay, Scheduler};

use crate::bench::{Bench, het};

/// What is written instead of checked, if it is there: set by `cargo xtask quality`.
const WRITE: &str = "MAITRE_QUALITY_WRITE";

const OPTIONS: Options = Options {
    estimates: Estimates::Perfect,
    seed: 0,
    window: Millis::from_secs(24 * 3_600),
    budget: None,
};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The lines between two marks of the page are these.
fn agrees(section: &str, told: &str) {
    let path = docs().join("quality.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- /{section} -->\n"));
    let (before, rest) = page.split_once(&begin).expect("the section begins");
    let (written, after) = rest.split_once(&end).expect("the section ends");
    if std::env::var_os(WRITE).is_some() {
        let page = format!("{before}{begin}{told}{end}{after}");
        fs::write(&path, page).expect("the page can be written");
        return;
    }
    assert_eq!(written, told, "{section}: run `cargo xtask quality`");
}

fn draws(name: &str, picture: &Picture) {
    let path = docs().join("pictures").join(format!("{name}.svg"));
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(docs().join("pictures")).expect("there is room");
        fs::write(&path, &picture.svg).expect("the picture can be written");
        return;
    }
    let drawn = fs::read_to_string(&path).unwrap_or_default();
    assert!(drawn == picture.svg, "{name}: run `cargo xtask quality`");
}

fn balanced() -> Policy {
    Named::Balanced.policy()
}

fn replay(bench: &Bench, scheduler: &mut dyn Scheduler) -> Replay {
    bench.replay_under(scheduler, &Conditions::default())
}

fn of_policy(bench: &Bench, policy: Policy) -> Replay {
    replay(bench, &mut Preset::new(&bench.workload, &bench.fleet, policy, OPTIONS))
}

fn of_baseline(bench: &Bench, name: &str) -> Replay {
    let baseline = Baseline::from_name(name).expect("it is known");
    let scheduler = baseline.scheduler(&bench.workload, &bench.fleet, bench.window);
    replay(bench, &mut *scheduler.expect("it is for such a fleet"))
}

fn measures(bench: &Bench, replay: &Replay) -> Measures {
    Measures::new(&bench.workload, &bench.fleet, replay)
}

fn seconds(length: Millis) -> f64 {
    Fixed::thousandths(length.0).to_f64()
}

/// The six figures of `het90` that have an aim.
fn waits(measures: &Measures) -> [f64; 6] {
    let people = measures.part("mode", "on-demand").expect("people wait for some jobs");
    let rare = measures.part("type", "R").expect("some jobs are rare");
    [
        measures.all.mean_ms / 1_000.0,
        seconds(measures.all.p99),
        seconds(measures.all.max),
        seconds(people.p99),
        rare.mean_ms / 1_000.0,
        seconds(rare.max),
    ]
}

fn told([mean, p99, max, people, rare, rare_max]: [f64; 6]) -> String {
    format!("{mean:.1} | {p99:.0} | {max:.0} | {people:.1} | {rare:.1} | {rare_max:.0}")
}

fn share(measures: &Measures) -> &Share {
    measures.share.as_ref().expect("the tenants compete")
}

fn add(table: &mut String, rows: &str) {
    table.push_str(rows);
}

const WAITS: &str = "\
| | mean | p99 | longest | people p99 | rare type, mean | rare type, longest |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

#[test]
fn the_page_has_the_waits_of_het90() {
    let bench = het("het90");
    let replays = [
        ("fifo", of_baseline(&bench, "fifo")),
        ("sjf", of_baseline(&bench, "sjf")),
        ("aging", of_policy(&bench, Named::Aging.policy())),
        ("balanced", of_policy(&bench, balanced())),
    ];
    let mut table = WAITS.to_owned();
    for (name, replay) in &replays {
        let row = told(waits(&measures(&bench, replay)));
        add(&mut table, &format!("| `{name}` | {row} |\n"));
    }
    table.push_str("| the aim | 15.5 | 270 | 610 | 12.0 | 16.0 | 250 |\n");
    agrees("het90", &table);
    let runs: Vec<Run<'_>> = replays.iter().map(|(name, replay)| Run { name, replay }).collect();
    let pictures = report::pictures(&bench.workload, &bench.fleet, &runs);
    draws("het90-waits", &pictures[0]);
}

#[test]
fn the_page_has_the_shares_of_hetovl() {
    let bench = het("hetovl");
    let all = of_policy(&bench, balanced());
    let replays = [
        ("sfq", of_baseline(&bench, "sfq")),
        ("sfq-sjf", of_baseline(&bench, "sfq-sjf")),
        ("balanced", all),
    ];
    let mut table = "\
| | Jain | share error | lag, slot-seconds | mean wait | used |
| --- | ---: | ---: | ---: | ---: | ---: |
"
    .to_owned();
    for (name, replay) in &replays {
        let measures = measures(&bench, replay);
        let (share, mean) = (share(&measures), measures.all.mean_ms / 1_000.0);
        let (jain, error, lag) = (share.jain, 100.0 * share.error, share.lag_s);
        let used = measures.utilisation;
        let row = format!("{jain:.5} | {error:.2} % | {lag:.0} | {mean:.0} | {used:.4}");
        add(&mut table, &format!("| `{name}` | {row} |\n"));
    }
    table.push_str("| the aim | 0.99990 | 1 % | 300 | 600 | 0.9970 |\n");
    agrees("hetovl", &table);
    let [_, _, (name, replay)] = &replays;
    let pictures = report::pictures(&bench.workload, &bench.fleet, &[Run { name, replay }]);
    draws("hetovl-shares", &pictures[2]);
}

fn alone() -> Policy {
    Policy { turn: Turn::FirstCome, ..balanced() }
}

#[test]
fn the_page_has_hetovl_without_shares() {
    let bench = het("hetovl");
    let bound = Bounds::new(&bench.workload, &bench.fleet).mean_wait_ms;
    let mut table = "| | mean wait | times the bound |\n| --- | ---: | ---: |\n".to_owned();
    for (name, replay) in [
        ("`sjf`", of_baseline(&bench, "sjf")),
        ("`match-sjf`", of_baseline(&bench, "match-sjf")),
        ("`balanced`, shares off", of_policy(&bench, alone())),
        ("`balanced`, fairness off", of_policy(&bench, balanced().unfair())),
    ] {
        let mean = measures(&bench, &replay).all.mean_ms;
        assert!(!name.contains("fairness") || mean <= 1.05 * bound, "{mean} {bound}");
        add(&mut table, &format!("| {name} | {:.0} | {:.3} |\n", mean / 1_000.0, mean / bound));
    }
    add(
        &mut table,
        &format!("| the bound | {:.0} | 1.000 |\n| the aim | | 1.050 |\n", bound / 1e3),
    );
    agrees("alone", &table);
}

#[test]
fn the_page_has_eight_schedulers() {
    let mut table = "\
| | `het90` mean | `hetovl` mean | share error | lost claims |
| --- | ---: | ---: | ---: | ---: |
"
    .to_owned();
    for (name, n_schedulers, age) in [("one", 1, 0), ("eight, views 100 ms old", 8, 100)] {
        let run = |bench: &Bench| {
            let how = (n_schedulers, Millis(age));
            let mut many = Many::new(&bench.workload, &bench.fleet, &balanced(), OPTIONS, how);
            let replay = replay(bench, &mut many);
            (measures(bench, &replay), replay.n_conflicts)
        };
        let ((calm, n_calm), (flood, n_flood)) = (run(&het("het90")), run(&het("hetovl")));
        let means = [&calm, &flood].map(|own| own.all.mean_ms / 1_000.0);
        let (error, lost) = (100.0 * share(&flood).error, n_calm + n_flood);
        let [mean, flooded] = means;
        add(
            &mut table,
            &format!("| {name} | {mean:.2} | {flooded:.0} | {error:.2} % | {lost} |\n"),
        );
    }
    table.push_str("| the aim for eight | + 2 % | | 1.5 % | |\n");
    agrees("schedulers", &table);
}

/// `balanced` without one of its parts.
fn without() -> Vec<(&'static str, Policy)> {
    let change = |with: &dyn Fn(&mut Policy)| {
        let mut policy = balanced();
        with(&mut policy);
        policy
    };
    let never = Millis::from_secs(1_000_000_000);
    vec![
        ("nothing left out", balanced()),
        ("length", change(&|own| own.shortest.length = 0)),
        ("relief", change(&|own| own.shortest.relief = false)),
        ("patience", change(&|own| own.shortest.patience_min = never)),
        ("people first", change(&|own| own.shortest.on_demand = 1)),
        ("guard", change(&|own| own.guard = None)),
        ("shares", alone()),
        ("priority", change(&|own| *own.rules.entry(Rule::Priority).or_default() = Fixed::ZERO)),
    ]
}

#[test]
fn the_page_has_what_each_part_buys() {
    let mut table = concat!(
        "| without | `het90` mean | p99 | longest | people p99 | rare mean | rare longest ",
        "| `hetovl` mean | share error |\n",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    )
    .to_owned();
    let (calm, flood) = (het("het90"), het("hetovl"));
    for (name, policy) in without() {
        let waits = waits(&measures(&calm, &of_policy(&calm, policy.clone())));
        let flooded = measures(&flood, &of_policy(&flood, policy));
        let (mean, error) = (flooded.all.mean_ms / 1_000.0, 100.0 * share(&flooded).error);
        add(&mut table, &format!("| {name} | {} | {mean:.0} | {error:.2} % |\n", told(waits)));
    }
    agrees("parts", &table);
}

/// Arrivals that are moved by less than so much, another way for each seed.
const MOVED: Millis = Millis(200);

fn moved(mut bench: Bench, seed: u64) -> Bench {
    let mut draw = seed;
    for job in &mut bench.workload.jobs {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let span = MOVED.0.unsigned_abs();
        job.arrival.0 += i64::try_from((draw >> 33) % span).expect("it is below the span");
    }
    bench.workload.jobs.sort_by_key(|job| job.arrival);
    bench
}

/// The smallest and the largest of each.
fn ranges<const N: usize>(all: &[[f64; N]], decimals: [usize; N]) -> String {
    let range = |at: usize| {
        let of = |pick: fn(f64, f64) -> f64, from| all.iter().map(|own| own[at]).fold(from, pick);
        let (least, most) = (of(f64::min, f64::INFINITY), of(f64::max, 0.0));
        format!("{least:.0$}–{most:.0$}", decimals[at])
    };
    (0..N).map(range).collect::<Vec<_>>().join(" | ")
}

#[test]
fn the_page_has_how_far_figures_move() {
    let seeds = 1..=5;
    let calm = seeds.clone().map(|seed| {
        let bench = moved(het("het90"), seed);
        waits(&measures(&bench, &of_policy(&bench, balanced())))
    });
    let calm: Vec<[f64; 6]> = calm.collect();
    let flood = seeds.map(|seed| {
        let bench = moved(het("hetovl"), seed);
        let measures = measures(&bench, &of_policy(&bench, balanced()));
        let share = share(&measures);
        [measures.all.mean_ms / 1_000.0, 100.0 * share.error, share.lag_s]
    });
    let flood: Vec<[f64; 3]> = flood.collect();
    let mut table = WAITS.replace("| | mean", "| `het90` | mean");
    add(&mut table, &format!("| moved | {} |\n\n", ranges(&calm, [1, 0, 0, 1, 1, 0])));
    table.push_str("| `hetovl` | mean | share error, % | lag |\n| --- | ---: | ---: | ---: |\n");
    add(&mut table, &format!("| moved | {} |\n", ranges(&flood, [0, 2, 0])));
    agrees("moved", &table);
}

#[test]
fn the_page_has_what_patience_trades() {
    let bench = het("het90");
    let mut table = "\
| nobody loses patience before | mean | p99 | longest |
| ---: | ---: | ---: | ---: |
"
    .to_owned();
    let mut lines = Vec::new();
    for relief in [true, false] {
        let mut points = Vec::new();
        for patience_s in [30, 60, 120, 240, 480, 960, 1_920] {
            let mut policy = balanced();
            policy.shortest.patience_min = Millis::from_secs(patience_s);
            policy.shortest.relief = relief;
            let [mean, p99, max, ..] = waits(&measures(&bench, &of_policy(&bench, policy)));
            points.push((max, mean));
            if relief {
                let row = format!("{patience_s} s | {mean:.1} | {p99:.0} | {max:.0}");
                add(&mut table, &format!("| {row} |\n"));
            }
        }
        lines.push((if relief { "balanced" } else { "without relief" }, points));
    }
    lines.push(("the aim", vec![(610.0, 0.0), (610.0, 15.5), (0.0, 15.5)]));
    agrees("patience", &table);
    let axes = ("longest wait (seconds)", "mean wait (seconds)");
    draws("het90-patience", &report::trade("patience", axes, &lines));
}
