//! Where a client is in the stream of changes, sealed for whoever it was told to: nobody else may go on from there, and
//! nobody may make one up.

use hmac::Mac as _;
use zeroize::Zeroizing;

use crate::app_token::keyed;
use crate::encoding::{from_base64url, to_base64url};
use crate::keys::same_secret;

/// Bytes of the seal: enough that guessing one takes longer than a cursor is good for.
const SEAL: usize = 16;
/// Longer texts are no cursors of ours.
const LONGEST: usize = 16 << 10;

/// Seals cursors. Every node with the same root key has the same one.
#[derive(Clone)]
pub struct CursorKey(Zeroizing<[u8; 32]>);

impl CursorKey {
    pub(crate) fn of(seed: &[u8; 32]) -> Self {
        Self(Zeroizing::new(mac(seed, &[b"innkeeper-cursor:v1"])))
    }

    /// `whose` says for whom and where it counts.
    pub fn seal(&self, whose: &str, place: &[u8]) -> String {
        let mut bytes = self.of_text(whose, place).to_vec();
        bytes.extend_from_slice(place);
        to_base64url(&bytes)
    }

    /// `None` for what was not sealed with this key for the same one.
    pub fn open(&self, whose: &str, cursor: &str) -> Option<Vec<u8>> {
        let mut bytes = if cursor.len() <= LONGEST { from_base64url(cursor)? } else { return None };
        if bytes.len() < SEAL {
            return None;
        }
        let place = bytes.split_off(SEAL);
        same_secret(&bytes, &self.of_text(whose, &place)).then_some(place)
    }

    fn of_text(&self, whose: &str, place: &[u8]) -> [u8; SEAL] {
        let length = u64::try_from(whose.len()).unwrap_or(u64::MAX).to_be_bytes();
        let full = mac(&self.0, &[&length, whose.as_bytes(), place]);
        let mut seal = [0; SEAL];
        for (to, from) in seal.iter_mut().zip(full) {
            *to = from;
        }
        seal
    }
}

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey")
    }
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = keyed(key);
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_for_whom_it_was_sealed_and_for_nobody_else() {
        let key = CursorKey::of(&[1; 32]);
        let cursor = key.seal("ada", b"place");
        assert_eq!(key.open("ada", &cursor).as_deref(), Some(b"place".as_slice()));
        assert_eq!(key.open("bob", &cursor), None);
        assert_eq!(CursorKey::of(&[2; 32]).open("ada", &cursor), None);
        for text in ["", "x", "AAAA", cursor.get(1..).unwrap(), &format!("{cursor}AAAA"), &"A".repeat(1 << 20)] {
            assert_eq!(key.open("ada", text), None, "{text:.40}");
        }
    }
}
