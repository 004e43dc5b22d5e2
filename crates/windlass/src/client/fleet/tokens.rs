//! Tokens of the HTTP API, stored as hashes. The server defines a token's format.

use crate::client::windlass::Windlass;
use crate::store::{StoreError, Token};

/// Tokens of the HTTP API. Made by [`Windlass::tokens`].
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a> {
    windlass: &'a Windlass,
}

impl Windlass {
    /// The tokens of the HTTP API.
    ///
    /// ```
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// assert!(windlass.tokens().list().await?.is_empty());
    /// assert!(!windlass.tokens().revoke("7347d1e71ddc").await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens { windlass: self }
    }
}

impl Tokens<'_> {
    /// All tokens, including revoked ones.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<Token>, StoreError> {
        self.windlass.store().tokens().await
    }

    /// Stores a token.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn add(&self, token: &Token) -> Result<(), StoreError> {
        self.windlass.store().put_token(token).await
    }

    /// Revokes a token by its id. Returns whether an unrevoked one existed.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn revoke(&self, id: &str) -> Result<bool, StoreError> {
        self.windlass.store().revoke_token(id).await
    }
}
