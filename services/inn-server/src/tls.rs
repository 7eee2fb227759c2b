//! One implementation of cryptography for every TLS client in the process.

use std::sync::Once;

static INSTALLED: Once = Once::new();

/// Makes ring the process's provider. Any number of calls is one.
pub(crate) fn install() {
    INSTALLED.call_once(|| {
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            tracing::debug!("another part of the process has chosen its TLS provider already");
        }
    });
}
