//! A queue's policy, retention and flow settings, for every producer at once.

use super::Queues;
use super::status::any_kind;
use crate::client::enqueue::retry::IntoRetry;
use crate::client::policies::catalogue::Catalogue;
use crate::client::policies::{PolicyFault, to_json};
use crate::store::{Scope, SettingKey, StoreError, json};
use crate::webhook::DELIVERY_QUEUE;
use serde_json::{Map, Value};
use windlass_core::gate::FLOW_FIELDS;
use windlass_core::job::{QueueName, Tenant};
use windlass_core::policy::Role;
use windlass_core::{Flow, PolicyError, Retention, RetentionLevel, Rule};

/// The settings of a queue. A field of `None` falls back to the setting for all tenants, then to the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueSettings {
    /// The policy of jobs that set none: a name or line as text, or an object of fields.
    pub policy: Option<Value>,
    /// How long finished jobs are kept.
    pub retention: RetentionLevel,
    /// Limits, breaker, retry budget, holds and error rules: an object with those of [`FLOW_FIELDS`] that are set. A
    /// field of a tenant's own setting replaces the same field of the setting for all tenants.
    pub flow: Map<String, Value>,
}

impl Queues<'_> {
    /// The settings of a queue: of the tenant this handle is narrowed to, else those for all tenants.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn settings(&self, name: &QueueName) -> Result<QueueSettings, StoreError> {
        let key = self.setting_key(name);
        let all = self.windlass.settings().all().await?;
        let text = all.iter().find(|(stored, _)| *stored == key).map(|(_, text)| text.as_str());
        Ok(text.map_or_else(QueueSettings::default, QueueSettings::read))
    }

    /// Replaces the settings of a queue: of the tenant this handle is narrowed to, else those for all tenants. Jobs
    /// stored before keep the policy they were stored with; retention applies to all jobs that finish from now on.
    ///
    /// # Errors
    /// The policy is wrong or incomplete, or the store cannot be written to.
    pub async fn set(&self, name: &QueueName, settings: &QueueSettings) -> Result<(), PolicyFault> {
        if let Some(policy) = &settings.policy {
            self.check_policy(name, policy).await?;
        }
        let flow = self.check_flow(&settings.flow).await?;
        let settings = &QueueSettings { flow, ..settings.clone() };
        let text = settings.to_json().to_string();
        let is_default = *settings == QueueSettings::default();
        self.windlass.inner().put_setting(&self.setting_key(name), (!is_default).then_some(text.as_str())).await?;
        let of = self.tenant().map_or("*", Tenant::as_str);
        Ok(self.record("set queue", 1, format!("queue {name} of {of}: {text}")).await?)
    }

    /// Checks whether a policy can be a queue's: jobs that set nothing themselves must get a complete policy from it.
    ///
    /// # Errors
    /// The field that is wrong and what would be accepted, or a store that cannot be read.
    pub async fn check_policy(&self, name: &QueueName, policy: &Value) -> Result<(), PolicyFault> {
        let catalogue = self.windlass.catalogue().await?;
        let own = catalogue.read(policy)?;
        let tenant = self.tenant().cloned().unwrap_or_default();
        let role = if name.as_str() == DELIVERY_QUEUE { Role::Delivery } else { Role::Handler };
        catalogue.effective(&tenant, name, &any_kind(), role, &own)?;
        let key = self.setting_key(name);
        let mut settings = self.windlass.settings().all().await?;
        settings.retain(|(stored, _)| *stored != key);
        settings.push((key, serde_json::json!({ "policy": policy }).to_string()));
        let unusable = |message| PolicyError { field: String::new(), position: None, message };
        Ok(Catalogue::load(&settings).check().map_err(unusable)?)
    }

    /// Checks flow settings, and returns them as they are stored: rules name no policies, so that they keep their
    /// meaning.
    ///
    /// # Errors
    /// The field that is wrong (as a path, such as `limits/perKey/rate`) and what would be accepted, or a store that
    /// cannot be read.
    pub async fn check_flow(&self, flow: &Map<String, Value>) -> Result<Map<String, Value>, PolicyFault> {
        if flow.is_empty() {
            return Ok(Map::new());
        }
        let known = |name: &String| FLOW_FIELDS.contains(&name.as_str());
        let wrong = |field: &str, message: String| PolicyError { field: field.into(), position: None, message };
        if let Some(name) = flow.keys().find(|name| !known(name)) {
            return Err(wrong(name, format!("is not a flow setting; those are {}", FLOW_FIELDS.join(", "))).into());
        }
        let catalogue = self.windlass.catalogue().await?;
        let read = Flow::from_value_with(&Value::Object(flow.clone()), &|name| catalogue.named(name));
        let read = read.map_err(|error| wrong(error.pointer.trim_start_matches('/'), error.message))?;
        let mut stored: Map<String, Value> = flow
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if let (Some(rules), Some(read)) = (stored.get_mut("rules"), read) {
            *rules = Rule::list_to_value(&read.rules);
        }
        Ok(stored)
    }

    /// Sets the limits, breaker, retry budget and error rules of a queue; its policy and retention stay. They hold over
    /// the whole fleet within seconds.
    ///
    /// ```
    /// use windlass::Windlass;
    /// use windlass::core::{Flow, job::QueueName};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let mail = QueueName::new("mail")?;
    /// let flow = Flow::from_value(&json!({"limits": {"concurrency": 10, "perKey": {"rate": "5/s"}}, "breaker":
    /// "on"}))?; windlass.queues().set_flow(&mail, flow.as_ref()).await?;
    /// assert_eq!(windlass.queues().settings(&mail).await?.flow["breaker"], "on"); windlass.queues().set_flow(&mail,
    /// None).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Queues::set`].
    pub async fn set_flow(&self, name: &QueueName, flow: Option<&Flow>) -> Result<(), PolicyFault> {
        let flow = match flow.map(Flow::to_value) {
            Some(Value::Object(fields)) => fields,
            Some(_) | None => Map::new(),
        };
        let settings = QueueSettings { flow, ..self.settings(name).await? };
        self.set(name, &settings).await
    }

    /// Sets the policy of a queue's jobs; its retention stays.
    ///
    /// # Errors
    /// As [`Queues::set`].
    pub async fn set_policy(&self, name: &QueueName, policy: impl IntoRetry) -> Result<(), PolicyFault> {
        let policy = Some(to_json(policy.into_retry()));
        let settings = QueueSettings { policy, ..self.settings(name).await? };
        self.set(name, &settings).await
    }

    /// Removes the policy that was set for a queue; its retention stays.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn remove_policy(&self, name: &QueueName) -> Result<(), PolicyFault> {
        let settings = QueueSettings { policy: None, ..self.settings(name).await? };
        self.set(name, &settings).await
    }

    /// Sets how long a queue's finished jobs are kept; its policy stays.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn set_retention(&self, name: &QueueName, retention: Retention) -> Result<(), PolicyFault> {
        let level = RetentionLevel {
            succeeded: Some(retention.succeeded),
            cancelled: Some(retention.cancelled),
            failed: Some(retention.failed),
        };
        let settings = QueueSettings { retention: level, ..self.settings(name).await? };
        self.set(name, &settings).await
    }

    /// Removes the retention that was set for a queue; its policy stays.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn remove_retention(&self, name: &QueueName) -> Result<(), PolicyFault> {
        let settings = QueueSettings { retention: RetentionLevel::default(), ..self.settings(name).await? };
        self.set(name, &settings).await
    }

    fn setting_key(&self, name: &QueueName) -> SettingKey {
        SettingKey::Queue { tenant: self.tenant().cloned(), name: name.to_string() }
    }

    fn tenant(&self) -> Option<&Tenant> {
        match &self.scope {
            Scope::All => None,
            Scope::Tenant(tenant) => Some(tenant),
        }
    }
}

