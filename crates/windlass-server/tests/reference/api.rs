//! Every operation and schema of the OpenAPI document.

use crate::sources::{head, row};
use serde_json::Value;
use std::fmt::Write as _;

const INTRO: &str = "\
The same as `/openapi.json` and `/docs` of a running server. [The API by example](../guides/api.md) shows the calls.
";
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub(crate) fn page(text: &str) -> String {
    let document: Value = serde_json::from_str(text).unwrap();
    let mut page = INTRO.to_owned();
    for tag in document["tags"].as_array().unwrap() {
        let name = tag["name"].as_str().unwrap();
        let _ = write!(page, "\n## {}\n\n{}\n", capital(name), plain(&tag["description"]));
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in METHODS.iter().filter(|method| item[**method]["tags"][0] == name) {
                operation(&mut page, method, path, &item[*method]);
            }
        }
    }
    page.push_str("\n## Schemas\n");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let _ = write!(page, "\n### {name}\n\n{}\n", plain(&schema["description"]));
        if let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) {
            let _ = write!(page, "\n{}", head(["field", "type", "what it is"]));
            for (field, of) in fields {
                page.push_str(&row([&format!("`{field}`"), &kind(of), &plain(&of["description"])]));
            }
        }
    }
    page
}

fn operation(page: &mut String, method: &str, path: &str, operation: &Value) {
    let _ = write!(page, "\n### {} `{path}`\n\n{}\n", method.to_uppercase(), plain(&operation["summary"]));
    let more = plain(&operation["description"]);
    if !more.is_empty() {
        let _ = write!(page, "\n{more}\n");
    }
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !parameters.is_empty() {
        let _ = write!(page, "\n{}", head(["parameter", "in", "type", "what it is"]));
        for one in parameters {
            let name = format!("`{}`", plain(&one["name"]));
            page.push_str(&row([&name, &plain(&one["in"]), &kind(&one["schema"]), &plain(&one["description"])]));
        }
    }
    let body =
        operation["requestBody"]["content"].as_object().into_iter().flatten().map(|(_, body)| kind(&body["schema"]));
    if let Some(body) = body.into_iter().next() {
        let _ = write!(page, "\nBody: {body}\n");
    }
    let answers = operation["responses"].as_object().into_iter().flatten().map(|(status, answer)| {
        let of = answer["content"].as_object().into_iter().flatten().map(|(_, body)| kind(&body["schema"])).next();
        of.map_or_else(|| status.clone(), |of| format!("{status} {of}"))
    });
    let _ = write!(page, "\nAnswers: {}\n", answers.collect::<Vec<_>>().join(", "));
}

/// A schema in a word: its name, or its type.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(forms) = schema[several].as_array() {
            let forms: Vec<String> = forms.iter().map(kind).collect();
            return forms.join(" or ");
        }
    }
    let words = match schema["type"].as_array() {
        Some(kinds) => kinds.iter().map(plain).collect::<Vec<_>>().join(" or "),
        None => plain(&schema["type"]),
    };
    match words.as_str() {
        "array" => format!("list of {}", kind(&schema["items"])),
        "" => "any".into(),
        _ => words,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}
