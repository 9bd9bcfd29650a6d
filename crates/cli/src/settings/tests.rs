use model::Millis;

use super::*;

fn settings(file: &str, variables: &[(&str, &str)], flags: Vec<Said>) -> Result<Settings, String> {
    let told = |failure: Failure| failure.to_string();
    let file = file::parse("m.toml", file).map_err(told)?;
    let (worker, of_worker) = (file.worker, file.of_worker);
    let mut settings = Settings { worker, of_worker, ..Settings::default() };
    let variables = variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    for said in file.said.into_iter().chain(environment(variables)).chain(flags) {
        settings.put(said).map_err(told)?;
    }
    Ok(settings)
}

#[test]
fn lengths_are_written_with_their_units() {
    let read = settings("lease = \"1m 30s\"", &[], Vec::new()).unwrap();
    assert_eq!(read.all.config.lease, Millis::from_secs(90));
    let wrong = settings("\n\nlease = \"soon\"", &[], Vec::new()).unwrap_err();
    assert!(wrong.starts_with("m.toml:3: `lease`: `soon` is not a length"), "{wrong}");
}

#[test]
fn a_flag_is_stronger_than_a_variable_and_that_than_a_file() {
    let file = "lease = \"20s\"\njobs_max = 7\nretention = \"1h\"";
    let variables = [("MAITRE_LEASE", "40s"), ("MAITRE_JOBS_MAX", "8"), ("HOME", "/")];
    let flags = vec![Said::by_flag("--lease", "lease", "50s")];
    let read = settings(file, &variables, flags).unwrap();
    let config = &read.all.config;
    assert_eq!((config.lease, config.limits.jobs_max), (Millis::from_secs(50), 8));
    assert_eq!(config.retention, Millis::from_secs(3600));
    let sources = ["lease", "jobs_max", "retention", "listen"].map(|key| read.source(key));
    let shown = sources.map(|source| source.to_string());
    assert_eq!(shown, ["--lease", "MAITRE_JOBS_MAX", "m.toml:3", "default"]);
}

#[test]
fn what_nobody_knows_is_refused_with_its_place_and_a_suggestion() {
    let wrong = settings("\nleese = \"1m\"", &[], Vec::new()).unwrap_err();
    assert_eq!(wrong, "m.toml:2: `leese` is not a setting\n\nhint: did you mean `lease`?");
    let wrong = settings("", &[("MAITRE_LEESE", "1m")], Vec::new()).unwrap_err();
    assert_eq!(wrong, "MAITRE_LEESE: `leese` is not a setting\n\nhint: did you mean `lease`?");
    let wrong = settings("lease = \"1m\"\n[worker]\nslotz = 3", &[], Vec::new()).unwrap_err();
    let told = "m.toml:3: `slotz` is not a setting of a worker\n\nhint: did you mean `slots`?";
    assert_eq!(wrong, told);
    let wrong = settings("jobs_max = -1", &[], Vec::new()).unwrap_err();
    assert!(wrong.starts_with("m.toml:1: `jobs_max`: `-1` is not a number from 0"), "{wrong}");
    let wrong = settings("listen = [1]", &[], Vec::new()).unwrap_err();
    assert!(wrong.starts_with("m.toml:1: `listen` is not a text, number or flag"), "{wrong}");
    let wrong = settings("lease = ", &[], Vec::new()).unwrap_err();
    assert!(wrong.starts_with("m.toml:1: "), "{wrong}");
}

#[test]
fn variables_of_clients_workers_and_jobs_are_no_settings() {
    let variables =
        ["MAITRE_TOKEN", "MAITRE_JOB", "MAITRE_WORKER_NAME", "MAITRE_LOG", "MAITRE_LOG_FORMAT"];
    assert!(settings("", &variables.map(|name| (name, "x")), Vec::new()).is_ok());
}

#[test]
fn every_setting_is_shown_as_it_is_read() {
    let defaults = All::default();
    for entry in ENTRIES {
        let text = (entry.show)(&defaults);
        let mut all = All::default();
        (entry.put)(&mut all, &text).unwrap();
        assert_eq!((entry.show)(&all), text, "{}", entry.key);
    }
}

#[test]
fn what_a_file_says_of_a_worker_is_shown_line_by_line_without_environments() {
    let file = "lease = \"20s\"\n[worker]\nslots = 4\nhints = [\"eu\", \"de\"]\n\
        has = { os = [\"linux\", \"bsd\"] }\nleave_grace = \"1m\"\n\
        [worker.commands.render]\nargv = [\"render\", \"-q\"]\nenv = { KEY = \"hush\" }\n";
    let read = settings(file, &[], Vec::new()).unwrap();
    let shown = read.of_worker.iter().map(|said| {
        let Said { key, text, source } = said;
        assert!(crate::work::about(key).is_some(), "{key}");
        format!("{source} {key} {text}")
    });
    let expected = [
        "m.toml:3 worker.slots 4",
        "m.toml:4 worker.hints eu, de",
        "m.toml:5 worker.has os=linux|bsd",
        "m.toml:6 worker.leave_grace 1m",
        "m.toml:7 worker.commands.render render -q",
    ];
    assert!(shown.eq(expected));
}

#[test]
fn secrets_are_hidden() {
    let read = settings("webhook_secret = \"0123456789\"", &[], Vec::new()).unwrap();
    let shown: String = ENTRIES.iter().map(|entry| (entry.show)(&read.all)).collect();
    assert!(!shown.contains("0123456789") && !format!("{read:?}").contains("0123456789"));
}
