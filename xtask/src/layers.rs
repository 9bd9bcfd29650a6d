//! The architecture, as a table, and the check that the manifests agree with it.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::shell;

/// Each crate with the crates of ours that it may depend on, in reading order.
const ALLOWED: &[(&str, &[&str])] = &[
    ("cluster", &[]),
    ("model", &[]),
    ("decide", &["model"]),
    ("snapshot", &["model"]),
    // `snapshot` is for its examples, which read policies.
    ("sim", &["model", "decide", "snapshot"]),
    ("store", &["model", "cluster"]),
    ("proto", &["model"]),
    ("detect", &["model"]),
    ("server", &["model", "decide", "snapshot", "store", "proto", "detect"]),
    ("worker", &["model", "proto", "detect"]),
    ("checker", &[]),
    ("faults", &["proto", "checker"]),
    ("chaos", &["proto", "worker", "cluster", "checker", "faults"]),
    ("fair", &["cluster", "faults"]),
    ("seeds", &["model", "store", "proto", "server", "checker", "faults"]),
    (
        "cli",
        &[
            "model", "decide", "snapshot", "store", "proto", "server", "worker", "faults", "sim",
            "cluster",
        ],
    ),
    ("xtask", &["cluster"]),
];

/// Crates that depend on nobody else's code, except in their tests.
const PURE: &[&str] = &["model", "decide"];

/// Crates that test the product. A crate of the product depends on them in its tests alone, so that
/// the program that users run has none of their code.
const HARNESS: &[&str] = &["cluster", "checker", "faults", "chaos", "fair", "seeds", "xtask"];

/// Fails with one sentence for each dependency that the table does not allow.
pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata = ["cargo", "metadata", "--no-deps", "--format-version", "1"];
    let packages = packages(&shell::read(root, &metadata)?)?;
    let broken = broken(&packages, &Layers { allowed: ALLOWED, pure: PURE, harness: HARNESS });
    if broken.is_empty() {
        return Ok(());
    }
    bail!(broken.join("\n"));
}

#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    name: String,
    /// Needed by the tests alone.
    is_dev: bool,
    /// Found by its path; the others come from a registry.
    is_ours: bool,
}

fn packages(metadata: &str) -> Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).context("could not read the metadata")?;
    list(&metadata, "packages")?.iter().map(package).collect()
}

fn package(package: &Value) -> Result<Package> {
    let dependencies: Result<Vec<Dependency>> =
        list(package, "dependencies")?.iter().map(dependency).collect();
    Ok(Package { name: name(package)?, dependencies: dependencies? })
}

fn dependency(dependency: &Value) -> Result<Dependency> {
    Ok(Dependency {
        name: name(dependency)?,
        is_dev: dependency["kind"] == "dev",
        is_ours: dependency["source"].is_null(),
    })
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("the metadata has no list `{key}`"))
}

fn name(value: &Value) -> Result<String> {
    let name = value["name"].as_str().context("the metadata has something without a name")?;
    Ok(name.to_owned())
}

/// The rules for the manifests.
struct Layers<'a> {
    allowed: &'a [(&'a str, &'a [&'a str])],
    pure: &'a [&'a str],
    harness: &'a [&'a str],
}

/// One sentence for each thing that is not as the table says.
fn broken(packages: &[Package], layers: &Layers<'_>) -> Vec<String> {
    let mut broken: Vec<String> = Vec::new();
    for (name, _) in layers.allowed {
        if !packages.iter().any(|package| package.name == *name) {
            broken.push(format!("{name} is in the table of layers but is not a crate"));
        }
    }
    for package in packages {
        match layers.allowed.iter().find(|(name, _)| *name == package.name) {
            None => broken.push(format!(
                "{} is not in the table of layers; say in xtask/src/layers.rs what it may use",
                package.name
            )),
            Some((_, ours)) => {
                let refusals = package.dependencies.iter();
                broken.extend(refusals.filter_map(|to| refusal(&package.name, to, ours, layers)));
            }
        }
    }
    broken
}

