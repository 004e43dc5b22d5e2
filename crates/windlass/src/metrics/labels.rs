//! Labels: where something happened. Bounded, so that no caller can fill a scraper's memory.

use crate::event::Event;
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};
use std::fmt;
use windlass_core::job::{Kind, QueueName, Tenant};

/// What everything is called that has no label set of its own.
pub(super) const OTHER: &str = "other";

/// Whether metrics tell tenants apart. Off unless asked for: it multiplies the label sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TenantLabel {
    /// Every series of a queue has the label `tenant`.
    On,
    /// Tenants are counted together.
    #[default]
    Off,
}

/// Queue, kind and perhaps tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) queue: QueueName,
    pub(super) kind: Kind,
    pub(super) tenant: Option<Tenant>,
}

impl Place {
    pub(super) fn of(event: &Event, tenants: TenantLabel) -> Self {
        let tenant = match tenants {
            TenantLabel::On => Some(event.tenant.clone()),
            TenantLabel::Off => None,
        };
        Self { queue: event.queue.clone(), kind: event.kind.clone(), tenant }
    }

    pub(super) fn other(tenants: TenantLabel) -> Self {
        let tenant = match tenants {
            TenantLabel::On => Some(Tenant::new(OTHER).expect("`other` is a name")),
            TenantLabel::Off => None,
        };
        Self {
            queue: QueueName::new(OTHER).expect("`other` is a name"),
            kind: Kind::new(OTHER).expect("`other` is a name"),
            tenant,
        }
    }
}

impl EncodeLabelSet for Place {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        ("queue", self.queue.as_str()).encode(encoder.encode_label())?;
        ("kind", self.kind.as_str()).encode(encoder.encode_label())?;
        self.tenant.as_ref().map_or(Ok(()), |tenant| ("tenant", tenant.as_str()).encode(encoder.encode_label()))
    }
}

/// A place, and one of a few words about what happened there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Labelled {
    pub(super) place: Place,
    pub(super) label: &'static str,
    pub(super) word: &'static str,
}

impl EncodeLabelSet for Labelled {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        EncodeLabelSet::encode(&self.place, encoder)?;
        (self.label, self.word).encode(encoder.encode_label())
    }
}
