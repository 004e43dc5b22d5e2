//! The catalogue: settings of queues, kinds, named policies and tenants as one snapshot, and how they complete a draft.
//! Levels, highest precedence first: the job's own fields, the policy it names, its kind, its queue, the server's
//! default.

use crate::client::enqueue::draft::{Draft, DraftError, MAX_KEY, MAX_PAYLOAD, WebhookDraft};
use crate::client::enqueue::outgoing::{Outgoing, check_url};
use crate::client::enqueue::retry::Retry;
use crate::client::policies::effective::{EffectivePolicies, Levels};
use crate::client::rotate::rotation_from_json;
use crate::client::tenants::quota::HttpQuotas;
use crate::job::{NewJob, Webhook};
use crate::json_text;
use crate::store::SettingKey;
use crate::webhook::{DELIVERY_KIND, DELIVERY_QUEUE};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_core::gate::{FlowError, MAX_LIMIT_KEY};
use windlass_core::job::{Kind, QueueName, Tenant};
use windlass_core::policy::{Partial, Pattern, Preset, Role, usual_attempts};
use windlass_core::quota::Quotas;
use windlass_core::sealed::is_sealed;
use windlass_core::signature::rotation::Rotation;
use windlass_core::{Executor, LiveRules, Policy, PolicyError, Rule, State};

/// The name of the server-wide setting that holds the defaults: `{"policy":…,"giveUpOn":[…]}`.
pub const DEFAULTS: &str = "defaults";

/// A snapshot of the store's settings for queues, kinds, policies and tenants.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    queues: HashMap<(Option<Tenant>, String), Partial>,
    kinds: HashMap<String, Partial>,
    queue_rules: HashMap<(Option<Tenant>, String), Vec<Rule>>,
    kind_rules: HashMap<String, Vec<Rule>>,
    policies: HashMap<String, Partial>,
    webhooks: HashMap<Tenant, WebhookDraft>,
    rotations: HashMap<Tenant, Vec<Rotation>>,
    quotas: HashMap<Option<Tenant>, Quotas>,
    default_policy: Option<Partial>,
    give_up_on: Option<Vec<Pattern>>,
    merged: EffectivePolicies,
    outgoing: Outgoing,
}

impl Catalogue {
    /// Parses the store's settings. Settings that cannot be parsed are skipped and logged: one queue's invalid setting
    /// must not stop the others.
    #[must_use]
    pub fn load(settings: &[(SettingKey, String)]) -> Self {
        let mut catalogue = Self::default();
        // Named policies come first, because the others may refer to them.
        let (named, others): (Vec<_>, Vec<_>) =
            settings.iter().partition(|(key, _)| matches!(key, SettingKey::Policy { .. }));
        for (key, text) in named.into_iter().chain(others) {
            let value = serde_json::from_str(text).unwrap_or_default();
            if let Err(error) = catalogue.add(key, &value) {
                let (scope, tenant, name) = key.parts();
                tracing::warn!(scope, tenant, name, %error, "a setting cannot be read and is ignored");
            }
        }
        catalogue
    }

    /// Uses `policy` for jobs without another policy, unless the store itself has a default.
    pub(crate) fn or_default_policy(mut self, policy: Option<&Retry>) -> Self {
        if let Some(policy) = policy.filter(|_| self.default_policy.is_none()) {
            match policy.read(&self) {
                Ok(policy) => self.default_policy = Some(policy),
                // The policy was valid when the store was opened, so a named policy was removed since.
                Err(error) => tracing::warn!(%error, "the default policy cannot be read and is ignored"),
            }
        }
        self
    }

    /// Refuses calls and webhooks whose URLs show a target that these rules deny.
    pub(crate) fn with_outgoing(mut self, outgoing: Outgoing) -> Self {
        self.outgoing = outgoing;
        self
    }

    /// Whether the operator allows a webhook's target, as far as its URL shows it.
    ///
    /// # Errors
    /// The target is denied, or a field looks sealed.
    pub(crate) fn check_target(&self, webhook: &WebhookDraft) -> Result<(), DraftError> {
        crate::client::enqueue::outgoing::check_clear_webhook(webhook)?;
        self.outgoing.check_target("webhook/url", &webhook.url)
    }

