//! The known word nearest to a misspelt one, for helpful error messages.

/// The word in `known` that `word` was most likely meant to be; none if no word is close.
#[must_use]
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // A longer word is not a typo, and the cost of comparing grows with the square of its length.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let best = known.iter().map(|k| (distance(&word, &k.to_lowercase()), *k)).min_by_key(|(d, _)| *d)?;
    let tolerated = (word.chars().count() / 3).max(1);
    (best.0 <= tolerated).then_some(best.1)
}

/// ` (did you mean …?)`, or nothing.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or_else(String::new, |k| format!(" (did you mean `{k}`?)"))
}

/// How many letters must be changed, added, removed or swapped with a neighbour to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_nonsense_finds_none() {
        let known = ["base", "factor", "maxDelay", "maxRetries"];
        assert_eq!(nearest("bsae", &known), Some("base"));
        assert_eq!(nearest("maxretries", &known), Some("maxRetries"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest(&"base".repeat(100), &known), None);
    }
}
