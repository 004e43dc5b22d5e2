//! The installation as a whole: workers, alerts, audit, tokens, settings, and the store's health.

mod alerts;
mod audit;
mod health;
mod sessions;
mod settings;
mod tokens;
mod workers;

pub use alerts::{Alerts, RuleFault};
pub use audit::AuditLog;
pub use sessions::Sessions;
pub use settings::{NodeSettingsPut, Settings, SettingsFault};
pub use tokens::Tokens;
pub use workers::Workers;
