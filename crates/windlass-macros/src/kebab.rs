//! Kebab-case: the default kind of a type.

/// `SendEmail` as `send-email`, `HTTPCall` as `http-call`, `Sha256Sum` as `sha256-sum`.
pub(crate) fn kebab(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::new();
    for (place, letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| letters.get(place));
        let after = letters.get(place + 1);
        let ends_lower = before.is_some_and(|c| c.is_lowercase() || c.is_ascii_digit());
        let ends_acronym = before.is_some_and(|c| c.is_uppercase()) && after.is_some_and(|c| c.is_lowercase());
        if letter.is_uppercase() && (ends_lower || ends_acronym) {
            text.push('-');
        }
        match letter {
            '_' => text.push('-'),
            letter => text.extend(letter.to_lowercase()),
        }
    }
    text.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::kebab;

    #[test]
    fn words_of_a_types_name_are_joined_by_dashes() {
        for (name, kind) in [
            ("Email", "email"),
            ("SendEmail", "send-email"),
            ("HTTPCall", "http-call"),
            ("CallHTTP", "call-http"),
            ("Sha256Sum", "sha256-sum"),
            ("A", "a"),
            ("ABTest", "ab-test"),
            ("Send_Email", "send-email"),
        ] {
            assert_eq!(kebab(name), kind, "{name}");
        }
    }
}
