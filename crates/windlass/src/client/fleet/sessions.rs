//! Sessions: browsers that have signed in with a token. The server defines the secret that a browser keeps.

use crate::client::windlass::Windlass;
use crate::store::{Session, StoreError};

/// Browsers that have signed in. Made by [`Windlass::sessions`].
#[derive(Debug, Clone, Copy)]
pub struct Sessions<'a> {
    windlass: &'a Windlass,
}

impl Windlass {
    /// The browsers that have signed in to the dashboard.
    ///
    /// ```
    /// use windlass::Windlass;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// assert!(windlass.sessions().list().await?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { windlass: self }
    }
}

impl Sessions<'_> {
    /// All sessions that have not ended.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<Session>, StoreError> {
        self.windlass.store().sessions().await
    }

    /// Stores a session.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn add(&self, session: &Session) -> Result<(), StoreError> {
        self.windlass.store().put_session(session).await
    }

    /// Ends a session by the hash of its secret. Returns whether it existed.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn remove(&self, hash: &[u8; 32]) -> Result<bool, StoreError> {
        self.windlass.store().remove_session(hash).await
    }
}
