//! Alerts: which conditions hold now, which held before, and the rules.

use crate::alert::notice::test_notice;
use crate::alert::{Operator, Rule, RuleError, default_rules, stored};
use crate::client::windlass::{BY_LIBRARY, Windlass};
use crate::store::{Alert, Atomicity, Audit, Enqueued, Setting, SettingKey, SettingSource, StoreError};
use serde_json::{Map, Value};
use windlass_core::JobId;

/// Alerts of the whole installation. Made by [`Windlass::alerts`].
#[derive(Debug, Clone)]
pub struct Alerts<'a> {
    windlass: &'a Windlass,
    by: String,
}

/// Why a rule was not stored.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RuleFault {
    /// A field is wrong.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Windlass {
    /// The alerts of the whole installation.
    ///
    /// ```
    /// use windlass::client::AlertStatus;
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let alerts = windlass.alerts().list().await?;
    /// assert!(!alerts.iter().any(|alert| alert.status == AlertStatus::Firing));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn alerts(&self) -> Alerts<'_> {
        Alerts { windlass: self, by: BY_LIBRARY.into() }
    }
}

impl Alerts<'_> {
    /// Who acts, for the audit; `library` if not set.
    #[must_use]
    pub fn by(self, name: impl Into<String>) -> Self {
        Self { by: name.into(), ..self }
    }

    /// All alerts: pending, firing and resolved.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<Alert>, StoreError> {
        self.windlass.store().alerts().await
    }

    /// The rules that the installation's nodes judge, with who set each; `None` for the default rules. Those of nodes'
    /// files replace the default rules; an operator's are added to them, change them, or turn them off, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn rules(&self) -> Result<Vec<(Rule, Option<SettingSource>)>, StoreError> {
        let settings = self.windlass.store().stored_settings().await?;
        let own = without_operators(&settings);
        let mut rules = stored::with_operators(&own, &settings);
        rules.sort_by(|a, b| a.name.cmp(&b.name));
        let source = |rule: &Rule| {
            let is_meant = |key: &SettingKey| matches!(key, SettingKey::Alert { name } if *name == rule.name);
            let mut found = settings.iter().filter(|setting| is_meant(&setting.key)).map(|setting| &setting.source);
            let operators = found.clone().find(|source| **source == SettingSource::Operator);
            operators.or_else(|| found.next()).cloned()
        };
        Ok(rules.into_iter().map(|rule| (rule.clone(), source(&rule))).collect())
    }

    /// The rules that operators turned off, as they would be judged otherwise.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn rules_turned_off(&self) -> Result<Vec<Rule>, StoreError> {
        let settings = self.windlass.store().stored_settings().await?;
        let mut own = without_operators(&settings);
        own.retain(|rule| stored::is_turned_off(&settings, &rule.name));
        Ok(own)
    }

    /// Adds a rule, or changes the one of that name. All nodes judge it within seconds, without a restart.
    ///
    /// # Errors
    /// The field that is wrong, or a store that cannot be written to.
    pub async fn set_rule(&self, name: &str, fields: &Map<String, Value>) -> Result<Rule, RuleFault> {
        let rule = Rule::from_json(name, fields)?;
        self.put(name, Some(&rule.to_json()), "set alert rule").await?;
        Ok(rule)
    }

    /// Disables a rule, whoever set it, until it is set or reset. Returns whether there is such a rule.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn turn_off_rule(&self, name: &str) -> Result<bool, StoreError> {
        let settings = self.windlass.store().stored_settings().await?;
        let rules = stored::with_operators(&without_operators(&settings), &settings);
        let is_known = rules.iter().any(|rule| rule.name == name) || stored::is_turned_off(&settings, name);
        if is_known {
            self.put(name, Some(&stored::off()), "turn off alert rule").await?;
        }
        Ok(is_known)
    }

    /// Removes what operators set for a rule: a node's own rule or the default rule of that name is judged again.
    /// Returns whether an operator had set it.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn reset_rule(&self, name: &str) -> Result<bool, StoreError> {
        let settings = self.windlass.store().stored_settings().await?;
        let is_set = settings.iter().any(|setting| stored::is_of_operator(setting, name));
        if is_set {
            self.put(name, None, "reset alert rule").await?;
        }
        Ok(is_set)
    }

    /// Sends one notice to each operator, to see that it arrives: `alert.test`, signed and retried as every notice.
    /// Returns the jobs that carry them.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn test(&self, operators: &[Operator]) -> Result<Vec<JobId>, StoreError> {
        let installation = self.windlass.installation().await?;
        let (now, nonce) = (self.windlass.clock().now(), self.windlass.random().number());
        let notices = operators.iter().map(|operator| test_notice(operator, &installation, now, nonce)).collect();
        let stored = self.windlass.store().enqueue(notices, Atomicity::All).await?;
        let (by, count) = (self.by.clone(), operators.len() as u64);
        let audit = Audit { at: now, by, action: "test alerts".into(), count, detail: String::new() };
        self.windlass.store().audit(&audit).await?;
        Ok(stored.iter().filter_map(Enqueued::id).collect())
    }

    async fn put(&self, name: &str, value: Option<&Value>, action: &str) -> Result<(), StoreError> {
        let text = value.map(Value::to_string);
        self.windlass.inner().put_setting(&SettingKey::Alert { name: name.to_owned() }, text.as_deref()).await?;
        let detail = text.map_or_else(|| name.to_owned(), |text| format!("{name}: {text}"));
        let (at, by) = (self.windlass.clock().now(), self.by.clone());
        self.windlass.store().audit(&Audit { at, by, action: action.into(), count: 1, detail }).await
    }
}

/// The rules as they are without what operators set: those of the nodes' files, or else the default rules.
fn without_operators(settings: &[Setting]) -> Vec<Rule> {
    let mut own: Vec<Rule> = Vec::new();
    for setting in settings.iter().filter(|setting| setting.source != SettingSource::Operator) {
        if let SettingKey::Alert { name } = &setting.key
            && let Ok(Value::Object(fields)) = serde_json::from_str(&setting.value)
            && let Ok(rule) = Rule::from_json(name, &fields)
            && !own.iter().any(|known| known.name == rule.name)
        {
            own.push(rule);
        }
    }
    if own.is_empty() { default_rules() } else { own }
}