    fn add(&mut self, key: &SettingKey, value: &Value) -> Result<(), PolicyError> {
        match key {
            SettingKey::Queue { tenant, name } => {
                let policy = self.policy_in(value)?;
                self.queues.insert((tenant.clone(), name.clone()), policy.unwrap_or_default());
                if let Some(rules) = self.rules_in(value)? {
                    self.queue_rules.insert((tenant.clone(), name.clone()), rules);
                }
            }
            SettingKey::Kind { name } => {
                let policy = self.policy_in(value)?;
                self.kinds.insert(name.clone(), policy.unwrap_or_default());
                if let Some(rules) = self.rules_in(value)? {
                    self.kind_rules.insert(name.clone(), rules);
                }
            }
            SettingKey::Policy { name } => {
                let policy = self.read(value)?;
                self.policies.insert(name.clone(), policy);
            }
            SettingKey::Tenant { name } => {
                if let Some(webhook) = value.get("webhook").filter(|v| !v.is_null()) {
                    self.webhooks.insert(name.clone(), self.read_webhook(webhook)?);
                }
            }
            SettingKey::Server { name } if name == DEFAULTS => {
                self.default_policy = self.policy_in(value)?;
                let classes = value.get("giveUpOn").and_then(Value::as_array);
                let parse = |v: &Value| v.as_str().and_then(Pattern::parse);
                self.give_up_on = classes.map(|list| list.iter().filter_map(parse).collect());
            }
            SettingKey::Secret { tenant, .. } => {
                if let Some(rotation) = rotation_from_json(value) {
                    self.rotations.entry(tenant.clone()).or_default().push(rotation);
                }
            }
            SettingKey::Quota { tenant } => {
                let wrong =
                    |error: FlowError| PolicyError { field: error.pointer, position: None, message: error.message };
                self.quotas.insert(tenant.clone(), Quotas::from_value(value).map_err(wrong)?);
            }
            SettingKey::Server { .. } | SettingKey::Alert { .. } => {}
        }
        Ok(())
    }

    /// The error rules in a setting of a queue or kind.
    fn rules_in(&self, value: &Value) -> Result<Option<Vec<Rule>>, PolicyError> {
        let Some(rules) = value.get("rules").filter(|rules| !rules.is_null()) else { return Ok(None) };
        let read = Rule::list_from_value("/rules", rules, &|name| self.policies.get(name).cloned());
        let wrong = |error: FlowError| PolicyError {
            field: error.pointer.trim_start_matches('/').to_owned(),
            position: None,
            message: error.message,
        };
        read.map(Some).map_err(wrong)
    }