/// Why the crate `from` may not depend on `to`, if it may not.
fn refusal(from: &str, to: &Dependency, ours: &[&str], layers: &Layers<'_>) -> Option<String> {
    let Dependency { name, is_dev, is_ours } = to;
    if *is_ours && !ours.contains(&name.as_str()) {
        return Some(format!("{from} may not depend on {name}; it may depend on {ours:?}"));
    }
    if layers.harness.contains(&name.as_str()) && !layers.harness.contains(&from) && !*is_dev {
        return Some(format!("{from} may depend on {name} in its tests alone"));
    }
    if !*is_ours && layers.pure.contains(&from) && !*is_dev {
        return Some(format!(
            "{from} may not depend on {name}; it may depend on {ours:?} and on nobody else's code"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Layers<'_> = Layers {
        allowed: &[("model", &[]), ("store", &[]), ("decide", &["model"])],
        pure: &["decide"],
        harness: &[],
    };

    /// A world in one line per crate: `decide: model serde dev:proptest`, ours by name.
    fn broken_in(text: &str) -> Vec<String> {
        broken_by(&TABLE, text)
    }

    fn broken_by(layers: &Layers<'_>, text: &str) -> Vec<String> {
        let named: Vec<&str> = text.lines().filter_map(|line| line.split(':').next()).collect();
        let packages: Vec<Package> = text
            .lines()
            .map(|line| {
                let (name, dependencies) = line.split_once(':').expect("a crate has a colon");
                let dependencies = dependencies.split_whitespace().map(|word| {
                    let name = word.strip_prefix("dev:").unwrap_or(word);
                    Dependency {
                        name: name.to_owned(),
                        is_dev: word != name,
                        is_ours: named.contains(&name),
                    }
                });
                Package { name: name.to_owned(), dependencies: dependencies.collect() }
            })
            .collect();
        broken(&packages, layers)
    }

    #[test]
    fn what_the_table_allows_is_allowed() {
        let broken = broken_in("model:\nstore: sqlx\ndecide: model dev:proptest");
        assert_eq!(broken, Vec::<String>::new());
    }

    #[test]
    fn a_crate_may_not_depend_on_a_crate_beside_it() {
        let broken = broken_in("model:\nstore:\ndecide: model store");
        assert_eq!(broken, ["decide may not depend on store; it may depend on [\"model\"]"]);
    }

    #[test]
    fn a_test_may_not_depend_on_a_crate_beside_it_either() {
        let broken = broken_in("model:\nstore: dev:decide\ndecide:");
        assert_eq!(broken, ["store may not depend on decide; it may depend on []"]);
    }

    #[test]
    fn a_pure_crate_may_not_depend_on_the_code_of_others() {
        let broken = broken_in("model:\nstore:\ndecide: model serde");
        assert_eq!(
            broken,
            ["decide may not depend on serde; \
              it may depend on [\"model\"] and on nobody else's code"]
        );
    }

    #[test]
    fn the_product_depends_on_a_harness_in_its_tests_alone() {
        let layers = Layers { harness: &["model"], ..TABLE };
        let broken = broken_by(&layers, "model:\nstore:\ndecide: model");
        assert_eq!(broken, ["decide may depend on model in its tests alone"]);
        let broken = broken_by(&layers, "model:\nstore:\ndecide: dev:model");
        assert_eq!(broken, Vec::<String>::new());
        let layers = Layers { harness: &["model", "decide"], ..TABLE };
        let broken = broken_by(&layers, "model:\nstore:\ndecide: model");
        assert_eq!(broken, Vec::<String>::new());
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_is_refused() {
        let broken = broken_in("model:\nstore:\ndecide:\nboard:");
        assert_eq!(
            broken,
            ["board is not in the table of layers; \
              say in xtask/src/layers.rs what it may use"]
        );
    }

    #[test]
    fn a_line_of_the_table_without_a_crate_is_refused() {
        let broken = broken_in("model:\ndecide:");
        assert_eq!(broken, ["store is in the table of layers but is not a crate"]);
    }

    #[test]
    fn every_refusal_is_told() {
        assert_eq!(broken_in("model: store\nstore: decide model\ndecide: serde").len(), 4);
    }

    #[test]
    fn the_table_is_in_reading_order() {
        for (index, (name, ours)) in ALLOWED.iter().enumerate() {
            for our in *ours {
                let is_above = ALLOWED[..index].iter().any(|(above, _)| above == our);
                assert!(is_above, "{name} comes before {our}, which it may depend on");
            }
        }
    }

    #[test]
    fn metadata_tells_ours_from_theirs_and_tests_from_the_rest() {
        let metadata = r#"{"packages": [{"name": "decide", "dependencies": [
            {"name": "model", "kind": null, "source": null},
            {"name": "proptest", "kind": "dev", "source": "registry+https://example.org"}
        ]}]}"#;
        let dependencies = vec![
            Dependency { name: "model".to_owned(), is_dev: false, is_ours: true },
            Dependency { name: "proptest".to_owned(), is_dev: true, is_ours: false },
        ];
        let expected = vec![Package { name: "decide".to_owned(), dependencies }];
        assert_eq!(packages(metadata).expect("the metadata is well formed"), expected);
    }

    #[test]
    fn metadata_without_packages_is_an_error() {
        assert!(packages("{}").is_err());
    }
}
