//! The settings of kinds: the policy and the error rules of all jobs of a kind.

use crate::client::policies::catalogue::Catalogue;
use crate::client::policies::{Policies, PolicyFault};
use crate::client::queues::any_queue;
use crate::store::{SettingKey, StoreError};
use serde_json::{Map, Value};
use windlass_core::job::{Kind, Tenant};
use windlass_core::policy::Role;
use windlass_core::{Flow, PolicyError, Rule};

/// The settings of a kind, for every tenant and queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KindSettings {
    /// The policy of jobs that set none: a name or line as text, or an object of fields.
    pub policy: Option<Value>,
    /// Error rules: a list of `{match, then, for, policy}`. The first that matches decides.
    pub rules: Option<Value>,
}

impl Policies<'_> {
    /// The kinds that have settings of their own, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn kinds(&self) -> Result<Vec<(Kind, KindSettings)>, StoreError> {
        let all = self.windlass.settings().all().await?.into_iter();
        let of_kind = |(key, text): (SettingKey, String)| match key {
            SettingKey::Kind { name } => Some((Kind::new(&name).ok()?, KindSettings::read(&text))),
            SettingKey::Queue { .. }
            | SettingKey::Policy { .. }
            | SettingKey::Tenant { .. }
            | SettingKey::Server { .. }
            | SettingKey::Alert { .. }
            | SettingKey::Secret { .. }
            | SettingKey::Quota { .. } => None,
        };
        let mut kinds: Vec<(Kind, KindSettings)> = all.filter_map(of_kind).collect();
        kinds.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        Ok(kinds)
    }

    /// Replaces the settings of a kind; with none, removes what was set here. Jobs stored before keep their policy;
    /// rules apply to every attempt that ends from now on. Returns them as they are stored: rules name no policies, so
    /// that they keep their meaning.
    ///
    /// ```
    /// use serde_json::json;
    /// use windlass::Windlass;
    /// use windlass::client::KindSettings;
    /// use windlass::core::job::Kind;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let rules = json!([{ "match": { "class": "Deadlock*" }, "then": "retry", "for": "1s" }]);
    /// let settings = KindSettings { rules: Some(rules), ..KindSettings::default() };
    /// windlass.policies().set_kind(&Kind::new("charge")?, &settings).await?;
    /// assert_eq!(windlass.policies().kinds().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The field that is wrong and what would be accepted, or a store that cannot be written to.
    pub async fn set_kind(&self, kind: &Kind, settings: &KindSettings) -> Result<KindSettings, PolicyFault> {
        let catalogue = self.windlass.catalogue().await?;
        let key = SettingKey::Kind { name: kind.to_string() };
        if let Some(policy) = &settings.policy {
            let own = catalogue.read(policy)?;
            catalogue.effective(&Tenant::default(), &any_queue(), kind, Role::Handler, &own)?;
            let mut all = self.windlass.settings().all().await?;
            all.retain(|(stored, _)| *stored != key);
            all.push((key.clone(), serde_json::json!({ "policy": policy }).to_string()));
            let unusable = |message| PolicyError { field: String::new(), position: None, message };
            Catalogue::load(&all).check().map_err(unusable)?;
        }
        let rules = match &settings.rules {
            None => None,
            Some(rules) => {
                let read = Flow::from_value_with(&serde_json::json!({ "rules": rules }), &|name| catalogue.named(name));
                let wrong = |pointer: &str, message| PolicyError {
                    field: pointer.trim_start_matches('/').to_owned(),
                    position: None,
                    message,
                };
                let read = read.map_err(|error| wrong(&error.pointer, error.message))?;
                read.map(|flow| Rule::list_to_value(&flow.rules))
            }
        };
        let stored = KindSettings { policy: settings.policy.clone(), rules };
        let text = stored.to_json().to_string();
        let is_default = stored == KindSettings::default();
        self.windlass.inner().put_setting(&key, (!is_default).then_some(text.as_str())).await?;
        self.windlass.audit().by(self.by.as_ref()).record("set kind", 1, format!("kind {kind}: {text}")).await?;
        Ok(stored)
    }
}

impl KindSettings {
    /// The settings as they are stored, without fields that are not set.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let fields = [("policy", &self.policy), ("rules", &self.rules)];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        Value::Object(given.collect::<Map<String, Value>>())
    }

    /// Missing or unreadable fields are left out.
    fn read(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let field = |name: &str| value.get(name).filter(|value| !value.is_null()).cloned();
        Self { policy: field("policy"), rules: field("rules") }
    }
}
