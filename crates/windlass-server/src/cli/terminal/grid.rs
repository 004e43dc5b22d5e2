//! Tables that fit the screen: optional columns are dropped first, then long texts are wrapped.

use crate::cli::terminal::screen::{Hue, Ink, Screen, width};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width, presets};

/// Blanks between two columns.
const GAP: usize = 2;
/// A text column narrower than this is not readable.
const MIN_TEXT: usize = 16;
/// Text columns shrink to this width before a table becomes wider than its screen.
const LEAST_TEXT: usize = 8;

/// One column: its title, and how it may shrink.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    fit: Fit,
    align: CellAlignment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Always shown, never wrapped.
    Whole,
    /// Dropped if the screen is too narrow.
    Optional,
    /// Takes the remaining width, on several lines if needed.
    Wrapped,
    /// Takes the remaining width, cut off at its end.
    Cut,
}

pub(crate) const fn text(title: &'static str) -> Column {
    Column { title, fit: Fit::Whole, align: CellAlignment::Left }
}

pub(crate) const fn number(title: &'static str) -> Column {
    Column { title, fit: Fit::Whole, align: CellAlignment::Right }
}

pub(crate) const fn wrapped(title: &'static str) -> Column {
    Column { title, fit: Fit::Wrapped, align: CellAlignment::Left }
}

pub(crate) const fn cut(title: &'static str) -> Column {
    Column { title, fit: Fit::Cut, align: CellAlignment::Left }
}

impl Fit {
    const fn gives_way(self) -> bool {
        matches!(self, Self::Wrapped | Self::Cut)
    }
}

impl Column {
    /// The rightmost optional column is dropped first.
    pub(crate) const fn optional(self) -> Self {
        Self { fit: Fit::Optional, ..self }
    }
}

/// A cell: its text and its colour.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    text: String,
    hue: Option<Hue>,
}

impl Shown {
    pub(crate) fn hued(text: impl Into<String>, hue: Hue) -> Self {
        Self { text: text.into(), hue: Some(hue) }
    }

    fn cut(&self, room: usize) -> Self {
        if width(&self.text) <= room {
            return self.clone();
        }
        let mut kept = String::new();
        for letter in self.text.chars() {
            kept.push(letter);
            if width(&kept) >= room {
                kept.pop();
                break;
            }
        }
        Self { text: format!("{}…", kept.trim_end()), hue: self.hue }
    }
}

impl<T: Into<String>> From<T> for Shown {
    fn from(text: T) -> Self {
        Self { text: text.into(), hue: None }
    }
}

/// A table.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<Shown>>,
}

impl Grid {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row: a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Shown>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table, or `nothing` if it has no rows.
    pub(crate) fn or(self, nothing: &str, screen: &Screen) -> String {
        if self.rows.is_empty() { format!("{nothing}\n") } else { self.render(screen) }
    }

