//! Named policies: the presets and the operator's own, and previews of any policy.

pub(crate) mod catalogue;
mod effective;
pub(crate) mod kinds;

use crate::client::enqueue::retry::{IntoRetry, Retry};
use crate::client::policies::catalogue::Catalogue;
use crate::client::windlass::{BY_LIBRARY, Windlass};
use crate::store::{SettingKey, StoreError};
use serde_json::Value;
use std::borrow::Cow;
use windlass_core::policy::{PRESETS, Partial, Preset, Role};
use windlass_core::{Policy, PolicyError, Preview};

/// The most retries in a preview, unless the caller asks for more.
const PREVIEWED: u32 = 20;

/// Named retry policies. Made by [`Windlass::policies`].
#[derive(Debug, Clone)]
pub struct Policies<'a> {
    pub(super) windlass: &'a Windlass,
    pub(super) by: Cow<'static, str>,
}

/// A policy that jobs can name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedPolicy {
    /// Its name.
    pub name: String,
    /// What a preset is for; `None` for the operator's own policies.
    pub purpose: Option<&'static str>,
    /// All of its fields. Fields it does not set come from the default policy of jobs.
    pub policy: Policy,
}

/// Why a policy or setting was not stored or read.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFault {
    /// The policy is wrong: which field, and what would be accepted.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A preset cannot be replaced or removed.
    #[error("`{0}` is a preset; choose another name")]
    Preset(String),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Windlass {
    /// The retry policies that jobs can name: the presets and the operator's own.
    ///
    /// ```
    /// use windlass::{Millis, Windlass};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// windlass.policies().put("gentle", "fixed:base=10s,jitter=none,cap=none,retries=3").await?;
    /// let preview = windlass.policies().preview("gentle", None).await?;
    /// assert_eq!(preview.delays[0].delay, Millis::from_secs(10));
    /// println!("{}", windlass.policies().explain("gentle").await?);
    /// windlass.enqueue_kind("email", &serde_json::json!({})).retry("gentle").await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn policies(&self) -> Policies<'_> {
        Policies { windlass: self, by: BY_LIBRARY.into() }
    }
}

impl Policies<'_> {
    /// Who acts, for the audit; `library` if not set.
    #[must_use]
    pub fn by(self, name: impl Into<String>) -> Self {
        Self { by: Cow::Owned(name.into()), ..self }
    }

    /// All named policies: the presets in their order, then the operator's own by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<NamedPolicy>, StoreError> {
        let catalogue = self.windlass.catalogue().await?;
        let mut own: Vec<&str> = catalogue.own_policies().map(|(name, _)| name).collect();
        own.sort_unstable();
        own.retain(|name| Preset::find(name).is_none());
        let names = PRESETS.iter().map(|preset| preset.name).chain(own);
        Ok(names.filter_map(|name| named(&catalogue, name)).collect())
    }

    /// A policy by its name. A preset's name always means the preset.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn get(&self, name: &str) -> Result<Option<NamedPolicy>, StoreError> {
        Ok(named(&*self.windlass.catalogue().await?, name))
    }

    /// Stores a policy under a name. Jobs enqueued from now on may name it; jobs stored before keep the policy they
    /// have.
    ///
    /// # Errors
    /// The policy is wrong, the name is a preset's, or the store cannot be written to.
    pub async fn put(&self, name: &str, policy: impl IntoRetry) -> Result<(), PolicyFault> {
        if Preset::find(name).is_some() {
            return Err(PolicyFault::Preset(name.to_owned()));
        }
        let catalogue = self.windlass.catalogue().await?;
        let value = to_json(policy.into_retry());
        complete(&catalogue.read(&value)?)?;
        let key = SettingKey::Policy { name: name.to_owned() };
        Ok(self.windlass.inner().put_setting(&key, Some(&value.to_string())).await?)
    }

    /// Removes one of the operator's own policies. Jobs stored with it keep it. Returns whether it existed.
    ///
    /// # Errors
    /// The name is a preset's, or the store cannot be written to.
    pub async fn remove(&self, name: &str) -> Result<bool, PolicyFault> {
        if Preset::find(name).is_some() {
            return Err(PolicyFault::Preset(name.to_owned()));
        }
        let key = SettingKey::Policy { name: name.to_owned() };
        let is_there = self.windlass.settings().all().await?.iter().any(|(stored, _)| *stored == key);
        if is_there {
            self.windlass.inner().put_setting(&key, None).await?;
        }
        Ok(is_there)
    }

    /// The complete policy of a name, line or set of fields. Fields it does not set come from the default policy of
    /// jobs.
    ///
    /// # Errors
    /// The policy is wrong, or the store cannot be read.
    pub async fn resolve(&self, policy: impl IntoRetry) -> Result<Policy, PolicyFault> {
        self.resolve_json(&to_json(policy.into_retry())).await
    }

    /// The same for a policy in any of its JSON forms: a name or line as text, or an object of fields.
    ///
    /// # Errors
    /// The policy is wrong, or the store cannot be read.
    pub async fn resolve_json(&self, policy: &Value) -> Result<Policy, PolicyFault> {
        let catalogue = self.windlass.catalogue().await?;
        Ok(complete(&catalogue.read(policy)?)?)
    }

    /// The retries of a policy: delays, their jitter windows and totals. `count` of `None` shows the policy's own
    /// number, at most 20.
    ///
    /// # Errors
    /// The policy is wrong, or the store cannot be read.
    pub async fn preview(&self, policy: impl IntoRetry, count: Option<u32>) -> Result<Preview, PolicyFault> {
        let policy = self.resolve(policy).await?;
        Ok(preview(&policy, count))
    }

    /// A policy in words.
    ///
    /// # Errors
    /// The policy is wrong, or the store cannot be read.
    pub async fn explain(&self, policy: impl IntoRetry) -> Result<String, PolicyFault> {
        Ok(windlass_core::explain(&self.resolve(policy).await?))
    }
}

impl NamedPolicy {
    /// Whether it is one of the presets.
    #[must_use]
    pub const fn is_preset(&self) -> bool {
        self.purpose.is_some()
    }

    /// The policy in words.
    #[must_use]
    pub fn explain(&self) -> String {
        windlass_core::explain(&self.policy)
    }
}

/// The retries of a complete policy; its own number of them, at most 20, if `count` is `None`.
#[must_use]
pub fn preview(policy: &Policy, count: Option<u32>) -> Preview {
    windlass_core::preview(policy, count.unwrap_or_else(|| policy.max_retries.min(PREVIEWED)))
}

fn named(catalogue: &Catalogue, name: &str) -> Option<NamedPolicy> {
    let policy = complete(&catalogue.named(name)?).ok()?;
    let purpose = PRESETS.iter().find(|preset| preset.name == name).map(|preset| preset.purpose);
    Some(NamedPolicy { name: name.to_owned(), purpose, policy })
}

/// A policy's own fields over the default policy of jobs.
fn complete(own: &Partial) -> Result<Policy, PolicyError> {
    let levels = [own.clone(), Role::Handler.default_policy()];
    Partial::resolve(&levels, &Role::Handler.default_give_up_on())
}

/// A policy as a setting stores it.
pub(super) fn to_json(retry: Retry) -> Value {
    match retry {
        Retry::Line(line) => Value::String(line.into_owned()),
        Retry::Fields(fields) => fields.to_json(),
    }
}
