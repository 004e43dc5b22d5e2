//! Tenants' own settings: the webhook of jobs that name none. `rotate` replaces its secret.

pub(crate) mod quota;

use crate::client::enqueue::outgoing::mask_url;
use crate::client::policies::PolicyFault;
use crate::client::windlass::{BY_LIBRARY, Windlass};
use crate::job::Webhook;
use crate::store::{Audit, SettingKey, StoreError};
use serde_json::{Value, json};
use windlass_core::PolicyError;
use windlass_core::job::Tenant;

/// The settings of tenants. Made by [`Windlass::tenants`].
#[derive(Debug, Clone)]
pub struct Tenants<'a> {
    pub(super) windlass: &'a Windlass,
    pub(super) by: String,
}

impl Windlass {
    /// The settings of tenants.
    ///
    /// ```
    /// use serde_json::json;
    /// use windlass::Windlass;
    /// use windlass::core::job::Tenant;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let acme = Tenant::new("Acme")?;
    /// windlass.tenants().set_webhook(&acme, Some(&json!({ "url": "https://acme.example/done" }))).await?;
    /// assert_eq!(windlass.tenants().webhook(&acme).await?.unwrap().url, "https://acme.example/done");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn tenants(&self) -> Tenants<'_> {
        Tenants { windlass: self, by: BY_LIBRARY.into() }
    }
}

impl Tenants<'_> {
    /// Who acts, for the audit; `library` if not set.
    #[must_use]
    pub fn by(self, name: impl Into<String>) -> Self {
        Self { by: name.into(), ..self }
    }

    /// The webhook of a tenant's jobs that name none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn webhook(&self, tenant: &Tenant) -> Result<Option<Webhook>, StoreError> {
        Ok(self.windlass.catalogue().await?.webhook_of(tenant))
    }

    /// Sets the webhook `{url, events, secret, policy}` of a tenant's jobs that name none, or removes what was set
    /// here. Jobs that are already stored keep theirs.
    ///
    /// # Errors
    /// The field that is wrong, or a store that cannot be written to.
    pub async fn set_webhook(&self, tenant: &Tenant, webhook: Option<&Value>) -> Result<(), PolicyFault> {
        if let Some(webhook) = webhook {
            let catalogue = self.windlass.catalogue().await?;
            let draft = catalogue.read_webhook(webhook)?;
            let complete = catalogue.complete_webhook(&draft, tenant);
            complete.and_then(|_| catalogue.check_target(&draft)).map_err(|error| {
                let field = error.field.strip_prefix("webhook/").unwrap_or(&error.field).to_owned();
                PolicyError { field, position: None, message: error.message }
            })?;
        }
        let key = SettingKey::Tenant { name: tenant.clone() };
        let text = webhook.map(|webhook| json!({ "webhook": webhook }).to_string());
        self.windlass.inner().put_setting(&key, text.as_deref()).await?;
        let url = webhook.and_then(|webhook| webhook.get("url")).and_then(Value::as_str);
        let detail =
            url.map_or_else(|| format!("{tenant}: no webhook"), |url| format!("{tenant}: webhook {}", mask_url(url)));
        let (at, by) = (self.windlass.clock().now(), self.by.clone());
        let entry = Audit { at, by, action: "set tenant".into(), count: 1, detail };
        Ok(self.windlass.store().audit(&entry).await?)
    }
}
