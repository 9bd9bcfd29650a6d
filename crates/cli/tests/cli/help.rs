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
