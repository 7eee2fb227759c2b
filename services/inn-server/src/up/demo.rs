//! The demo apps, carried in the binary and installed the way every other app is.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use bytes::Bytes;
use chrono::DateTime;
use inn_blobs::BlobStore;
use inn_http::deploy::{CapabilityConsent, InstallOptions, install as install_bundle};
use inn_ports::Apps as _;
use inn_protocol::call::Action;
use inn_protocol::{Code, Digest, Refusal, TenantId};
use inn_store::PgStore;

use crate::calls::platform_call;
use crate::platform::read_optional;

/// One app's folder: path in it and bytes.
pub(crate) struct DemoApp {
    pub(crate) slug: &'static str,
    pub(crate) files: &'static [(&'static str, &'static [u8])],
}

// `DEMO_APPS`, made by the build script from `ops/demo`.
include!(concat!(env!("OUT_DIR"), "/demo.rs"));

impl DemoApp {
    /// As a `.agentapp`: the same bytes whenever it is packed.
    pub(crate) fn pack(&self) -> Result<(Vec<u8>, Digest), Refusal> {
        let files = self.files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
        let (bytes, bundle) = inn_bundle::pack(files.collect(), DateTime::UNIX_EPOCH)?;
        Ok((bytes, bundle.digest()))
    }
}

/// Which release of which demo app was installed here: one that was removed does not come back.
type Installed = BTreeMap<String, Digest>;

/// Installs what is new. A demo app that cannot be installed is told and does not keep the platform from starting.
pub(crate) async fn install(store: &PgStore, blobs: &BlobStore, dir: &Path, tenant: TenantId) -> anyhow::Result<()> {
    let path = dir.join("demo.json");
    let mut known: Installed = match read_optional(&path)? {
        Some(text) => {
            serde_json::from_str(&text).with_context(|| format!("{} is damaged; remove it", path.display()))?
        }
        None => Installed::new(),
    };
    let present = store.apps(tenant).await.map_err(Refusal::from)?;
    for app in DEMO_APPS {
        let (bytes, release) = app.pack().with_context(|| format!("demo app {}", app.slug))?;
        let there = present.iter().any(|installed| installed.slug == app.slug);
        if !wanted(known.get(app.slug), release, there) {
            continue;
        }
        let action = Action::Deploy { slug: app.slug.to_owned() };
        let call = platform_call(&action, tenant, None, Digest::of(&bytes));
        // Ours, and looked at: their requests are what the demo shows.
        let options = InstallOptions { consent: CapabilityConsent::All, ..InstallOptions::default() };
        match install_bundle(store, blobs, &call, tenant, app.slug, Bytes::from(bytes), &options)
            .await
            .map_err(Refusal::from)
        {
            Ok(deployed) => tracing::info!(app = app.slug, release = %deployed.release, "demo app installed"),
            Err(refusal) if refusal.code == Code::SlugTaken => {
                tracing::warn!(app = app.slug, "the demo app's name is taken");
            }
            Err(refusal) => {
                tracing::error!(app = app.slug, %refusal, violations = ?refusal.violations, "a demo app could not be installed");
                continue;
            }
        }
        known.insert(app.slug.to_owned(), release);
        keep(&path, &known)?;
    }
    Ok(())
}

/// New here, or here in another release.
fn wanted(known: Option<&Digest>, release: Digest, there: bool) -> bool {
    match known {
        None => true,
        Some(installed) => there && *installed != release,
    }
}

fn keep(path: &Path, known: &Installed) -> anyhow::Result<()> {
    let draft = path.with_extension("draft");
    let text = serde_json::to_string(known)?;
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, path))
        .with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_carries_the_demo_apps_and_they_load() {
        let slugs: Vec<_> = DEMO_APPS.iter().map(|app| app.slug).collect();
        assert_eq!(slugs, ["expenses", "kanban"]);
        for app in DEMO_APPS {
            let (bytes, digest) = app.pack().unwrap();
            assert_eq!(app.pack().unwrap().0, bytes, "{}", app.slug);
            let bundle = inn_bundle::read(&bytes, &inn_bundle::Limits::default()).unwrap();
            assert_eq!(bundle.digest(), digest);
            let loaded = inn_bundle::load(&bundle, DateTime::UNIX_EPOCH);
            assert!(loaded.is_ok(), "{}: {:?}", app.slug, loaded.err());
        }
    }

    #[test]
    fn a_removed_demo_app_does_not_come_back() {
        let [old, new] = [Digest::of(b"old"), Digest::of(b"new")];
        for (known, there, install) in [
            (None, false, true),
            (None, true, true),
            (Some(old), true, true),
            (Some(old), false, false),
            (Some(new), true, false),
        ] {
            assert_eq!(wanted(known.as_ref(), new, there), install, "{known:?} {there}");
        }
    }
}
