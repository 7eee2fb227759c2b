//! The two base64 alphabets, both strict: one text for one value, so that a digest of a text names one value too.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

pub(crate) fn to_base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn from_base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Exactly `N` bytes, without allocating.
pub(crate) fn array_from_base64url<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode_exactly(&URL_SAFE_NO_PAD, text)
}

pub(crate) fn push_base64(bytes: &[u8], out: &mut String) {
    STANDARD.encode_string(bytes, out);
}

/// Exactly `N` bytes of padded base64, as in a Structured Fields byte sequence (RFC 9651).
pub(crate) fn array_from_base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode_exactly(&STANDARD, text)
}

fn decode_exactly<const N: usize>(engine: &impl base64::Engine, text: &str) -> Option<[u8; N]> {
    // The decoder wants room for whole quanta; the largest value read here is a signature of 64 bytes.
    let mut buffer = [0_u8; 72];
    let written = engine.decode_slice(text, &mut buffer).ok()?;
    buffer.get(..written)?.try_into().ok()
}
