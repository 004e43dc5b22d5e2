//! The supplied Prometheus rules are valid and name existing metrics.

use super::metrics::{full_scrape, mentioned, names};
use std::collections::BTreeMap;
use windlass::Millis;
use windlass::alert::Measure;

const RULES: &str = include_str!("../../../../../deploy/prometheus/windlass-alerts.yml");

/// The fields of one rule. Fields of `labels` and `annotations` are named like `labels.severity`.
type Fields = BTreeMap<String, String>;

/// Reads the part of YAML that rule files use: maps by indentation, one value per line, plain or in quotes.
/// Anything else is an error with its line.
fn parse(text: &str) -> Result<Vec<Fields>, String> {
    let mut rules: Vec<Fields> = Vec::new();
    let mut section = String::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let content = line.trim_start();
        if content.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}: {line}", number + 1);
        let (key, value) = content.split_once(':').ok_or_else(|| wrong("no key"))?;
        let value = scalar(value).ok_or_else(|| wrong("not one value"))?;
        match (line.len() - content.len(), key, value.is_empty()) {
            (0, "groups", true) | (2, "- name", false) | (4, "rules", true) => {}
            (6, "- alert", false) => {
                section.clear();
                rules.push(Fields::from([("alert".to_owned(), value)]));
            }
            (8, "expr" | "for", false) => put(&mut rules, key, value).ok_or_else(|| wrong("no rule, or twice"))?,
            (8, "labels" | "annotations", true) => section = format!("{key}."),
            (10, _, false) if !section.is_empty() => {
                put(&mut rules, &format!("{section}{key}"), value).ok_or_else(|| wrong("no rule, or twice"))?;
            }
            _ => return Err(wrong("not a place for this")),
        }
    }
    Ok(rules)
}

fn put(rules: &mut [Fields], key: &str, value: String) -> Option<()> {
    rules.last_mut()?.insert(key.to_owned(), value).is_none().then_some(())
}

/// A value after a colon: empty, in double quotes, or plain without characters that are special in YAML.
fn scalar(text: &str) -> Option<String> {
    let Some(text) = text.strip_prefix(' ') else { return text.is_empty().then(String::new) };
    if let Some(quoted) = text.strip_prefix('"') {
        let inner = quoted.strip_suffix('"')?;
        return (!inner.contains(['"', '\\'])).then(|| inner.to_owned());
    }
    let is_plain =
        !text.contains(": ") && !text.contains(" #") && !text.starts_with(['{', '[', '&', '*', '!', '|', '>']);
    is_plain.then(|| text.to_owned())
}

/// Whether the brackets and quotes of an expression are balanced.
fn is_balanced(expr: &str) -> bool {
    let mut open = Vec::new();
    let mut is_text = false;
    for c in expr.chars() {
        match c {
            '"' => is_text = !is_text,
            _ if is_text => {}
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    open.is_empty() && !is_text
}

#[tokio::test]
async fn the_supplied_alert_rules_parse_and_name_existing_metrics() {
    let known = names(&full_scrape().await);
    let rules = parse(RULES).unwrap();
    assert!(rules.len() > Measure::ALL.len(), "the five rules of the server, and more");
    let mut alerts: Vec<&str> = rules.iter().map(|rule| rule["alert"].as_str()).collect();
    alerts.dedup();
    assert_eq!(alerts.len(), rules.len(), "each name once");
    for rule in &rules {
        let name = &rule["alert"];
        for field in ["expr", "labels.severity", "annotations.summary", "annotations.runbook"] {
            assert!(rule.get(field).is_some_and(|value| value.len() > 3), "{name} has no {field}");
        }
        assert!(["page", "warn"].contains(&rule["labels.severity"].as_str()), "{name}");
        assert!(rule.get("for").is_none_or(|span| Millis::parse(span).is_ok()), "{name}");
        let expr = &rule["expr"];
        assert!(is_balanced(expr), "{name}: {expr}");
        let named = mentioned(expr);
        assert!(!named.is_empty() && named.is_subset(&known), "{name} uses {named:?}; existing metrics are {known:?}");
    }
}

#[test]
fn an_invalid_rule_file_is_refused() {
    for (text, line) in [
        ("groups:\n  - name: a\n    rules:\n      - alert: A\n       expr: b", 5),
        ("groups:\n  - name: a\n    rules:\n      - alert: A\n        expr: a: b", 5),
        ("groups:\n  - name: a\n    rules:\n      - alert: A\n        annotations:\n          summary: \"a", 6),
        ("groups:\n  - name: a\n    rules:\n      - alert: A\n        expr: a\n        expr: b", 6),
        ("groups:\n  - name: a\n    rules:\n      - alert: A\n        exp: a", 5),
        ("groups\n", 1),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(&format!("line {line}: ")), "{error}");
    }
    assert!(is_balanced("a{b=\")\"}[5m]") && !is_balanced("a(b[)]") && !is_balanced("a(b"));
}
