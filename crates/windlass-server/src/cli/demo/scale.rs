//! The one thing the demo changes: a minute of waiting takes a second.

use windlass_core::backoff::Backoff;
use windlass_core::policy::{Partial, Preset, Role};
use windlass_core::{Millis, Policy};

/// How much faster the demo's delays pass.
pub(super) const FACTOR: u64 = 60;

/// A preset with its delays divided; all else is as it is.
pub(super) fn preset(name: &str, role: Role) -> Policy {
    let preset = Preset::find(name).expect("the demo uses presets that exist");
    let real = Partial::resolve(&[preset.partial()], &role.default_give_up_on()).expect("presets are whole");
    Policy { backoff: divided(&real.backoff), max_delay: real.max_delay.map(faster), ..real }
}

fn divided(backoff: &Backoff) -> Backoff {
    match backoff {
        Backoff::Exponential { base, factor } => Backoff::Exponential { base: faster(*base), factor: *factor },
        Backoff::Linear { base } => Backoff::Linear { base: faster(*base) },
        Backoff::Fixed { base } => Backoff::Fixed { base: faster(*base) },
        Backoff::Fibonacci { base } => Backoff::Fibonacci { base: faster(*base) },
        Backoff::Steps(steps) => Backoff::Steps(steps.iter().map(|step| faster(*step)).collect()),
    }
}

fn faster(span: Millis) -> Millis {
    Millis::new(span.get() / FACTOR)
}

/// What a delay of the demo stands for.
pub(super) fn for_real(span: Millis) -> Millis {
    Millis::new(span.get() * FACTOR)
}
