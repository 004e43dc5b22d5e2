//! Text in HTML.

use std::fmt::Write as _;

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escapes a text and shows parts between backticks as code.
pub(super) fn prose(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in escape(text).split('`').enumerate() {
        if index % 2 == 0 {
            html.push_str(part);
        } else {
            let _ = write!(html, "<code>{part}</code>");
        }
    }
    html
}

/// The text of rendered HTML, without its tags.
pub(super) fn plain(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut in_tag = false;
    for character in html.chars() {
        match character {
            '<' => in_tag = true,
            '>' => in_tag = false,
            _ if !in_tag => text.push(character),
            _ => {}
        }
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