    /// The error rules of a job's kind, and of its queue: the tenant's own, else those for all tenants.
    pub(crate) fn rules_of(&self, tenant: &Tenant, queue: &QueueName, kind: &Kind) -> LiveRules<'_> {
        // Most installations have none, and pay nothing.
        if self.queue_rules.is_empty() && self.kind_rules.is_empty() {
            return LiveRules::default();
        }
        let of = |tenant: Option<&Tenant>| self.queue_rules.get(&(tenant.cloned(), queue.to_string()));
        LiveRules {
            kind: self.kind_rules.get(kind.as_str()).map_or(&[], Vec::as_slice),
            queue: of(Some(tenant)).or_else(|| of(None)).map_or(&[], Vec::as_slice),
        }
    }

    /// A policy by name: a preset, or the operator's own. A preset's name always means the preset.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Partial> {
        Preset::find(name).map(Preset::partial).or_else(|| self.policies.get(name).cloned())
    }

    /// The names of the operator's own policies.
    pub fn own_policies(&self) -> impl Iterator<Item = (&str, &Partial)> {
        self.policies.iter().map(|(name, policy)| (name.as_str(), policy))
    }

    /// Parses a policy in any of its forms, with the operator's names.
    ///
    /// # Errors
    /// What is wrong with it and what would be accepted.
    pub fn read(&self, value: &Value) -> Result<Partial, PolicyError> {
        Partial::from_json(value, &|name| self.policies.get(name).cloned())
    }

    /// Parses a webhook: `{url, events, secret, policy}`.
    ///
    /// # Errors
    /// The field that is wrong and what would be accepted.
    pub fn read_webhook(&self, value: &Value) -> Result<WebhookDraft, PolicyError> {
        let wrong =
            |field: &str, message: &str| PolicyError { field: field.into(), position: None, message: message.into() };
        let fields = value.as_object().ok_or_else(|| wrong("", "must be an object {url, events, secret, policy}"))?;
        if let Some(unknown) = fields.keys().find(|k| !["url", "events", "secret", "policy"].contains(&k.as_str())) {
            return Err(wrong(unknown, "is not a field of a webhook; those are url, events, secret, policy"));
        }
        let url =
            fields.get("url").and_then(Value::as_str).ok_or_else(|| wrong("url", "must be an http or https URL"))?;
        let secret = match fields.get("secret").filter(|v| !v.is_null()) {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => return Err(wrong("secret", "must be a text, whsec_ followed by base64")),
        };
        let policy = fields.get("policy").filter(|v| !v.is_null()).map(|v| self.read(v)).transpose()?;
        Ok(WebhookDraft {
            url: url.to_owned(),
            events: read_events(fields.get("events")).ok_or_else(|| {
                wrong("events", "must be a list of succeeded, failed and cancelled; leave it out for all three")
            })?,
            secret,
            policy: policy.unwrap_or_default(),
        })
    }

    /// The effective policy of a job, all levels merged.
    ///
    /// # Errors
    /// The field that is missing, out of range or without effect.
    pub fn effective(
        &self,
        tenant: &Tenant,
        queue: &QueueName,
        kind: &Kind,
        role: Role,
        own: &Partial,
    ) -> Result<Policy, PolicyError> {
        let of_queue = |tenant: Option<Tenant>| self.queues.get(&(tenant, queue.as_str().to_owned())).cloned();
        // A separate level, because fields that it leaves out may not fit the strategy it names.
        let default = match role {
            Role::Handler => self.default_policy.clone(),
            Role::Http | Role::Delivery => None,
        };
        let levels = [
            own.clone(),
            self.kinds.get(kind.as_str()).cloned().unwrap_or_default(),
            of_queue(Some(tenant.clone())).unwrap_or_default(),
            of_queue(None).unwrap_or_default(),
            default.unwrap_or_default(),
            role.default_policy(),
        ];
        let levels = levels.map(|level| with_queue_attempts(level, queue));
        Partial::resolve(&levels, &self.give_up_by_default(role))
    }

    fn give_up_by_default(&self, role: Role) -> Vec<Pattern> {
        match (role, &self.give_up_on) {
            (Role::Handler, Some(classes)) => classes.clone(),
            (Role::Handler | Role::Http | Role::Delivery, _) => role.default_give_up_on(),
        }
    }

    /// Completes a draft: checks it, fixes its policy, adds its tenant's webhook.
    ///
    /// # Errors
    /// The field that is wrong and what would be accepted.
    pub fn complete(&self, draft: Draft) -> Result<NewJob, DraftError> {
        check_payload(&draft.payload)?;
        check_key(&draft)?;
        self.outgoing.check(&draft)?;
        check_limit_key(&draft)?;
        let (executor, role) = match &draft.http {
            Some(_) => (Executor::Http, Role::Http),
            None => (Executor::Worker, Role::Handler),
        };
        let queue = draft.queue.unwrap_or_default();
        let levels = Levels { tenant: draft.tenant.clone(), queue, kind: draft.kind.clone(), role, own: draft.retry };
        let merge = || self.effective(&levels.tenant, &levels.queue, &levels.kind, role, &levels.own);
        let policy =
            self.merged.get(&levels, merge).map_err(|e| DraftError::new(join("retry", &e.field), e.message))?;
        let webhook = draft.webhook.as_ref().or_else(|| self.webhooks.get(&draft.tenant));
        let webhook = webhook.map(|w| self.complete_webhook(w, &draft.tenant)).transpose()?;
        Ok(NewJob {
            tenant: draft.tenant,
            queue: levels.queue,
            executor,
            priority: draft.priority,
            run_at: draft.run_at,
            start_by: draft.start_by,
            delivery: draft.delivery,
            timeout: draft.timeout,
            idempotency: draft.idempotency,
            http: draft.http.map(Arc::new),
            webhook: webhook.map(Arc::new),
            schedule: draft.schedule,
            traceparent: draft.traceparent,
            limit_key: draft.limit_key.map(Into::into),
            ..NewJob::new(draft.kind, draft.payload, policy)
        })
    }

    /// A tenant's complete webhook. An invalid one was refused when it was set.
    #[must_use]
    pub fn webhook_of(&self, tenant: &Tenant) -> Option<Webhook> {
        self.webhooks.get(tenant).and_then(|draft| self.complete_webhook(draft, tenant).ok())
    }

    /// The quotas of a tenant: its own, and the default where it has none.
    #[must_use]
    pub fn quotas_of(&self, tenant: &Tenant) -> Quotas {
        let of = |tenant: Option<Tenant>| self.quotas.get(&tenant).copied().unwrap_or_default();
        if self.quotas.is_empty() { Quotas::default() } else { of(Some(tenant.clone())).over(of(None)) }
    }

    /// The quotas of calls at once.
    pub(crate) fn http_quotas(&self) -> HttpQuotas {
        let mut quotas = HttpQuotas::default();
        for (tenant, set) in &self.quotas {
            match tenant {
                Some(tenant) => quotas.own.extend(set.http_concurrency.map(|most| (tenant.clone(), most))),
                None => quotas.default = set.http_concurrency,
            }
        }
        quotas
    }

    /// Whether storing jobs has a quota, for any tenant.
    pub(crate) fn has_quotas(&self) -> bool {
        self.quotas.values().any(|quotas| quotas.limits_enqueue())
    }

    /// The webhook secrets of a tenant that were replaced.
    pub(crate) fn rotations(&self, tenant: &Tenant) -> &[Rotation] {
        self.rotations.get(tenant).map_or(&[], Vec::as_slice)
    }

    /// Completes a tenant's webhook. Its deliveries' policy has the levels of every job: the webhook's own, the kind
    /// `webhook`, the queue `webhooks`, then `stepped`.
    ///
    /// # Errors
    /// The field that is wrong and what would be accepted.
    pub fn complete_webhook(&self, draft: &WebhookDraft, tenant: &Tenant) -> Result<Webhook, DraftError> {
        check_url(&draft.url).map_err(|message| DraftError::new("webhook/url", message))?;
        // A store that completes jobs of the SQL function sees the tenant's secret sealed.
        if let Some(secret) = draft.secret.as_deref().filter(|secret| !is_sealed(secret)) {
            windlass_core::signature::Secret::parse(secret)
                .map_err(|e| DraftError::new("webhook/secret", e.to_string()))?;
        }
        let (queue, kind) = of_deliveries();
        let policy = self
            .effective(tenant, &queue, &kind, Role::Delivery, &draft.policy)
            .map_err(|e| DraftError::new(join("webhook/policy", &e.field), e.message))?;
        Ok(Webhook {
            url: draft.url.clone(),
            events: draft.events.clone(),
            secret: draft.secret.clone(),
            policy: Arc::new(policy),
        })
    }

    /// Checks that jobs can be stored: whatever their queue and kind, and whichever policy they name, their levels must
    /// merge into a complete policy.
    ///
    /// # Errors
    /// Which jobs could not be stored, and why.
    pub fn check(&self) -> Result<(), String> {
        let own = Partial::default();
        let mut queues: Vec<(Tenant, QueueName)> = vec![(Tenant::default(), QueueName::default())];
        let named = self.queues.keys().map(|(tenant, name)| (tenant.clone().unwrap_or_default(), name));
        queues.extend(named.filter_map(|(tenant, name)| Some((tenant, QueueName::new(name).ok()?))));
        queues.sort();
        queues.dedup();
        let mut kinds: Vec<Kind> = self.kinds.keys().filter_map(|name| Kind::new(name).ok()).collect();
        kinds.sort();
        for (tenant, queue) in &queues {
            for kind in std::iter::once(&any_kind()).chain(&kinds) {
                for role in [Role::Handler, Role::Http] {
                    self.effective(tenant, queue, kind, role, &own).map_err(|error| {
                        format!(
                            "jobs of kind `{kind}` in queue `{queue}` could not be stored: their retry policy: {error}"
                        )
                    })?;
                }
            }
            let (deliveries, kind) = of_deliveries();
            self.effective(tenant, &deliveries, &kind, Role::Delivery, &own)
                .map_err(|error| format!("webhook deliveries could not be stored: their retry policy: {error}"))?;
        }
        let mut policies: Vec<&String> = self.policies.keys().collect();
        policies.sort();
        for name in policies {
            let (tenant, queue) = (Tenant::default(), QueueName::default());
            self.effective(&tenant, &queue, &any_kind(), Role::Handler, &self.policies[name])
                .map_err(|error| format!("jobs that name the policy `{name}` could not be stored: {error}"))?;
        }
        Ok(())
    }

    fn policy_in(&self, value: &Value) -> Result<Option<Partial>, PolicyError> {
        value.get("policy").filter(|v| !v.is_null()).map(|v| self.read(v)).transpose()
    }
}

