//! Arrays of parameters, a field per column: how set statements take many rows at once.

/// A statement's parameters, gathered.
pub(in crate::store::postgres) type Gathered<'p> = Vec<&'p (dyn tokio_postgres::types::ToSql + Sync)>;

/// Defines a struct of arrays; `params` lists them in the order of its fields.
macro_rules! arrays {
    ($(#[$doc:meta])* $name:ident<$life:lifetime> { $($(#[$about:meta])* $field:ident: $type:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(in crate::store::postgres) struct $name<$life> {
            $($(#[$about])* pub(in crate::store::postgres) $field: Vec<$type>,)+
            of: std::marker::PhantomData<&$life ()>,
        }

        impl $name<'_> {
            pub(in crate::store::postgres) fn params(&self) -> crate::store::postgres::statements::arrays::Gathered<'_> {
                vec![$(&self.$field),+]
            }
        }
    };
}
pub(in crate::store::postgres) use arrays;

/// Parameters after the store's time, which comes first where a statement takes it.
pub(in crate::store::postgres) fn at<'p>(now: &'p Option<i64>, params: Gathered<'p>) -> Gathered<'p> {
    let mut all: Gathered<'p> = Vec::with_capacity(params.len() + 1);
    all.push(now);
    all.extend(params);
    all
}
