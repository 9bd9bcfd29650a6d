//! What `--help` says.

use crate::said;

/// Commands that have commands of their own.
const WITH_OWN: [&str; 8] =
    ["bench", "poison", "set", "store", "token", "types", "context", "schedule"];

/// They serve until they are stopped, or speak JSON anyway, or a shell's language.
const WITHOUT_JSON: [&str; 6] = ["dev", "serve", "work", "snapshot", "decide", "completions"];

/// The commands that a help lists.
fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names = commands.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every command there is, as it is typed.
fn commands() -> Vec<Vec<String>> {
    let names = listed(&said(&["--help"], ""));
    assert!(names.len() > 30, "{names:?}");
    let mut all = Vec::new();
    for name in names {
        let own = listed(&said(&[&name, "--help"], ""));
        assert_eq!(own.is_empty(), !WITH_OWN.contains(&name.as_str()), "{name}: {own:?}");
        all.extend(own.into_iter().map(|own| vec![name.clone(), own]));
        all.push(vec![name]);
    }
    all
}

fn help(command: &[String]) -> String {
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    said(&words, "")
}

#[test]
fn every_help_fits_in_eighty_columns_and_says_what_each_option_is() {
    for command in commands().into_iter().chain([Vec::new()]) {
        let help = help(&command);
        let widest = help.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80, "{command:?} is {widest} columns wide:\n{help}");
        let mut lines = help.lines().peekable();
        let is_told = lines.peek().is_some_and(|line| line.starts_with(char::is_uppercase));
        assert!(is_told, "{command:?}: {help}");
        while let Some(line) = lines.next().filter(|line| *line != "Examples:") {
            // An option says what it is for, in its line or the one below.
            let is_option = line.trim_start().starts_with('-') && line.starts_with("  ");
            let is_said = line.trim().contains("  ")
                || lines.peek().is_some_and(|below| below.starts_with("          "));
            assert!(!is_option || is_said, "{command:?} does not say what this is: {line}");
        }
    }
}

#[test]
fn no_line_ends_before_it_is_full() {
    for command in commands().into_iter().chain([Vec::new()]) {
        let help = help(&command);
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            let (above, below) = (pair[0], pair[1]);
            // Sentences that go on in the next line, from the first column on.
            let goes_on = above.starts_with(char::is_alphabetic) && !above.ends_with([':', '.']);
            let word = below.split_whitespace().next().unwrap_or_default();
            let is_full = above.chars().count() + 1 + word.chars().count() > 80;
            let is_told = below.starts_with(char::is_alphabetic);
            assert!(!goes_on || !is_told || is_full, "{command:?}: {above}\n{below}");
        }
    }
}

#[test]
fn how_to_reach_a_scheduler_comes_after_what_a_command_is_about() {
    for command in commands() {
        let help = help(&command);
        let about = help.find("--help").unwrap();
        assert!(help.find("--server <ADDRESS>").unwrap() > about, "{command:?}: {help}");
        assert!(!help.contains("<KIND>") || help.contains("--kind <KIND>"), "{command:?}: {help}");
    }
}

#[test]
fn an_example_is_a_line_that_can_be_copied() {
    for command in commands().into_iter().chain([Vec::new()]) {
        let help = help(&command);
        let lines = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
        for line in lines.take_while(|line| !line.is_empty()) {
            assert!(line.starts_with("  maitre "), "{command:?} breaks an example: {line}");
        }
    }
}

#[test]
fn every_command_speaks_to_machines() {
    for command in commands() {
        // These alone say nothing.
        if command == ["bench"] || command == ["store"] {
            continue;
        }
        let help = help(&command);
        let is_without = WITHOUT_JSON.contains(&command[0].as_str());
        assert_eq!(help.contains("--json"), !is_without, "{command:?}: {help}");
    }
}

#[test]
fn shells_offer_states_and_causes() {
    let script = said(&["completions", "bash"], "");
    let (_, after) = script.split_once("--state)").unwrap();
    let offered = after.lines().nth(1).unwrap();
    assert!(offered.contains("blocked queued claimed running succeeded failed"), "{offered}");
    assert!(script.contains("exhausted permanent stale poison"), "causes are offered");
}

#[test]
fn a_bench_measures_every_queue_that_figures_are_promised_of() {
    let help = help(&["bench".to_owned(), "run".to_owned()]);
    assert!(help.contains("[default: 10000,100000,1000000]"), "{help}");
}

#[test]
fn shells_can_complete_every_command() {
    let names = listed(&said(&["--help"], ""));
    for shell in ["bash", "zsh", "fish"] {
        let script = said(&["completions", shell], "");
        for name in &names {
            assert!(script.contains(name.as_str()), "{shell} does not know {name}");
        }
    }
}
