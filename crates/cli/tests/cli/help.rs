//! What `--help` says.

use crate::said;

#[test]
fn every_help_fits_in_eighty_columns() {
    for command in [
        &["--help"][..],
        &["decide", "--help"],
        &["simulate", "--help"],
        &["rules", "--help"],
        &["bench", "--help"],
    ] {
        let help = said(command, "");
        let widest = help.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80, "{command:?} is {widest} columns wide:\n{help}");
    }
}

#[test]
fn the_first_help_names_every_command() {
    let help = said(&["--help"], "");
    for command in ["decide", "rules", "bench"] {
        assert!(help.contains(command), "{help}");
    }
}

/// They serve until they are stopped, or speak JSON anyway.
const WITHOUT_JSON: [&str; 5] = ["dev", "serve", "work", "snapshot", "decide"];

#[test]
fn every_command_speaks_to_machines() {
    let help = said(&["--help"], "");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names = commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(names.len() > 20, "{help}");
    for name in names {
        let command =
            if name == "bench" { vec!["bench", "decide", "--help"] } else { vec![name, "--help"] };
        let help = said(&command, "");
        assert_eq!(help.contains("--json"), !WITHOUT_JSON.contains(&name), "{name}: {help}");
    }
}