    pub(crate) fn render(self, screen: &Screen) -> String {
        let widths: Vec<usize> = (0..self.columns.len()).map(|index| self.width(index)).collect();
        let kept = self.kept(&widths, screen.width);
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(screen.width).unwrap_or(u16::MAX));
        match screen.ink {
            Ink::Plain => table.force_no_tty(),
            Ink::Colour => table.enforce_styling(),
        };
        let title = |index: &usize| Cell::new(self.columns[*index].title).add_attribute(Attribute::Bold);
        table.set_header(kept.iter().map(title));
        let room = self.room(&kept, &widths, screen.width);
        for row in &self.rows {
            let cells = kept.iter().zip(&room).map(|(index, room)| match self.columns[*index].fit {
                Fit::Cut => cell(row.get(*index).map(|shown| shown.cut(*room)).as_ref()),
                Fit::Whole | Fit::Optional | Fit::Wrapped => cell(row.get(*index)),
            });
            table.add_row(cells);
        }
        for (place, index) in kept.iter().enumerate() {
            let Some(column) = table.column_mut(place) else { continue };
            let gap = if place + 1 == kept.len() { 0 } else { GAP };
            column.set_padding((0, gap as u16));
            column.set_cell_alignment(self.columns[*index].align);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed((room[place] + gap) as u16)));
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// The width of each column. Flexible columns share the width that the others leave, the narrow ones first.
    fn room(&self, kept: &[usize], widths: &[usize], screen: usize) -> Vec<usize> {
        let mut room: Vec<usize> = kept.iter().map(|index| widths[*index]).collect();
        let gives_way = |place: &usize| self.columns[kept[*place]].fit.gives_way();
        let (mut elastic, fixed): (Vec<usize>, Vec<usize>) = (0..kept.len()).partition(gives_way);
        let gaps = GAP * kept.len().saturating_sub(1);
        let mut left = screen.saturating_sub(gaps + fixed.iter().map(|place| room[*place]).sum::<usize>());
        elastic.sort_by_key(|place| room[*place]);
        for (index, place) in elastic.iter().enumerate() {
            let share = (left / (elastic.len() - index)).max(LEAST_TEXT);
            room[*place] = room[*place].min(share).max(1);
            left = left.saturating_sub(room[*place]);
        }
        room
    }

    /// The columns that fit.
    fn kept(&self, widths: &[usize], room: usize) -> Vec<usize> {
        let needed = |index: &usize| match self.columns[*index].fit {
            Fit::Wrapped | Fit::Cut => widths[*index].min(MIN_TEXT) + GAP,
            Fit::Whole | Fit::Optional => widths[*index] + GAP,
        };
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        while kept.iter().map(needed).sum::<usize>().saturating_sub(GAP) > room {
            let Some(place) = kept.iter().rposition(|index| self.columns[*index].fit == Fit::Optional) else { break };
            kept.remove(place);
        }
        // An empty column only takes space.
        kept.retain(|index| {
            self.columns[*index].fit != Fit::Optional || self.rows.iter().any(|row| !row[*index].text.is_empty())
        });
        kept
    }

    fn width(&self, index: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| width(&cell.text));
        cells.chain([width(self.columns[index].title)]).max().unwrap_or(0)
    }
}

fn cell(shown: Option<&Shown>) -> Cell {
    let Some(shown) = shown else { return Cell::new("") };
    // Control characters in a message could break the table or control the terminal.
    let clean: String = shown.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let cell = Cell::new(clean);
    match shown.hue {
        None => cell,
        Some(Hue::Good) => cell.fg(Color::Green),
        Some(Hue::Warn) => cell.fg(Color::Yellow),
        Some(Hue::Bad) => cell.fg(Color::Red),
        Some(Hue::Live) => cell.fg(Color::Cyan),
        Some(Hue::Faint) => cell.add_attribute(Attribute::Dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Grid {
        let mut grid = Grid::new([number("id"), text("state"), text("queue").optional(), wrapped("error")]);
        grid.row(["1".into(), "failed".into(), "email".into(), "the mailbox does not exist and never will".into()]);
        grid
    }

    #[test]
    fn a_wide_screen_shows_all_on_one_line() {
        let screen = Screen { width: 100, ink: Ink::Plain };
        assert_eq!(sample().render(&screen).lines().count(), 2);
    }

    #[test]
    fn two_long_texts_share_the_room() {
        let mut grid = Grid::new([number("id"), wrapped("notes"), cut("next")]);
        grid.row(["1".into(), "word ".repeat(30).into(), "in 4m (retry 3/3: backoff 4m)".into()]);
        let text = grid.render(&Screen { width: 80, ink: Ink::Plain });
        assert!(text.contains("in 4m (retry 3/3: backoff 4m)"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn wide_letters_take_two_places() {
        let mut grid = Grid::new([number("id"), cut("error")]);
        grid.row(["1".into(), "接続が拒否されました".into()]);
        let text = grid.render(&Screen { width: 20, ink: Ink::Plain });
        assert_eq!(text.lines().nth(1), Some(" 1  接続が拒否され…"));
    }

    #[test]
    fn a_narrow_one_leaves_out_what_is_optional_and_wraps_the_rest() {
        let text = sample().render(&Screen { width: 34, ink: Ink::Plain });
        assert!(!text.contains("queue"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 34), "{text}");
        assert!(text.lines().count() > 2, "{text}");
    }
}
