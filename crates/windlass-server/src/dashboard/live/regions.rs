//! The parts of a page that change: between `<!--live name-->` and `<!--/live name-->`.

/// The live regions of a page, by name.
pub(super) fn regions(html: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some((_, after)) = rest.split_once("<!--live ") {
        let Some((name, body)) = after.split_once("-->") else { break };
        let end = format!("<!--/live {name}-->");
        let Some((body, after)) = body.split_once(&end) else { break };
        found.push((name, body));
        rest = after;
    }
    found
}

/// The region without the texts of times: they change every second by themselves, and browsers count them on.
pub(super) fn without_times(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find("<time ") {
        let (before, time) = rest.split_at(start);
        text.push_str(before);
        let Some((tag, after)) = time.split_once('>') else { break };
        text.push_str(tag);
        rest = after.split_once("</time>").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_found_by_name() {
        let page = "a<!--live x-->one<!--/live x-->b<!--live y--><b>two</b><!--/live y-->";
        assert_eq!(regions(page), [("x", "one"), ("y", "<b>two</b>")]);
        assert!(regions("<!--live x-->never ends").is_empty());
    }

    #[test]
    fn text_of_jobs_cannot_end_a_region() {
        // Templates escape `<`.
        assert_eq!(regions("<!--live x-->&lt;!--/live x--&gt;<!--/live x-->").len(), 1);
    }

    #[test]
    fn a_time_that_only_grew_older_is_no_change() {
        let at = |text: &str| without_times(&format!("due <time data-ms=\"5\">{text}</time>, and so on"));
        assert_eq!(at("1s ago"), at("2s ago"));
        assert_ne!(at("1s ago"), without_times("due <time data-ms=\"6\">1s ago</time>, and so on"));
    }
}
