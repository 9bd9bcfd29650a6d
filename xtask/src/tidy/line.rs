//! What one line can do wrong.
//!
//! The words that are looked for are spelled in two halves, so that this file has none of them.

use super::{File, Finding};

const COLUMNS_MAX: usize = 100;

/// Notes to oneself, as whole words.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// What is refused in Rust code, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "a test that does not run proves nothing; make it run or drop it"),
    (
        concat!("#[", "should_panic"),
        "return what is wrong and assert on it; do not wait for panics",
    ),
    (concat!("todo", "!"), "code that is not written yet is not committed yet"),
    (concat!("unimplemented", "!"), "code that is not written yet is not committed yet"),
];

/// How absolute paths begin on the machines we build on.
const MACHINES: &[&str] =
    &[concat!("/", "work/"), concat!("/", "farm/"), concat!("/", "root/"), concat!("/", "home/")];

pub(super) fn findings(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for file in files {
        for (number, line) in (1..).zip(file.text.split_terminator('\n')) {
            let mut sentences = in_any_file(line);
            if file.is_rust() {
                sentences.extend(in_rust(line));
            }
            // Recorded output may end in blanks; the program that wrote it answers for that.
            if !is_recorded(file) && line.ends_with(char::is_whitespace) {
                sentences.push("the line ends in blanks".to_owned());
            }
            let found = sentences.into_iter();
            findings.extend(found.map(|sentence| Finding::new(&file.path, number, sentence)));
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            let n_lines = file.text.lines().count();
            findings.push(Finding::new(&file.path, n_lines, "the last line has no newline"));
        }
    }
    findings
}

fn is_recorded(file: &File) -> bool {
    file.has_extension("snap")
}

fn in_any_file(line: &str) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for note in NOTES {
        if has_word(line, note) {
            sentences.push(format!("`{note}` belongs on the list of work, not in the code"));
        }
    }
    for machine in MACHINES {
        if line.contains(machine) {
            sentences.push(format!("`{machine}` is a path of one machine"));
        }
    }
    sentences
}

fn in_rust(line: &str) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for (refused, instead) in REFUSED {
        if line.contains(refused) {
            sentences.push((*instead).to_owned());
        }
    }
    let n_columns = line.chars().count();
    if n_columns > COLUMNS_MAX {
        sentences.push(format!("the line has {n_columns} columns, more than {COLUMNS_MAX}"));
    }
    sentences
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::super::found_by;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        found_by(findings, &[(path, text)])
    }

    #[test]
    fn a_clean_file_has_no_findings() {
        assert_eq!(found("a.rs", "//! Fine.\n\nfn fine() {}\n"), Vec::<String>::new());
        assert_eq!(found("empty.md", ""), Vec::<String>::new());
    }

    #[test]
    fn notes_to_oneself_are_found_in_every_kind_of_file() {
        for note in NOTES {
            let text = format!("fine\n// {note}: later\n");
            let expected = format!("2: `{note}` belongs on the list of work, not in the code");
            assert_eq!(found("a.md", &text), [format!("a.md:{expected}")]);
            assert_eq!(found("a.rs", &text), [format!("a.rs:{expected}")]);
        }
    }

    #[test]
    fn a_word_that_contains_a_note_is_not_a_note() {
        let text = format!("mktemp name.{}X\n", NOTES[2]);
        assert_eq!(found(".ci/run", &text), Vec::<String>::new());
    }

    #[test]
    fn refused_code_is_found_in_rust_only() {
        for (refused, instead) in REFUSED {
            let text = format!("    {refused}\n");
            assert_eq!(found("a.rs", &text), [format!("a.rs:1: {instead}")]);
            assert_eq!(found("a.md", &text), Vec::<String>::new());
        }
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        for machine in MACHINES {
            let text = format!("see {machine}notes\n");
            assert_eq!(
                found("a.md", &text),
                [format!("a.md:1: `{machine}` is a path of one machine")]
            );
        }
    }

    #[test]
    fn columns_are_characters_and_count_in_rust_only() {
        let fits = format!("{}\n", "é".repeat(COLUMNS_MAX));
        let long = format!("{}\n", "é".repeat(COLUMNS_MAX + 1));
        assert_eq!(found("a.rs", &fits), Vec::<String>::new());
        assert_eq!(found("a.rs", &long), ["a.rs:1: the line has 101 columns, more than 100"]);
        assert_eq!(found("a.md", &long), Vec::<String>::new());
    }

    #[test]
    fn blanks_at_the_end_of_a_line_are_found() {
        for text in ["fine\nbad \n", "fine\nbad\t\n", "fine\nbad\r\n"] {
            assert_eq!(found("a.md", text), ["a.md:2: the line ends in blanks"]);
        }
        assert_eq!(found("a.snap", "recorded \n"), Vec::<String>::new());
    }

    #[test]
    fn a_missing_last_newline_is_found() {
        assert_eq!(found("a.md", "one\ntwo"), ["a.md:2: the last line has no newline"]);
    }
}
