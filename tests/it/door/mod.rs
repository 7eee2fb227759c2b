//! Who gets in at all: signatures, tokens, helpers, browsers, the loopback token.

mod adversary;
mod browsers;
mod helpers;
mod loopback;
mod signatures;
mod tokens;
mod under_a_claim;
