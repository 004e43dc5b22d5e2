//! Text from handlers, remote workers and HTTP responses, made valid for every store before any store sees it. No text
//! may prevent the commit of an outcome. Pure.

use crate::job::Payload;
use crate::json_text;
use windlass_core::sealed::looks_sealed;

/// Longest class, message or note kept, in bytes.
pub const MAX_TEXT: usize = 8 * 1024;
/// Longest stack trace kept, in bytes.
pub const MAX_TRACE: usize = 32 * 1024;
/// Largest result kept with a job, in bytes of JSON text.
pub const MAX_RESULT: usize = 64 * 1024;

/// Stands before a text that looks like a sealed value: such a text could not be opened, and no list could show it.
const NOT_SEALED: &str = "(not sealed) ";

/// The text as it is stored: cut at [`MAX_TEXT`], without the NULs that Postgres refuses.
pub(crate) fn clean(text: &str) -> String {
    clean_to(MAX_TEXT, text)
}

/// The stack trace as it is stored: cut at [`MAX_TRACE`]; none if it is empty.
pub(crate) fn clean_trace(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| clean_to(MAX_TRACE, text))
}

fn clean_to(most: usize, text: &str) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    if looks_sealed(text) {
        return clean_to(most, &format!("{NOT_SEALED}{text}"));
    }
    if !text.contains('\0') {
        return text.to_owned();
    }
    // The replacement character is longer than a NUL, so the text is cut again.
    clean_to(most, &text.replace('\0', "\u{FFFD}"))
}

/// Note and result as they are stored. A result that cannot be stored is left out, and the note says so. The work is
/// done in both cases and must not run again.
pub(crate) fn note_and_result(note: Option<&str>, result: Option<Payload>) -> (Option<String>, Option<Payload>) {
    let problem = result.as_deref().and_then(problem_of);
    let result = result.filter(|_| problem.is_none());
    let note = match (note.map(clean), problem) {
        (note, None) => note,
        (None, Some(problem)) => Some(problem),
        (Some(note), Some(problem)) => Some(clean(&format!("{problem}\n{note}"))),
    };
    (note, result)
}

fn problem_of(result: &str) -> Option<String> {
    if result.len() > MAX_RESULT {
        return Some(format!("the result of {} bytes was not kept: at most {MAX_RESULT} are", result.len()));
    }
    if looks_sealed(result) {
        return Some("the result was not kept: it begins like a value that is sealed".into());
    }
    json_text::fault(result).map(|why| format!("the result was not kept: it {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payload(text: &str) -> Option<Payload> {
        Some(text.into())
    }

    proptest! {
        #[test]
        fn what_is_kept_is_short_and_has_no_nul(text in "(\\PC|\0){0,40}", times in 0_usize..600) {
            let text = text.repeat(times);
            let kept = clean(&text);
            prop_assert!(kept.len() <= MAX_TEXT && !kept.contains('\0'));
            prop_assert_eq!(clean(&kept), kept.clone(), "cleaning twice changes nothing");
            if text.len() <= MAX_TEXT && !text.contains('\0') {
                prop_assert_eq!(kept, text);
            }
        }
    }

    #[test]
    fn no_text_or_result_of_a_worker_passes_for_a_sealed_value() {
        for text in ["windlass:sealed:1:-:k1:AAAA", "windlass:sealed:1:broken", "\"windlass:sealed:1:-:k1:AAAA\""] {
            let kept = clean(text);
            assert!(!looks_sealed(&kept) && kept.ends_with(text), "{kept}");
            assert_eq!(clean(&kept), kept);
            assert!(!looks_sealed(&clean_trace(text).unwrap()));
        }
        let (note, result) = note_and_result(None, payload("\"windlass:sealed:1:-:k1:AAAA\""));
        assert!(result.is_none() && note.unwrap().contains("was not kept"));
    }

    #[test]
    fn a_trace_is_kept_up_to_its_limit_and_an_empty_one_is_none() {
        assert_eq!(clean_trace(" \n"), None);
        assert_eq!(clean_trace("at main.rs:1\0").as_deref(), Some("at main.rs:1\u{FFFD}"));
        assert_eq!(clean_trace(&"é".repeat(MAX_TRACE)).map(|kept| kept.len()), Some(MAX_TRACE));
    }

    #[test]
    fn a_result_that_is_json_is_kept_as_it_is() {
        for text in ["null", "42", r#"{"text":"a\u0000b"}"#, &format!("\"{}\"", "x".repeat(MAX_RESULT - 2))] {
            assert_eq!(note_and_result(None, payload(text)), (None, payload(text)));
        }
    }

    #[test]
    fn a_result_that_cannot_be_kept_is_named_in_the_note() {
        for text in ["", "nonsense", "\"a\0b\"", &format!("\"{}\"", "x".repeat(MAX_RESULT - 1))] {
            let (note, result) = note_and_result(Some("sent"), payload(text));
            assert_eq!(result, None);
            let note = note.unwrap();
            assert!(note.starts_with("the result ") && note.ends_with("\nsent"), "{note}");
        }
    }
}
