//! `maitre config`: what a scheduler would be set up with, and who says so.

use clap::Args;
use serde_json::json;

use crate::print::{self, Failure};
use crate::serve;
use crate::settings::{ENTRIES, Settings, Source};

/// Options of `maitre config`.
#[derive(Args)]
#[command(after_help = "\
Takes what `maitre serve` takes, and shows what would come of it: a file, then
the environment (`MAITRE_LEASE` for `lease`), then flags. Secrets are hidden.

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

/// Shows every setting, its value and where that comes from.
pub(crate) fn run(options: &ConfigOptions) -> Result<(), Failure> {
    let settings = Settings::checked(options.serve.config.as_deref(), options.serve.flags()?)?;
    let is_wanted = |key: &str| !options.changed || settings.source(key) != Source::Default;
    let wanted = ENTRIES.iter().filter(|entry| is_wanted(entry.key));
    if options.json {
        let entries = wanted.map(|entry| {
            json!({
                "key": entry.key,
                "value": (entry.show)(&settings.all),
                "source": settings.source(entry.key).to_string(),
                "about": entry.about,
            })
        });
        return print::json(&entries.collect::<Vec<_>>());
    }
    if wanted.clone().next().is_none() {
        print::note("everything is as it is by default");
        return Ok(());
    }
    let rows = wanted.map(|entry| {
        let value = (entry.show)(&settings.all);
        let value = if value.is_empty() { "-".to_owned() } else { value };
        let source = settings.source(entry.key).to_string();
        vec![entry.key.to_owned(), value, source, entry.about.to_owned()]
    });
    print::data(&print::table(&["setting", "value", "from", "about"], rows.collect(), &[]))
}
