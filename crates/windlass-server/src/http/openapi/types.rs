//! Types of the document that no Rust type describes: any JSON, and inputs with several forms. Their schemas are
//! written in `schemas.json`.

use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! written {
    ($($name:ident),+ $(,)?) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of `schemas.json`.")]
            pub(crate) struct $name;

            impl PartialSchema for $name {
                // Replaced when the document is completed.
                fn schema() -> RefOr<Schema> {
                    ObjectBuilder::new().into()
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

written!(
    AnyJson,
    BreakerInput,
    BudgetInput,
    DeadLetterFilter,
    Duration,
    HttpInput,
    KindName,
    LimitsInput,
    Moment,
    Policy,
    PolicyInput,
    PreviewedDelay,
    PriorityInput,
    QueueName,
    RetentionInput,
    RuleInput,
    TenantName,
    WebhookInput,
);
