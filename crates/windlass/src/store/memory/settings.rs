//! Settings by their source.

use super::state::{Named, State};
use crate::store::{NODE_FOR, NodeSetting, Presence, Setting, SettingKey, SettingSource};
use windlass_core::Timestamp;

/// When a node that left was last seen.
const LEFT: Timestamp = Timestamp::from_millis(0);

pub(super) fn put(state: &mut State, key: &SettingKey, value: Option<&str>, now: Timestamp) {
    let place = (key.clone(), String::new());
    match value {
        Some(text) => {
            let setting =
                Setting { key: key.clone(), value: text.to_owned(), source: SettingSource::Operator, set_at: now };
            state.settings.insert(place, Named { setting, seen_at: now });
        }
        None => drop(state.settings.remove(&place)),
    }
    state.gates.reopen(now);
}

pub(super) fn put_of_node(state: &mut State, node: &str, settings: &[NodeSetting], now: Timestamp) {
    forget(state, node, now);
    for NodeSetting { key, value, origin } in settings {
        let source = SettingSource::Node { node: node.to_owned(), origin: origin.clone() };
        let setting = Setting { key: key.clone(), value: value.clone(), source, set_at: now };
        state.settings.insert((key.clone(), node.to_owned()), Named { setting, seen_at: now });
    }
    state.gates.reopen(now);
}

pub(super) fn touch(state: &mut State, node: &str, presence: Presence, now: Timestamp) {
    let seen_at = match presence {
        Presence::Alive => now,
        Presence::Leaving => LEFT,
    };
    state.settings.iter_mut().filter(|((_, of), _)| of == node).for_each(|(_, named)| named.seen_at = seen_at);
    if presence == Presence::Alive {
        forget(state, "", now);
    }
}

/// Removes the settings of one node, and of nodes that have not been seen for a while.
fn forget(state: &mut State, node: &str, now: Timestamp) {
    state.settings.retain(|(_, of), named| of.is_empty() || (of != node && named.seen_at >= now - NODE_FOR));
    state.gates.reopen(now);
}
