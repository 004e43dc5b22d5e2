//! Who sends.

use super::{Writer, text_fact};
use crate::config::TelemetrySettings;

/// Facts about this node.
#[derive(Debug, Clone)]
pub(in crate::telemetry) struct Resource(Vec<(String, String)>);

/// The configured facts, the name of the service, and the name of the node: without it, a collector could not tell the
/// counters of two nodes apart.
pub(in crate::telemetry) fn resource(settings: &TelemetrySettings, node: &str) -> Resource {
    let mut facts = vec![
        ("service.name".to_owned(), settings.service_name.clone()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id".to_owned(), node.to_owned()),
    ];
    for (name, value) in &settings.resource {
        match facts.iter_mut().find(|(known, _)| known == name) {
            Some((known, _)) if known == "service.name" => {}
            Some((_, known)) => known.clone_from(value),
            None => facts.push((name.clone(), value.clone())),
        }
    }
    Resource(facts)
}

pub(super) fn write(to: &mut impl Writer, resource: &Resource) {
    to.messages((1, "attributes"), &resource.0, |to, (name, value)| text_fact(to, (name, value)));
}
