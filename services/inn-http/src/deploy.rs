//! From bundle bytes to an installed release: the one way in, for `POST /v1/apps` and for the demo apps at start.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use inn_bundle::{Bundle, Limits};
use inn_ports::{Blobs, DeployPlan, Deployed, Store, StoreError, StoreResult};
use inn_protocol::app::AppDefinition;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Digest, Refusal, TenantId, Violation};

use crate::host;

/// Blobs written at one time.
const WRITERS: usize = 8;

/// Which kinds of work the app may ask agents for from now on. Consent is given by name, in the words of the bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CapabilityConsent {
    /// What was consented to before stays; a new app has nothing yet.
    #[default]
    AsBefore,
    /// Everything the bundle declares.
    All,
    Named(Vec<String>),
}

/// What the deployer says beside the bundle.
#[derive(Debug, Clone, Default)]
pub struct InstallOptions {
    /// Says what would change, and changes nothing.
    pub dry_run: bool,
    /// Columns and entities that the new release no longer has may go.
    pub allow_destructive: bool,
    pub consent: CapabilityConsent,
    /// Largest bundle as sent, in bytes; `None` leaves it to [`Limits::default`].
    pub max_bundle: Option<usize>,
}

/// Opens the bundle, keeps its bytes and its UI's files as blobs, then deploys in one transaction.
///
/// Must run on the I/O runtime: unpacking goes to a blocking thread. Blobs come first, so that a release never points to
/// bytes that are not there; what a failed deploy leaves behind is found again by its digest.
pub async fn install(
    store: &dyn Store,
    blobs: &dyn Blobs,
    call: &CallRecord,
    tenant: TenantId,
    slug: &str,
    bytes: Bytes,
    options: &InstallOptions,
) -> StoreResult<Deployed> {
    check_slug(slug)?;
    let limits = limits(options);
    let archive = bytes.clone();
    let opened = tokio::task::spawn_blocking(move || open(&archive, &limits)).await;
    let (bundle, definition) = opened.map_err(|error| {
        tracing::error!(%error, "unpacking a bundle died");
        StoreError::Broken
    })??;
    let before = match &options.consent {
        CapabilityConsent::AsBefore => store.app_by_slug(slug).await?.filter(|app| app.tenant == tenant),
        _ => None,
    };
    let before = before.map(|app| app.consented.clone()).unwrap_or_default();
    let consented = consent(&definition, &options.consent, &before)?;
    let ui_files = ui_files(&bundle, &definition);
    let plan = DeployPlan {
        tenant,
        slug: slug.to_owned(),
        release: bundle.digest(),
        archive: bundle.archive_digest,
        archive_bytes: bytes.len() as u64,
        files: bundle.file_digests.clone(),
        ui_files,
        definition: definition.into(),
        consented,
        allow_destructive: options.allow_destructive,
        dry_run: options.dry_run,
    };
    if !options.dry_run {
        keep(blobs, bundle, &plan, bytes).await?;
    }
    store.deploy(call, &plan).await
}

/// Bundle bytes to the typed app. CPU work: tens of milliseconds for a large bundle.
fn open(bytes: &[u8], limits: &Limits) -> Result<(Bundle, AppDefinition), Refusal> {
    let bundle = inn_bundle::read(bytes, limits)?;
    let mut definition = inn_bundle::load(&bundle, chrono::Utc::now())?;
    inn_rules::view::infer(&mut definition.model)?;
    Ok((bundle, definition))
}

fn limits(options: &InstallOptions) -> Limits {
    let limits = Limits::default();
    let most = options.max_bundle.map_or(limits.max_archive_bytes, |most| limits.max_archive_bytes.min(most as u64));
    Limits { max_archive_bytes: most, ..limits }
}

fn check_slug(slug: &str) -> Result<(), Refusal> {
    if host::is_slug(slug) {
        return Ok(());
    }
    let expected = "1 to 40 lower-case letters, digits and inner hyphens";
    let got = serde_json::Value::String(slug.to_owned());
    let violation = Violation::new(Code::InvalidParameter, "slug", expected).got(&got);
    Err(Refusal::violations(format!("An app's slug has {expected}: it becomes a host name."), vec![violation]))
}

fn consent(definition: &AppDefinition, asked: &CapabilityConsent, before: &[String]) -> Result<Vec<String>, Refusal> {
    let declared = || definition.capabilities.iter().map(|capability| capability.name.clone());
    let asked = match asked {
        CapabilityConsent::All => return Ok(declared().collect()),
        CapabilityConsent::AsBefore => return Ok(declared().filter(|name| before.contains(name)).collect()),
        CapabilityConsent::Named(names) => names,
    };
    let unknown = |name: &&String| definition.capability(name).is_none();
    if let Some(name) = asked.iter().find(unknown) {
        let names: Vec<_> = declared().collect();
        let expected =
            if names.is_empty() { "the app declares none".to_owned() } else { format!("among {}", names.join(", ")) };
        let got = serde_json::Value::String(name.clone());
        let violation = Violation::new(Code::InvalidParameter, "capabilities", expected).got(&got);
        let message = "The bundle declares no such capability, so nobody can consent to it.";
        return Err(Refusal::violations(message, vec![violation]));
    }
    Ok(declared().filter(|name| asked.contains(name)).collect())
}