/// Queues with the usual names have their own number of attempts where the `queue-worker` preset applies.
fn with_queue_attempts(level: Partial, queue: &QueueName) -> Partial {
    let preset = Preset::find("queue-worker").expect("queue-worker is a preset").partial();
    match usual_attempts(queue) {
        Some(attempts) if level == preset => Partial { max_retries: Some(attempts - 1), ..level },
        Some(_) | None => level,
    }
}

/// The queue and the kind of deliveries.
fn of_deliveries() -> (QueueName, Kind) {
    let queue = QueueName::new(DELIVERY_QUEUE).expect("the delivery queue has a name");
    (queue, Kind::new(DELIVERY_KIND).expect("the delivery kind has a name"))
}

/// A kind that no setting names, for checks.
fn any_kind() -> Kind {
    Kind::new("any").expect("a plain word is a kind")
}

fn read_events(value: Option<&Value>) -> Option<Vec<State>> {
    let all = [State::Succeeded, State::Failed, State::Cancelled];
    let Some(value) = value.filter(|v| !v.is_null()) else { return Some(all.to_vec()) };
    let event = |word: &Value| word.as_str().and_then(State::parse).filter(|state| all.contains(state));
    value.as_array()?.iter().map(event).collect::<Option<Vec<State>>>().filter(|events| !events.is_empty())
}

