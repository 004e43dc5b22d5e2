//! Masks what differs from run to run: times, durations and ages. Everything else is compared.

/// Titles of columns whose cells differ.
const COLUMNS: [&str; 3] = ["duration", "last", "when"];
/// How many letters of a cut text are compared: its length depends on the cells next to it.
const CUT: usize = 12;

/// The text with marks in place of what differs.
pub(crate) fn masked(text: &str) -> String {
    let mut lines = Vec::new();
    let mut hidden: Vec<std::ops::Range<usize>> = Vec::new();
    for line in text.trim_end().lines() {
        let line = without_moments(line.trim_end());
        if line.is_empty() {
            hidden.clear();
        }
        let heads = columns(&line);
        if !heads.is_empty() {
            hidden = heads;
        }
        lines.push(collapsed(&without(&line, &hidden)));
    }
    lines.join("\n")
}

/// The positions of columns with such titles: up to the next title. A number is below the end of its title.
fn columns(line: &str) -> Vec<std::ops::Range<usize>> {
    let find = |title: &&str| {
        let from = line.find(&format!("  {title}  "))? + 2;
        let next = from + title.len() + line[from + title.len()..].find(|c: char| c != ' ')?;
        Some(if *title == "duration" { from..from + title.len() } else { from..next })
    };
    COLUMNS.iter().filter_map(find).collect()
}

fn without(line: &str, hidden: &[std::ops::Range<usize>]) -> String {
    line.chars()
        .enumerate()
        .map(|(at, c)| if hidden.iter().any(|range| range.contains(&at)) { ' ' } else { c })
        .collect()
}

/// Times such as `2026-01-01 12:00:00` or `2026-01-01T12:00:00.123Z`, digit by digit.
fn without_moments(line: &str) -> String {
    let mut chars: Vec<char> = line.chars().collect();
    let shape = "dddd-dd-dd?dd:dd:dd";
    for start in 0..chars.len().saturating_sub(shape.len() - 1) {
        let fits = shape.chars().zip(&chars[start..]).all(|(wanted, c)| match wanted {
            'd' => c.is_ascii_digit(),
            '?' => matches!(c, ' ' | 'T'),
            other => *c == other,
        });
        if fits {
            let end = start + shape.len();
            chars[start..end].fill('0');
            if chars.get(end) == Some(&'.') {
                chars[end + 1..].iter_mut().take_while(|c| c.is_ascii_digit()).for_each(|c| *c = '0');
            }
        }
    }
    chars.into_iter().collect()
}

/// The positions of columns depend on the columns before them: gaps count as two blanks, and cut texts as their
/// beginnings.
fn collapsed(line: &str) -> String {
    let words: Vec<&str> = line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    let text = words.join("  ");
    match text.strip_suffix('…') {
        None => text,
        Some(cut) => {
            let (head, last) = cut.rsplit_once("  ").unwrap_or(("", cut));
            format!("{head}  {}…", last.chars().take(CUT).collect::<String>())
        }
    }
}

#[test]
fn only_what_differs_is_masked() {
    let one = "a  duration  b\nx       1ms  y\n\n2026-11-15 22:34:12 1ms";
    let two = "a  duration  b\nx      12ms  y\n\n2027-01-01 00:00:00 1ms";
    assert_eq!(masked(one), masked(two));
    assert_ne!(masked("in 200ms"), masked("in 100ms"));
    let (now, later) =
        ("k  last    m\na  now     cannot connect: conn…", "k  last    m\na  3s ago  cannot connect: co…");
    assert_eq!(masked(now), masked(later));
    assert_ne!(masked(now), masked("k  last    m\na  now     cannot resolve: conn…"));
}
