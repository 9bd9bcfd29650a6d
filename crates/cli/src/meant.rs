//! A field that nobody knows, and which one may have been meant.

/// The field that a reader's message says is unknown, as it quotes it, and a hint.
pub(crate) fn unknown_field(message: &str) -> Option<(&str, String)> {
    let (field, known) = message.strip_prefix("unknown field ")?.split_once(", ")?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    Some((field, snapshot::did_you_mean(field.trim_matches('`'), &known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_as_the_reader_quotes_it() {
        let (field, hint) =
            unknown_field("unknown field `slot`, expected `slots` or `pool`").unwrap();
        assert!(field == "`slot`" && hint.contains("`slots`"), "{field}: {hint}");
        assert_eq!(unknown_field("invalid type: string"), None);
    }
}
