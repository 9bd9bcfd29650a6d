//! Claims about predictions.

use model::TenantId;

use super::memory::YOUNG_MAX;
use super::*;
use crate::chance::Chance;

fn like<'a>(tenant: &'a TenantId, key: &'a str) -> Like<'a> {
    Like {
        kind: None,
        tenant,
        key,
        command: "",
        labels: None,
        inputs: None,
        claim: None,
        limit: None,
    }
}

fn seconds(lengths: &Lengths, like: Like<'_>) -> i64 {
    lengths.predict(like).expect("enough ran").length.0 / 1_000
}

/// A length about this one: up to four times longer or shorter, by chance.
fn about(chance: &mut Chance, seconds: i64) -> Millis {
    let quarters = i64::try_from(chance.below(15)).expect("it is small");
    Millis(seconds * 1_000 * (quarters + 1) / 4)
}

#[test]
fn nothing_is_predicted_before_enough_ran() {
    let a = TenantId::new("a");
    let mut lengths = Lengths::default();
    for n in 0..JOBS_MIN {
        assert_eq!(lengths.predict(like(&a, "x")), None, "{n} ran");
        lengths.learn(like(&a, "x"), Millis(10_000));
    }
    let said = lengths.predict(like(&a, "x"));
    assert_eq!(said, Some(Prediction { length: Millis(10_000), skill: 0 }));
}

#[test]
fn keys_that_tell_are_believed_and_skill_is_near_the_truth() {
    let a = TenantId::new("a");
    let mut lengths = Lengths::default();
    let mut chance = Chance::new(3);
    for n in 0..400 {
        let (key, usual) = if n % 2 == 0 { ("short", 10) } else { ("long", 640) };
        lengths.learn(like(&a, key), about(&mut chance, usual));
    }
    let (short, long) = (seconds(&lengths, like(&a, "short")), seconds(&lengths, like(&a, "long")));
    assert!((9..=25).contains(&short) && (600..=1_500).contains(&long), "{short} {long}");
    // Between the keys are six doublings, within each a standard deviation of about one: in squares
    // it is 9 of 10 parts.
    let skill = lengths.predict(like(&a, "long")).expect("enough ran").skill;
    assert!((850..=950).contains(&skill), "{skill}");
}

#[test]
fn what_tells_nothing_leaves_all_jobs_as_long() {
    let tenants: Vec<TenantId> = (0..4).map(|n| TenantId::new(&format!("t{n}"))).collect();
    let keys: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let (mut n_moved, mut most) = (0, 0);
    for seed in 0..20 {
        let mut chance = Chance::new(seed);
        let mut lengths = Lengths::default();
        for n in 0..1_000 {
            let at = |n: usize, chance: &mut Chance| {
                usize::try_from(chance.below(n.try_into().expect("small"))).expect("small")
            };
            let own = like(&tenants[at(4, &mut chance)], &keys[at(20, &mut chance)]);
            let own = Like { claim: Some(about(&mut chance, 30)), ..own };
            if let Some(said) = lengths.predict(own).filter(|_| n >= 100) {
                let off = (log2(said.length) - lengths.told).abs();
                n_moved += u32::from(off > STEP / 2);
                most = most.max(off);
            }
            lengths.learn(own, about(&mut chance, 30));
        }
    }
    // Of 18,000 jobs.
    assert!(n_moved < 180 && most <= 2 * DOUBLING, "{n_moved} moved, by {most} at most");
}

#[test]
fn who_claims_the_same_of_every_job_gains_nothing() {
    let (liar, other) = (TenantId::new("liar"), TenantId::new("other"));
    let mut chance = Chance::new(1);
    let mut lengths = Lengths::default();
    let lie = Like { claim: Some(Millis(1)), ..like(&liar, "") };
    for _ in 0..500 {
        lengths.learn(lie, about(&mut chance, 60));
        lengths.learn(like(&other, ""), about(&mut chance, 60));
    }
    let said = [lie, like(&liar, ""), like(&other, "")].map(|own| lengths.predict(own));
    assert_eq!(said, [said[2]; 3]);
}

