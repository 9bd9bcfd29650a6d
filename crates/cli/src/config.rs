//! `maitre config`: what a scheduler would be set up with, and who says so.

use clap::Args;
use serde_json::{Value, json};

use crate::print::{self, Failure};
use crate::serve;
use crate::settings::{ENTRIES, Settings, Source};
use crate::work;

/// Options of `maitre config`.
#[derive(Args)]
#[command(after_help = "\
Takes what `maitre serve` takes, and shows what would come of it: a file, then
the environment (`MAITRE_LEASE` for `lease`), then flags. Secrets are hidden.
What the file says about a worker is shown as it is there.

Examples:
  maitre config
  maitre config --changed --config /etc/maitre.toml
  maitre config --set lease=30s --json")]
pub(crate) struct ConfigOptions {
    #[command(flatten)]
    serve: serve::Options,
    /// Only what is not as it is by default.
    #[arg(long)]
    changed: bool,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// A setting as it is shown.
struct Shown {
    key: String,
    value: String,
    source: Source,
    about: &'static str,
}

/// Shows every setting, its value and where that comes from.
pub(crate) fn run(options: &ConfigOptions) -> Result<(), Failure> {
    let settings = Settings::checked(options.serve.config.as_deref(), options.serve.flags()?)?;
    let mut wanted = shown(&settings);
    wanted.retain(|one| !options.changed || one.source != Source::Default);
    if options.json {
        return print::json(&wanted.iter().map(machine).collect::<Vec<Value>>());
    }
    if wanted.is_empty() {
        print::note("everything is as it is by default");
        return Ok(());
    }
    let rows = wanted.into_iter().map(|Shown { key, value, source, about }| {
        let value = if value.is_empty() { "-".to_owned() } else { value };
        vec![key, value, source.to_string(), about.to_owned()]
    });
    print::data(&print::table(&["setting", "value", "from", "about"], rows.collect(), &[]))
}

/// Every setting of the scheduler, and what the file says about its worker.
fn shown(settings: &Settings) -> Vec<Shown> {
    let scheduler = ENTRIES.iter().map(|entry| Shown {
        key: entry.key.to_owned(),
        value: (entry.show)(&settings.all),
        source: settings.source(entry.key),
        about: entry.about,
    });
    let worker = settings.of_worker.iter().map(|said| Shown {
        key: said.key.clone(),
        value: said.text.clone(),
        source: said.source.clone(),
        about: work::about(&said.key).unwrap_or_default(),
    });
    scheduler.chain(worker).collect()
}

fn machine(one: &Shown) -> Value {
    let Shown { key, value, source, about } = one;
    json!({ "key": key, "value": value, "source": source.to_string(), "about": about })
}