/// The flow settings in a queue's setting, as they are stored.
pub(super) fn flow_in(setting: &Value) -> Map<String, Value> {
    let given =
        |name: &str| setting.get(name).filter(|value| !value.is_null()).map(|value| (name.to_owned(), value.clone()));
    FLOW_FIELDS.into_iter().filter_map(given).collect()
}

impl QueueSettings {
    /// The settings as they are stored: `{"policy":…,"retention":{"succeeded":"7d",…}}`, without fields that are not
    /// set.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.extend(self.policy.clone().map(|policy| ("policy".to_owned(), policy)));
        let RetentionLevel { succeeded, cancelled, failed } = self.retention;
        let keeps = [("succeeded", succeeded), ("cancelled", cancelled), ("failed", failed)];
        let kept: Map<String, Value> =
            keeps.into_iter().filter_map(|(name, keep)| Some((name.to_owned(), keep?.to_string().into()))).collect();
        if !kept.is_empty() {
            object.insert("retention".into(), kept.into());
        }
        object.extend(self.flow.clone());
        Value::Object(object)
    }

    /// Missing or unreadable fields are left out.
    fn read(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let policy = value.get("policy").filter(|policy| !policy.is_null()).cloned();
        Self { policy, retention: json::retention_level(text), flow: flow_in(&value) }
    }
}
