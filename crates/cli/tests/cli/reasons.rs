//! Each reason to wait has a section in the docs, and its place in the README.

use model::Reason;

use crate::file;

#[test]
fn each_reason_has_a_section_that_says_what_it_means_and_what_to_do() {
    let page = file("docs/reasons.md");
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    let codes: Vec<&str> =
        sections.iter().filter_map(|section| section.split('`').nth(1)).collect();
    assert_eq!(codes, Reason::ALL.map(Reason::name), "all of them, in the order of their rank");
    for section in sections {
        for part in ["- **Means:** ", "- **Evidence:** ", "- **Do:** "] {
            assert!(section.contains(part), "no {part:?} in the section {section}");
        }
    }
}

#[test]
fn the_readme_lists_the_reasons_in_their_order() {
    let readme = file("README.md");
    let part = readme.split("## Why does my job wait?").nth(1).expect("there is such a part");
    let part = part.split("\n## ").next().unwrap_or_default();
    let listed: Vec<&str> = part.split('`').skip(1).step_by(2).collect();
    let codes = Reason::ALL.map(Reason::name);
    let first = listed.iter().position(|word| *word == codes[0]).expect("the first is there");
    assert_eq!(listed[first..][..codes.len()], codes);
}
