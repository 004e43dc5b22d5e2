//! The only thing the demo changes: a minute of waiting takes a second.

use windlass_core::backoff::Backoff;
use windlass_core::policy::{Partial, Preset, Role};
use windlass_core::{Millis, Policy};

/// How much shorter the demo's delays are.
pub(super) const FACTOR: u64 = 60;

/// A preset with its delays divided; the rest is unchanged.
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

/// The real delay for a delay of the demo.
pub(super) fn for_real(span: Millis) -> Millis {
    Millis::new(span.get() * FACTOR)
}