#[test]
fn claims_that_are_wrong_as_often_as_right_gain_nothing() {
    let a = TenantId::new("a");
    let mut chance = Chance::new(1);
    let mut lengths = Lengths::default();
    for _ in 0..500 {
        let own = Like { claim: Some(about(&mut chance, 60)), ..like(&a, "") };
        lengths.learn(own, about(&mut chance, 60));
    }
    let claiming = |ms| seconds(&lengths, Like { claim: Some(Millis(ms)), ..like(&a, "") });
    assert_eq!(claiming(1), claiming(86_400_000));
}

#[test]
fn honest_claims_are_believed_within_twenty_jobs_and_then_lies_are_not_for_long() {
    let (a, b) = (TenantId::new("a"), TenantId::new("b"));
    let mut lengths = Lengths::default();
    let claiming = |s| Like { claim: Some(Millis::from_secs(s)), ..like(&a, "") };
    for n in 0..40 {
        lengths.learn(like(&b, ""), Millis::from_secs(10 << (n % 4)));
    }
    for n in 0..20 {
        // Twice as much is claimed as is needed.
        lengths.learn(claiming(20 << (n % 4)), Millis::from_secs(10 << (n % 4)));
    }
    let (short, long) = (seconds(&lengths, claiming(20)), seconds(&lengths, claiming(160)));
    assert!(short <= 16 && long >= 48, "{short} {long}");
    let unproven = Like { tenant: &b, ..claiming(20) };
    assert_eq!(seconds(&lengths, unproven), seconds(&lengths, like(&b, "")), "they are another's");
    let mut n_gained = 0;
    for _ in 0..20 {
        let lie = Like { claim: Some(Millis(1)), ..like(&a, "") };
        n_gained += usize::from(seconds(&lengths, lie) < 10);
        lengths.learn(lie, Millis::from_secs(80));
    }
    assert!(n_gained <= 2, "{n_gained} lies were believed");
}

#[test]
fn commands_and_labels_tell_and_labels_that_do_not_are_no_harm() {
    let a = TenantId::new("a");
    let mut lengths = Lengths::default();
    let mut chance = Chance::new(5);
    let labels = |stage: &str, run: usize| {
        BTreeMap::from([
            ("run".to_owned(), run.to_string()),
            ("stage".to_owned(), stage.to_owned()),
        ])
    };
    for n in 0..400 {
        let stage = if n % 4 < 2 { "build" } else { "test" };
        let usual = if n % 2 == 0 { 10 } else { 80 } * if stage == "build" { 1 } else { 64 };
        let labels = labels(stage, n);
        let command = if n % 2 == 0 { "make" } else { "cargo" };
        let own = Like { command, labels: Some(&labels), ..like(&a, "") };
        lengths.learn(own, about(&mut chance, usual));
    }
    let of = |command, stage| {
        let labels = labels(stage, 999);
        seconds(&lengths, Like { command, labels: Some(&labels), ..like(&a, "") })
    };
    let all = [of("make", "build"), of("cargo", "build"), of("make", "test"), of("cargo", "test")];
    assert!(all.is_sorted_by(|one, two| one * 3 < *two), "{all:?}");
}

#[test]
fn a_change_is_followed_and_what_only_varies_is_not() {
    let a = TenantId::new("a");
    let mut lengths = Lengths::default();
    let mut chance = Chance::new(9);
    for n in 0..400 {
        lengths.learn(like(&a, "varies"), about(&mut chance, 100));
        lengths.learn(like(&a, "long"), about(&mut chance, 3_200));
        let usual = if n < 380 { 100 } else { 3_200 };
        lengths.learn(like(&a, "changes"), about(&mut chance, usual));
    }
    let [varies, long, changes] =
        ["varies", "long", "changes"].map(|key| seconds(&lengths, like(&a, key)));
    assert!(changes > 6 * varies && 4 * changes > long, "{varies} {long} {changes}");
}

