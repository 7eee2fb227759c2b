//! Keys, signatures and tokens: what proves who asks (DESIGN section 5).
//!
//! Pure: time, seeds and key sets are arguments, nothing is stored and nothing is remembered. Whether a nonce was seen,
//! a grant still lives or a key is known is asked elsewhere. The libraries underneath stay inside: keys cross this
//! border as bytes or as the newtypes of [`keys`].

pub mod app_token;
pub mod cursor;
pub mod delegation;
pub mod keys;
pub mod opaque;
pub mod password;
pub mod seal;
pub mod signature;
pub mod token;
pub mod vault;

mod encoding;

pub use keys::{PublicKey, SigningKey};

#[cfg(test)]
mod vectors;