fn check_payload(payload: &str) -> Result<(), DraftError> {
    if payload.len() > MAX_PAYLOAD {
        return Err(DraftError::new(
            "payload",
            format!("is {} bytes; at most {MAX_PAYLOAD} are accepted", payload.len()),
        ));
    }
    json_text::fault(payload).map_or(Ok(()), |why| Err(DraftError::new("payload", why)))
}

fn check_key(draft: &Draft) -> Result<(), DraftError> {
    let Some(idempotency) = &draft.idempotency else { return Ok(()) };
    let key = &idempotency.key;
    if key.is_empty() || key.len() > MAX_KEY || key.chars().any(char::is_control) {
        return Err(DraftError::new(
            "idempotencyKey",
            format!("must be 1 to {MAX_KEY} bytes without control characters"),
        ));
    }
    Ok(())
}

fn check_limit_key(draft: &Draft) -> Result<(), DraftError> {
    let Some(key) = &draft.limit_key else { return Ok(()) };
    if key.is_empty() || key.chars().count() > MAX_LIMIT_KEY || key.chars().any(char::is_control) {
        let form = format!("must be 1 to {MAX_LIMIT_KEY} characters without control characters");
        return Err(DraftError::new("limitKey", form));
    }
    Ok(())
}

fn join(path: &str, field: &str) -> String {
    if field.is_empty() { path.to_owned() } else { format!("{path}/{field}") }
}
