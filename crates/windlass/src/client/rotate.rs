//! Replacing webhook secrets. A replacement is stored per tenant and looked up when a call is signed, so that jobs,
//! schedules and deliveries that are already stored follow it.

use crate::client::tenants::Tenants;
use crate::job::Job;
use crate::store::{Audit, Scope, SettingKey, StoreError};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use windlass_core::job::Tenant;
use windlass_core::signature::Secret;
use windlass_core::signature::rotation::{DEFAULT_OVERLAP, Rotation, RotationError, rotate};
use windlass_core::{JobId, Millis, Timestamp};

/// The most replaced secrets that are remembered per tenant. Beyond, the oldest whose overlap has ended are forgotten.
pub const MAX_ROTATIONS: usize = 1000;

/// Which secret is replaced.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretOf {
    /// That of the webhook of the tenant's jobs that name none.
    Tenant,
    /// That of a job: of its webhook, or of its own signed call.
    Job(JobId),
    /// That of a schedule's jobs.
    Schedule(JobId),
    /// This one, `whsec_…`.
    Text(String),
}

/// Leaves out the secret, because debug output may end up in a log.
impl std::fmt::Debug for SecretOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tenant => "Tenant",
            Self::Job(_) => "Job",
            Self::Schedule(_) => "Schedule",
            Self::Text(_) => "Text",
        })
    }
}

/// A secret that was replaced. Debug output does not contain the new one.
#[derive(Clone, PartialEq, Eq)]
pub struct Rotated {
    /// The new secret, `whsec_…`.
    pub secret: String,
    /// Until when calls carry a signature of the old secret too.
    pub until: Timestamp,
}

impl std::fmt::Debug for Rotated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rotated").field("until", &self.until).finish_non_exhaustive()
    }
}

