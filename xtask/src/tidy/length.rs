//! How long a file may be.

use super::{File, Finding};

const LINES_MAX: usize = 400;

/// Files over the limit, each with the length it must not exceed. The list only ever gets shorter.
pub(super) const OVERLONG: &[(&str, usize)] = &[];

pub(super) fn findings(files: &[File], overlong: &[(&str, usize)]) -> Vec<Finding> {
    let measured: Vec<(&str, usize)> = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test())
        .map(|file| (file.path.as_str(), n_lines(&file.text)))
        .collect();

    let mut findings: Vec<Finding> = Vec::new();
    for (path, n_lines) in &measured {
        let limit = overlong.iter().find(|(known, _)| known == path);
        let lines_max = limit.map_or(LINES_MAX, |(_, lines_max)| *lines_max);
        if *n_lines > lines_max {
            let sentence = format!("the file has {n_lines} lines, more than {lines_max}; split it");
            findings.push(Finding::new(path, lines_max + 1, sentence));
        }
    }
    for (path, lines_max) in overlong {
        let length = measured.iter().find(|(measured, _)| measured == path);
        let n_lines = length.map_or(0, |(_, n_lines)| *n_lines);
        if n_lines < *lines_max {
            let sentence =
                format!("shorter than the {lines_max} lines it is allowed; lower OVERLONG");
            findings.push(Finding::new(path, n_lines.max(1), sentence));
        }
    }
    findings
}

/// The lines of a file without the module of tests that it may end in.
///
/// Relies on the formatter: what is at the top level starts in the first column.
fn n_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let Some(start) = lines.iter().rposition(|line| *line == "#[cfg(test)]") else {
        return lines.len();
    };
    let mut item = lines[start..].iter().skip_while(|line| line.starts_with("#["));
    let opens = item.next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'));
    let mut after = item.skip_while(|line| **line != "}").skip(1);
    if opens && after.all(|line| line.is_empty()) { start } else { lines.len() }
}

#[cfg(test)]
mod tests {
    use super::super::found_by;
    use super::*;

    const TESTS: &str = "#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";

    fn found(path: &str, text: &str, overlong: &[(&str, usize)]) -> Vec<String> {
        found_by(|files| findings(files, overlong), &[(path, text)])
    }

    #[test]
    fn a_file_of_400_lines_is_short_enough() {
        assert_eq!(found("a.rs", &"\n".repeat(400), &[]), Vec::<String>::new());
    }

    #[test]
    fn a_file_of_401_lines_is_too_long() {
        let expected = ["a.rs:401: the file has 401 lines, more than 400; split it"];
        assert_eq!(found("a.rs", &"\n".repeat(401), &[]), expected);
    }

    #[test]
    fn tests_and_other_languages_may_be_long() {
        let text = "\n".repeat(1_000);
        for path in ["a/tests/b.rs", "a/src/tests.rs", "a/src/b_tests.rs", "a.md"] {
            assert_eq!(found(path, &text, &[]), Vec::<String>::new());
        }
    }

    #[test]
    fn tests_at_the_end_of_a_file_do_not_count() {
        let text = format!("{}{TESTS}", "\n".repeat(400));
        assert_eq!(found("a.rs", &text, &[]), Vec::<String>::new());
        assert_eq!(n_lines("one\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n}\n"), 1);
    }

    #[test]
    fn code_after_the_tests_makes_them_count() {
        assert_eq!(n_lines(&format!("one\n{TESTS}fn two() {{}}\n")), 6);
    }

    #[test]
    fn other_items_for_tests_count() {
        assert_eq!(n_lines("one\n#[cfg(test)]\nmod tests;\n"), 3);
        assert_eq!(n_lines("one\n#[cfg(test)]\nfn helper() {\n}\n"), 4);
    }

    #[test]
    fn a_known_long_file_may_not_grow() {
        let known = [("a.rs", 450)];
        assert_eq!(found("a.rs", &"\n".repeat(450), &known), Vec::<String>::new());
        let expected = ["a.rs:451: the file has 451 lines, more than 450; split it"];
        assert_eq!(found("a.rs", &"\n".repeat(451), &known), expected);
    }

    #[test]
    fn a_known_long_file_that_shrinks_lowers_its_limit() {
        let expected = ["a.rs:449: shorter than the 450 lines it is allowed; lower OVERLONG"];
        assert_eq!(found("a.rs", &"\n".repeat(449), &[("a.rs", 450)]), expected);
        let expected = ["a.rs:1: shorter than the 450 lines it is allowed; lower OVERLONG"];
        assert_eq!(found("b.rs", "", &[("a.rs", 450)]), expected);
    }
}
