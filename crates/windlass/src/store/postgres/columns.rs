//! Arrays of parameters, a field per column: how set statements take many rows at once.

/// A statement's parameters, gathered.
pub(super) type Gathered<'p> = Vec<&'p (dyn tokio_postgres::types::ToSql + Sync)>;

/// Defines a struct of arrays; `params` lists them in the order of its fields.
macro_rules! arrays {
    ($(#[$doc:meta])* $name:ident<$life:lifetime> { $($field:ident: $type:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name<$life> {
            $(pub(super) $field: Vec<$type>,)+
            of: std::marker::PhantomData<&$life ()>,
        }

        impl $name<'_> {
            pub(super) fn params(&self) -> super::columns::Gathered<'_> {
                vec![$(&self.$field),+]
            }
        }
    };
}
pub(super) use arrays;

/// Parameters after the store's time, which comes first where a statement takes it.
pub(super) fn at<'p>(now: &'p Option<i64>, params: Gathered<'p>) -> Gathered<'p> {
    let mut all: Gathered<'p> = Vec::with_capacity(params.len() + 1);
    all.push(now);
    all.extend(params);
    all
}