/// The files below the UI's folder, by their path in it.
fn ui_files(bundle: &Bundle, definition: &AppDefinition) -> BTreeMap<String, Digest> {
    let Some(root) = definition.ui_root.as_deref() else { return BTreeMap::new() };
    let below = |(path, digest): (&String, &Digest)| {
        let path = path.strip_prefix(root)?.strip_prefix('/')?;
        Some((path.to_owned(), *digest))
    };
    bundle.file_digests.iter().filter_map(below).collect()
}

async fn keep(blobs: &dyn Blobs, bundle: Bundle, plan: &DeployPlan, archive: Bytes) -> StoreResult<()> {
    blobs.put(plan.archive, archive).await?;
    // Two files with the same bytes are one blob.
    let mut wanted: BTreeMap<Digest, Bytes> = BTreeMap::new();
    let mut files = bundle.files;
    let root = plan.definition.ui_root.as_deref().unwrap_or_default();
    for (path, digest) in &plan.ui_files {
        if let Some(bytes) = files.remove(&format!("{root}/{path}")) {
            wanted.insert(*digest, bytes.into());
        }
    }
    let puts = wanted.into_iter().map(|(digest, bytes)| blobs.put(digest, bytes));
    stream::iter(puts).buffer_unordered(WRITERS).try_collect::<Vec<()>>().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(manifest: &str) -> BTreeMap<String, Vec<u8>> {
        let operations = br#"{"opsVersion":1,"operations":[]}"#.to_vec();
        BTreeMap::from([
            ("manifest.json".to_owned(), manifest.as_bytes().to_vec()),
            ("operations.json".to_owned(), operations),
            ("pb/pb_public/index.html".to_owned(), b"<p>hi</p>".to_vec()),
            ("pb/pb_public/deep/a.js".to_owned(), b"1".to_vec()),
        ])
    }

    const MANIFEST: &str = r#"{"id":"x","name":"X","version":"1.0.0","livingUIVersion":2,"authMode":"none",
        "createdAt":"2026-01-01T00:00:00Z","pipeline":{"health":"/api/health"},
        "innkeeper":{"capabilities":[{"name":"sum-up","sentence":"Sum up","input":{"type":"object"},"result":{"type":"object"}},
        {"name":"sort","sentence":"Sort","input":{"type":"object"},"result":{"type":"object"}}]}}"#;

    fn opened() -> (Bundle, AppDefinition) {
        let (bytes, _) = inn_bundle::pack(files(MANIFEST), chrono::DateTime::UNIX_EPOCH).unwrap();
        open(&bytes, &Limits::default()).unwrap()
    }

    #[test]
    fn the_ui_is_what_lies_below_its_folder_and_nothing_else() {
        let (bundle, definition) = opened();
        let ui = ui_files(&bundle, &definition);
        assert_eq!(ui.keys().collect::<Vec<_>>(), ["deep/a.js", "index.html"]);
        assert_eq!(ui["index.html"], Digest::of(b"<p>hi</p>"));
    }

    #[test]
    fn consent_is_as_before_to_all_or_by_name() {
        let (_, definition) = opened();
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let only = |list: &[&str]| CapabilityConsent::Named(names(list));
        assert_eq!(consent(&definition, &CapabilityConsent::All, &[]).unwrap(), names(&["sum-up", "sort"]));
        assert!(
            consent(&definition, &CapabilityConsent::AsBefore, &[]).unwrap().is_empty(),
            "a new app may ask nothing"
        );
        let before = names(&["sort", "gone"]);
        assert_eq!(consent(&definition, &CapabilityConsent::AsBefore, &before).unwrap(), names(&["sort"]));
        assert_eq!(consent(&definition, &only(&["sort"]), &[]).unwrap(), names(&["sort"]));
        assert!(consent(&definition, &only(&[]), &before).unwrap().is_empty());
        let refused = consent(&definition, &only(&["sort", "mine-coins"]), &[]).unwrap_err();
        assert_eq!((refused.code, refused.violations[0].field.as_str()), (Code::InvalidParameter, "capabilities"));
    }

    #[test]
    fn a_slug_that_is_no_host_label_is_refused() {
        for slug in ["", "-a", "a-", "A", "a.b", "a b", &"a".repeat(41)] {
            assert_eq!(check_slug(slug).unwrap_err().code, Code::InvalidParameter, "{slug}");
        }
        assert!(check_slug("my-board-2").is_ok());
    }

    #[test]
    fn a_host_may_take_smaller_bundles_and_never_larger_ones() {
        let most = |max_bundle| limits(&InstallOptions { max_bundle, ..InstallOptions::default() }).max_archive_bytes;
        assert_eq!(most(Some(10)), 10);
        assert_eq!(most(Some(usize::MAX)), most(None));
    }
}