/// Why a secret was not replaced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotateFault {
    /// The tenant has no such job.
    #[error("there is no job {0}")]
    NoJob(JobId),
    /// The tenant has no such schedule.
    #[error("there is no schedule {0}")]
    NoSchedule(JobId),
    /// There is no secret to replace.
    #[error("{0} has no webhook secret, so its calls are not signed; set a webhook with a secret")]
    NotSigned(String),
    /// The new secret is wrong.
    #[error("the new secret {0}")]
    Secret(#[from] RotationError),
    /// Too many replaced secrets still sign.
    #[error("{MAX_ROTATIONS} replaced secrets of this tenant still sign; wait until an overlap ends")]
    TooMany,
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Tenants<'_> {
    /// Replaces a webhook secret, by `to` or a new random one. Until the overlap (24 hours by default) ends, calls
    /// carry a signature of each, so that receivers can change over without losing one. Everything of the tenant that
    /// was stored with the old secret follows.
    ///
    /// ```
    /// use serde_json::json;
    /// use windlass::client::SecretOf;
    /// use windlass::{Windlass, core::job::Tenant};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let (acme, old) = (Tenant::new("Acme")?, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    /// windlass.tenants().set_webhook(&acme, Some(&json!({ "url": "https://acme.example", "secret": old }))).await?;
    /// let rotated = windlass.tenants().rotate_secret(&acme, SecretOf::Tenant, None, None).await?;
    /// println!("give {} to the receiver before {}", rotated.secret, rotated.until);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// There is no such secret, the new one is wrong, or the store cannot be used.
    pub async fn rotate_secret(
        &self,
        tenant: &Tenant,
        of: SecretOf,
        to: Option<&str>,
        overlap: Option<Millis>,
    ) -> Result<Rotated, RotateFault> {
        let windlass = self.windlass;
        // Two replacements in a row must see each other.
        windlass.inner().forget_catalogue();
        let catalogue = windlass.catalogue().await?;
        let (old, whose) = self.secret_of(tenant, &of).await?;
        let drawn = || {
            let bytes = windlass.random().bytes::<32>();
            Secret::from_bytes(&bytes).map_or_else(|_| String::new(), |secret| secret.to_text())
        };
        let to = to.map_or_else(drawn, str::to_owned);
        let (known, now) = (catalogue.rotations(tenant), windlass.clock().now());
        let rotation = rotate(&old, &to, overlap.unwrap_or(DEFAULT_OVERLAP), known, now)?;
        self.forget_oldest(tenant, known, now).await?;
        let text = rotation_to_json(&rotation).to_string();
        windlass.inner().put_setting(&key_of(tenant, &rotation.from), Some(&text)).await?;
        let detail = format!("{tenant}: webhook secret of {whose}, the old one signs until {}", rotation.until);
        let entry = Audit { at: now, by: self.by.clone(), action: "rotate secret".into(), count: 1, detail };
        windlass.store().audit(&entry).await?;
        Ok(Rotated { secret: rotation.to, until: rotation.until })
    }

    /// Until when replaced secrets of the tenant still sign, the latest of them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn overlap_until(&self, tenant: &Tenant) -> Result<Option<Timestamp>, StoreError> {
        let now = self.windlass.clock().now();
        let catalogue = self.windlass.catalogue().await?;
        Ok(catalogue.rotations(tenant).iter().map(|rotation| rotation.until).filter(|until| *until > now).max())
    }

    /// The secret, and whose it is for the audit.
    async fn secret_of(&self, tenant: &Tenant, of: &SecretOf) -> Result<(String, String), RotateFault> {
        let scope = Scope::Tenant(tenant.clone());
        let (secret, whose) = match of {
            SecretOf::Text(secret) => {
                Secret::parse(secret).map_err(RotationError::Secret)?;
                (Some(secret.clone()), "a given secret".to_owned())
            }
            SecretOf::Tenant => {
                let webhook = self.windlass.catalogue().await?.webhook_of(tenant);
                (webhook.and_then(|webhook| webhook.secret), format!("tenant {tenant}"))
            }
            SecretOf::Job(id) => {
                let job = self.windlass.store().job(&scope, *id).await?.ok_or(RotateFault::NoJob(*id))?;
                (secret_of_job(&job), format!("job {id}"))
            }
            SecretOf::Schedule(id) => {
                let schedule = self.windlass.store().schedule(&scope, *id).await?;
                let template = schedule.ok_or(RotateFault::NoSchedule(*id))?.spec.template;
                let of_webhook = template.webhook.as_ref().and_then(|webhook| webhook.secret.clone());
                let of_call = template.http.as_ref().and_then(|call| call.secret.clone());
                (of_webhook.or(of_call), format!("schedule {id}"))
            }
        };
        match secret {
            Some(secret) => Ok((secret, whose)),
            None => Err(RotateFault::NotSigned(whose)),
        }
    }

    /// Makes room for one more rotation.
    async fn forget_oldest(&self, tenant: &Tenant, known: &[Rotation], now: Timestamp) -> Result<(), RotateFault> {
        if known.len() < MAX_ROTATIONS {
            return Ok(());
        }
        let ended = known.iter().filter(|rotation| rotation.until <= now).min_by_key(|rotation| rotation.until);
        let ended = ended.ok_or(RotateFault::TooMany)?;
        Ok(self.windlass.inner().put_setting(&key_of(tenant, &ended.from), None).await?)
    }
}

/// None of a notice: its secret is the operators', not the tenant's.
fn secret_of_job(job: &Job) -> Option<String> {
    if job.is_notice() {
        return None;
    }
    let of_webhook = job.webhook.as_ref().and_then(|webhook| webhook.secret.clone());
    of_webhook.or_else(|| job.http.as_ref().and_then(|call| call.secret.clone()))
}

/// One setting per replaced secret, so that two replacements at once do not overwrite each other. Named by a hash,
/// because names are shown.
fn key_of(tenant: &Tenant, replaced: &str) -> SettingKey {
    let digest = Sha256::digest(replaced.as_bytes());
    let name = digest.iter().take(16).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    });
    SettingKey::Secret { tenant: tenant.clone(), name }
}

/// Both secrets are under the name `secret`, which every view of settings masks.
fn rotation_to_json(rotation: &Rotation) -> Value {
    let Rotation { from, to, until } = rotation;
    json!({ "replaced": { "secret": from }, "secret": to, "until": until.as_millis() })
}

/// What [`rotation_to_json`] wrote.
pub(crate) fn rotation_from_json(value: &Value) -> Option<Rotation> {
    Some(Rotation {
        from: value.get("replaced")?.get("secret")?.as_str()?.to_owned(),
        to: value.get("secret")?.as_str()?.to_owned(),
        until: Timestamp::from_millis(value.get("until")?.as_i64()?),
    })
}