#[test]
fn skills_are_told_by_type() {
    let a = TenantId::new("a");
    let (steady, odd) = (Name::new("a steady one"), Name::new("odd"));
    let mut lengths = Lengths::default();
    let mut chance = Chance::new(2);
    for _ in 0..200 {
        let of = |kind| Like { kind: Some(kind), ..like(&a, "") };
        lengths.learn(of(&steady), Millis::from_secs(5));
        lengths.learn(of(&odd), about(&mut chance, 60));
    }
    let told: Vec<Skill> = lengths.skills().map(|(_, skill)| skill).collect();
    let [known, odd] = told[..] else { panic!("{told:?}") };
    assert_eq!((known.n_judged, odd.n_judged, known.typical), (196, 196, Millis(5_000)));
    assert!(known.skill > 950 && odd.skill > 500 && odd.skill < known.skill, "{told:?}");
}

#[test]
fn jobs_that_come_together_are_one_proof() {
    let a = TenantId::new("a");
    let keys = ["x", "y", "z"];
    let mut lengths = Lengths::default();
    let mut chance = Chance::new(4);
    let (mut n, mut n_far) = (0, 0);
    // All jobs of a batch are as long, and batches of a key are as different as those of others.
    for batch in 0..120 {
        let own = like(&a, keys[batch % 3]);
        let said = lengths.say(own);
        let ran = Millis(1_000 << chance.below(10));
        if let Some(said) = &said {
            n += 1;
            n_far +=
                usize::from((log2(lengths.tell(own, said).length) - lengths.told).abs() > DOUBLING);
        }
        for _ in 0..50 {
            lengths.learn_of(own, ran, said.as_ref());
        }
    }
    assert!(n > 100 && n_far < 12, "{n_far} of {n}");
    let skill = lengths.predict(like(&a, "x")).expect("enough ran").skill;
    assert!(skill < 100, "{skill}");
}

#[test]
fn what_was_not_met_for_long_is_forgotten_and_nothing_grows_without_end() {
    let a = TenantId::new("a");
    let mut lengths = Lengths::default();
    for n in 0..3 * YOUNG_MAX {
        let (key, kind) = (n.to_string(), Name::new(&format!("k{n}")));
        let own = Like { kind: Some(&kind), claim: Some(Millis(7)), ..like(&a, &key) };
        lengths.learn(own, Millis(1_000));
    }
    for len in [lengths.runs.len(), lengths.trusts.len(), lengths.judged.len()] {
        assert!(len <= 2 * YOUNG_MAX, "{len}");
    }
    assert!(lengths.types.len() <= TYPES_MAX + 1);
}

#[test]
fn the_same_runs_teach_the_same() {
    let a = TenantId::new("a");
    let taught = || {
        let mut chance = Chance::new(6);
        let mut lengths = Lengths::default();
        for n in 0..500 {
            let key = if n % 3 == 0 { "x" } else { "y" };
            lengths.learn(like(&a, key), about(&mut chance, if n % 3 == 0 { 9 } else { 90 }));
        }
        lengths.predict(like(&a, "x"))
    };
    let length = taught().expect("enough ran").length;
    assert_eq!(taught(), taught());
    // The same on every machine: a change here changes every replay.
    assert_eq!(length, Millis(15_210));
}

#[test]
fn who_outruns_its_prediction_is_expected_to_take_twice_as_long() {
    let ms = |elapsed, predicted| outrun(Millis(elapsed), Millis(predicted)).0;
    assert_eq!([ms(0, 10), ms(10_000, 10_000), ms(10_001, 10_000)], [10, 10_000, 20_000]);
    assert_eq!([ms(1, 0), ms(5_000, 10), ms(i64::MAX, 1)], [2_000, 8_000, i64::MAX]);
}
