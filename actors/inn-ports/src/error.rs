//! How the store fails.

use inn_protocol::Refusal;

pub type StoreResult<T> = Result<T, StoreError>;

#[derive(Debug, Clone)]
pub enum StoreError {
    /// The snapshot the decision was made from is no longer true (grant, membership, session or release moved on).
    /// Nothing happened; reload and decide again.
    Stale,
    /// Refused by the data itself: unique index, missing reference, lost value, duplicate key, replayed nonce.
    Refused(Box<Refusal>),
    /// The connection was lost while committing: it may have happened.
    Unknown,
    /// The database did not answer or the pool is empty. Nothing happened.
    Unavailable,
    /// Anything else. The cause has been logged. Nothing happened.
    Broken,
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        use inn_protocol::Code;
        match error {
            StoreError::Refused(refusal) => *refusal,
            // Only reached when every bounded retry found the state moving again.
            StoreError::Stale => {
                Self::new(Code::Overloaded, "The app's rights kept changing while this call ran; send it again.")
                    .after(1)
            }
            StoreError::Unknown => Self::new(
                Code::OutcomeUnknown,
                "The connection to the database was lost while this call was committed. Send it again with the same Idempotency-Key.",
            ),
            StoreError::Unavailable => Self::new(
                Code::Unavailable,
                "The database does not answer at the moment; nothing was changed. Send it again.",
            ),
            StoreError::Broken => Self::internal(),
        }
    }
}
