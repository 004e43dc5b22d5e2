//! Tables that fit the screen: columns nobody misses go first, then the wordy one is wrapped.

use super::screen::{Hue, Ink, Screen};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width, presets};

/// Blanks between two columns.
const GAP: usize = 2;
/// A wrapped column narrower than this is not worth reading.
const MIN_WRAPPED: usize = 24;

/// One column: its title, and what may be done to it where room is short.
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
    /// Left out where room is short.
    Optional,
    /// Takes what room is left, on several lines if need be.
    Wrapped,
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

impl Column {
    /// The rightmost optional column is the first to go.
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
}

impl<T: Into<String>> From<T> for Shown {
    fn from(text: T) -> Self {
        Self { text: text.into(), hue: None }
    }
}

/// A table in the making.
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

    /// The table, or `nothing` in its place.
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
        for row in &self.rows {
            table.add_row(kept.iter().map(|index| cell(row.get(*index))));
        }
        let fixed: usize =
            kept.iter().filter(|i| self.columns[**i].fit != Fit::Wrapped).map(|i| widths[*i] + GAP).sum();
        for (place, index) in kept.iter().enumerate() {
            let (Some(column), spec) = (table.column_mut(place), self.columns[*index]) else { continue };
            let is_last = place + 1 == kept.len();
            column.set_padding((0, if is_last { 0 } else { GAP as u16 }));
            column.set_cell_alignment(spec.align);
            let room = screen.width.saturating_sub(fixed).max(MIN_WRAPPED).min(widths[*index].max(1));
            let inner = if spec.fit == Fit::Wrapped { room } else { widths[*index] };
            let outer = inner + if is_last { 0 } else { GAP };
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(outer as u16)));
        }
        table.lines().map(|line| format!("{}\n", trimmed(&line))).collect()
    }

    /// The columns there is room for.
    fn kept(&self, widths: &[usize], room: usize) -> Vec<usize> {
        let needed = |index: &usize| match self.columns[*index].fit {
            Fit::Wrapped => widths[*index].min(MIN_WRAPPED) + GAP,
            Fit::Whole | Fit::Optional => widths[*index] + GAP,
        };
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        while kept.iter().map(needed).sum::<usize>().saturating_sub(GAP) > room {
            let Some(place) = kept.iter().rposition(|index| self.columns[*index].fit == Fit::Optional) else { break };
            kept.remove(place);
        }
        // A column without a single word only costs room.
        kept.retain(|index| {
            self.columns[*index].fit != Fit::Optional || self.rows.iter().any(|row| !row[*index].text.is_empty())
        });
        kept
    }

    fn width(&self, index: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.text.chars().count());
        cells.chain([self.columns[index].title.chars().count()]).max().unwrap_or(0)
    }
}

fn cell(shown: Option<&Shown>) -> Cell {
    let Some(shown) = shown else { return Cell::new("") };
    // Control characters of a message would break the table, or play tricks on the terminal.
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

/// Without the blanks at the end, also where they stand before a reset of the colour.
fn trimmed(line: &str) -> String {
    line.trim_end().to_owned()
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
    fn a_narrow_one_leaves_out_what_is_optional_and_wraps_the_rest() {
        let text = sample().render(&Screen { width: 40, ink: Ink::Plain });
        assert!(!text.contains("queue"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.lines().count() > 2, "{text}");
    }
}
