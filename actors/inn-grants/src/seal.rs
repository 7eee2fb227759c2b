//! Sealing the register: a hash chain over entries and signed heads (DESIGN section 7).

use chrono::{DateTime, Utc};
use inn_protocol::{Digest, TenantId};
use sha2::Digest as _;

use crate::keys::{PublicKey, SigningKey};

/// What the first entry of a tenant's chain is chained to.
pub const GENESIS: Digest = Digest([0; 32]);

/// The head after an entry: SHA-256 over the text `innkeeper-chain:v1`, a line feed, the head before it and the entry's
/// digest (32 bytes each).
pub fn chain(previous: Digest, entry: Digest) -> Digest {
    let mut hasher = sha2::Sha256::new();
    hasher.update(b"innkeeper-chain:v1\n");
    hasher.update(previous.0);
    hasher.update(entry.0);
    Digest(hasher.finalize().into())
}

/// "At this time, `seq` entries of this tenant chained to `head`." Once signed and handed out, none of them can be
/// changed, removed or cut off without it showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadStatement {
    pub tenant: TenantId,
    /// Number of the last entry, counting from 1.
    pub seq: i64,
    pub head: Digest,
    /// Signed to the microsecond, which is what PostgreSQL keeps.
    pub at: DateTime<Utc>,
}

impl HeadStatement {
    /// The signed bytes: five lines of ASCII (`innkeeper-head:v1`, tenant id, number, head in hex, unix microseconds), the
    /// last without line feed.
    pub fn canonical(&self) -> String {
        let Self { tenant, seq, head, at } = self;
        format!("innkeeper-head:v1\n{tenant}\n{seq}\n{head}\n{}", at.timestamp_micros())
    }

    pub fn sign(&self, key: &SigningKey) -> [u8; 64] {
        key.sign(self.canonical().as_bytes())
    }

    pub fn verify(&self, key: &PublicKey, signature: &[u8; 64]) -> bool {
        key.verify_strict(self.canonical().as_bytes(), signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement() -> HeadStatement {
        HeadStatement {
            tenant: "ten_0192f0c1a2b37c4d8e5f60718293a4b5".parse().unwrap(),
            seq: 2,
            head: chain(chain(GENESIS, Digest::of(b"one")), Digest::of(b"two")),
            at: DateTime::from_timestamp_micros(1_800_000_000_123_456).unwrap(),
        }
    }

    #[test]
    fn the_chain_depends_on_every_entry_and_their_order() {
        let [one, two] = [Digest::of(b"one"), Digest::of(b"two")];
        let head = chain(chain(GENESIS, one), two);
        assert_ne!(head, chain(chain(GENESIS, two), one));
        assert_ne!(head, chain(GENESIS, two));
        let whole = [b"innkeeper-chain:v1\n".as_slice(), &[0; 32], &one.0].concat();
        assert_eq!(chain(GENESIS, one), Digest::of(&whole));
    }

    #[test]
    fn a_head_is_signed_over_five_published_lines() {
        let lines = statement().canonical();
        let lines: Vec<_> = lines.split('\n').collect();
        let head = statement().head.to_string();
        let expected =
            ["innkeeper-head:v1", "ten_0192f0c1a2b37c4d8e5f60718293a4b5", "2", head.as_str(), "1800000000123456"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_signed_head_fits_no_other_statement_or_key() {
        let key = SigningKey::from_seed([9; 32]);
        let signature = statement().sign(&key);
        assert!(statement().verify(&key.public(), &signature));
        assert!(!statement().verify(&SigningKey::from_seed([8; 32]).public(), &signature));
        let moved = statement().at + chrono::TimeDelta::microseconds(1);
        for other in [
            HeadStatement { tenant: TenantId::new(), ..statement() },
            HeadStatement { seq: 3, ..statement() },
            HeadStatement { head: GENESIS, ..statement() },
            HeadStatement { at: moved, ..statement() },
        ] {
            assert!(!other.verify(&key.public(), &signature), "{other:?}");
        }
    }
}
