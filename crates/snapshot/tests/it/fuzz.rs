//! Any text gets an answer, and never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::mutations::any_mutation;
use super::worlds::any_world;
use super::{EXAMPLES, example, parsed, said};

/// An accepted text round-trips. A rejected one has a one-line error.
fn answered(text: &str) -> Result<(), TestCaseError> {
    match snapshot::parse(text) {
        Ok(snapshot) => prop_assert_eq!(parsed(&snapshot::write_text(&snapshot)), snapshot),
        Err(error) => {
            let message = error.to_string();
            prop_assert!(!message.is_empty() && message.len() < 1_000, "{}", message);
            prop_assert!(!message.contains(char::is_control), "{:?}", message);
            prop_assert!(error.hint().is_none_or(|hint| !hint.is_empty()), "{}", said(&error));
        }
    }
    Ok(())
}

fn token() -> impl Strategy<Value = &'static str> {
    select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "null",
        "true",
        "0",
        "-1",
        "1e999",
        "1.5",
        "7",
        "\"jobs\":",
        "\"id\":",
        "\"policy\":",
        "\"aging\"",
        "\"workers\":",
        "\"needs\":",
        " ",
        "\n",
        "\u{feff}",
        "\u{0}",
        "{\"jobs\":[{\"id\":1",
        "{\"policy\":{",
        "\"\"",
    ])
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        answered(&text)?;
        let _ = snapshot::policy(&text);
    }

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        answered(&text)?;
        answered(&format!("{{{text:?}: 1}}"))?;
        answered(&format!("{{\"jobs\": [{{\"id\": {text:?}}}]}}"))?;
        let _ = snapshot::policy(&text);
    }

    #[test]
    fn any_sequence_of_tokens_is_answered(tokens in vec(token(), 0..30)) {
        answered(&tokens.concat())?;
        let _ = snapshot::policy(&tokens.concat());
    }

    #[test]
    fn any_cut_of_an_example_is_answered(
        name in select(EXAMPLES.to_vec()),
        end in any::<Index>(),
    ) {
        let text = example(name);
        let letters = text.chars().take(end.index(text.len()));
        answered(&letters.collect::<String>())?;
    }

    #[test]
    fn any_broken_world_is_answered(
        world in any_world(),
        mutations in vec(any_mutation(), 1..4),
    ) {
        let mut world = world;
        for mutation in mutations {
            if world.as_object().is_some_and(|fields| !fields.is_empty()) {
                mutation.apply(&mut world);
            }
        }
        answered(&world.to_string())?;
    }

    #[test]
    fn any_broken_example_is_answered(
        name in select(EXAMPLES.to_vec()),
        mutation in any_mutation(),
    ) {
        let mut world = serde_json::from_str(&example(name)).expect("an example is JSON");
        mutation.apply(&mut world);
        answered(&world.to_string())?;
    }
}
