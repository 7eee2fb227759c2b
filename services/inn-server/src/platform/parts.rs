//! Everything below the HTTP edge, in the order it depends on each other.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use anyhow::{Context as _, bail};
use inn_blobs::{BlobConfig, BlobPlace, BlobStore, S3Config};
use inn_grants::token::RootKeys;
use inn_ports::{Apps as _, Bus, Mail, Register as _};
use inn_protocol::TenantId;
use inn_store::{DatabaseClock, PgStore, StoreConfig};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::{Role, Welcome};
use crate::address::Addresses;
use crate::config::{DataSettings, SettingError, Settings};
use crate::founding::{self, Founding};
use crate::keys::{KeyRing, Origin};
use crate::tokens::{AgentTokens, Rule};
use crate::up;
use crate::up::home::Home;
use crate::up::keeper::Keeper;

pub(super) struct Parts {
    pub(super) listener: TcpListener,
    pub(super) addresses: Addresses,
    pub(super) store: PgStore,
    pub(super) blobs: BlobStore,
    pub(super) clock: DatabaseClock,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) mail: Arc<dyn Mail>,
    pub(super) root: Arc<RootKeys>,
    pub(super) published: Value,
    /// Agent token files, on loopback.
    pub(super) tokens: Option<AgentTokens>,
    pub(super) database_url: String,
    pub(super) postgres_pid: Option<u32>,
    pub(super) owner: Option<String>,
    pub(super) welcome: Welcome,
    /// Held as long as the platform runs.
    _lock: Option<up::lock::DataLock>,
}

/// What the keeper of an embedded database tells others.
pub(super) struct Watch {
    /// Cancelled when the database is gone for good.
    pub(super) stop: CancellationToken,
    /// The server's new process, after each restart.
    pub(super) restarts: SyncSender<u32>,
}

impl Parts {
    /// `database` receives the embedded server as soon as it runs, so that it is stopped after everything else whatever
    /// goes wrong here. `watch` is how others learn of its restarts and of its end.
    pub(super) fn assemble(
        settings: &Settings,
        role: &Role,
        io: &Runtime,
        watch: Watch,
        database: &mut Option<Keeper>,
    ) -> anyhow::Result<Self> {
        up::home::prepare_dir(&settings.data)?;
        let lock = match role {
            Role::Up(_) => Some(up::lock::DataLock::take(&settings.data.dir)?),
            Role::Serve { .. } => None,
        };
        let listener = listen(settings)?;
        let addresses = Addresses::of(settings, listener.local_addr()?)?;
        let keys = Arc::new(open_keys(&settings.data)?);
        let blob_config = blob_config(settings, io.handle())?;
        let (database_url, migrate) = match role {
            Role::Up(_) => {
                let keeper = up::database::start(settings, watch.stop, watch.restarts)?;
                (database.insert(keeper).url().to_owned(), true)
            }
            Role::Serve { migrate } => (given_database(settings)?, *migrate),
        };
        io.block_on(schema(&database_url, migrate))?;
        let bus = inn_bus::connect(settings.redis.url.as_deref(), io.handle())?;
        let mut config = store_config(settings, &database_url, io, &keys);
        config.bus = Some(Arc::clone(&bus));
        let store = io.block_on(PgStore::connect(config))?;
        let blobs = BlobStore::open(blob_config)?;
        io.block_on(blobs.check()).map_err(|_| no_blobs(settings))?;
        let clock = DatabaseClock::default();
        let offset = io.block_on(clock.measure(&store)).map_err(unreadable)?;
        tracing::debug!(milliseconds = offset.num_milliseconds(), "database time minus this node's");
        io.block_on(same_keys(&store, &keys, &settings.data))?;
        let mail = crate::mail::open(&settings.mail, addresses.loopback)?;
        let (root, published) = (Arc::new(keys.root()?), keys.published());
        // Only a platform that owns its database may give out a token file anew.
        let giving = if matches!(role, Role::Up(_)) { Rule::Owner } else { Rule::Guest };
        let tokens = addresses.loopback.then(|| AgentTokens::new(settings.data.tokens(), giving));
        let mut parts = Self {
            postgres_pid: database.as_ref().map(Keeper::pid),
            owner: None,
            welcome: Welcome::default(),
            _lock: lock,
            listener,
            addresses,
            store,
            blobs,
            clock,
            bus,
            mail,
            root,
            published,
            tokens,
            database_url,
        };
        if let Role::Serve { migrate: true } = role
            && let Founding::Done { owner, tenant } = io.block_on(founding::as_set(&parts.store, &settings.people))?
        {
            tracing::info!(owner, tenant, "founded");
        }
        if let Role::Up(options) = role {
            let home = io.block_on(Home::open(&parts.store, settings, options))?;
            if options.demo {
                io.block_on(up::demo::install(&parts.store, &parts.blobs, &settings.data.dir, home.tenant))?;
            }
            parts.welcome = Welcome { password: home.new_password.clone(), link: None };
            parts.welcome.link = io.block_on(home.link(&parts.store, &parts.addresses, settings.people.session_hours));
            parts.owner = Some(home.owner);
        }
        if let Some(tokens) = &parts.tokens {
            io.block_on(tokens.ensure(&parts.store, true)).map_err(unreadable)?;
        }
        Ok(parts)
    }
}

/// Early, so that a port in use is told before anything else is touched. Callers wait in its queue meanwhile.
fn listen(settings: &Settings) -> anyhow::Result<TcpListener> {
    let address = settings.http.listen;
    TcpListener::bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow::anyhow!("{address} is in use by another program: stop it, or choose another with --listen (port 0 takes any free one)")
        }
        std::io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("this user may not listen on {address}: choose a port above 1023 with --listen")
        }
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address} (--listen)")),
    })
}

pub(crate) fn open_keys(data: &DataSettings) -> anyhow::Result<KeyRing> {
    let origin = if data.keys_dir.is_some() { Origin::Given } else { Origin::Made };
    Ok(KeyRing::open(&data.keys(), origin)?)
}

fn given_database(settings: &Settings) -> Result<String, SettingError> {
    settings.database.url.clone().ok_or_else(|| {
        let what = "DATABASE_URL is missing: `inn serve` needs the address of a PostgreSQL database. To run one on this machine use `inn up`";
        SettingError(what.to_owned())
    })
}

async fn schema(url: &str, migrate: bool) -> anyhow::Result<()> {
    if migrate {
        let applied = inn_store::migrate(url).await?;
        if !applied.is_empty() {
            tracing::info!(?applied, "the database was brought up to date");
        }
        return Ok(());
    }
    let pending = inn_store::pending(url).await?;
    if pending.is_empty() {
        return Ok(());
    }
    bail!(
        "the database is behind this version of inn; {} to apply: {}. Run `inn migrate`, or start with --migrate",
        pending.len(),
        pending.join(", ")
    )
}

/// Where blobs lie, or what is missing to say so.
pub(crate) fn blob_config(settings: &Settings, io: &tokio::runtime::Handle) -> Result<BlobConfig, SettingError> {
    let mut config = BlobConfig::directory(settings.data.blobs(), io.clone());
    config.thumb_workers = settings.files.thumb_workers;
    let s3 = &settings.blobs;
    let Some(bucket) = &s3.s3_bucket else { return Ok(config) };
    let (Some(access_key), Some(secret_key)) = (&s3.s3_access_key, &s3.s3_secret_key) else {
        let what =
            "INN_S3_BUCKET is set, and INN_S3_ACCESS_KEY or INN_S3_SECRET_KEY is not: the object store needs both";
        return Err(SettingError(what.to_owned()));
    };
    config.place = BlobPlace::S3(S3Config {
        bucket: bucket.clone(),
        prefix: s3.s3_prefix.clone().unwrap_or_default(),
        endpoint: s3.s3_endpoint.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned()),
        region: s3.s3_region.clone(),
        access_key: access_key.clone(),
        secret_key: secret_key.clone(),
    });
    Ok(config)
}

fn no_blobs(settings: &Settings) -> anyhow::Error {
    let place = match &settings.blobs.s3_bucket {
        Some(bucket) => format!("bucket {bucket} of the object store"),
        None => at(&settings.data.blobs()),
    };
    anyhow::anyhow!("{place} does not answer or refuses the keys; the log says why")
}

fn store_config(settings: &Settings, url: &str, io: &Runtime, keys: &Arc<KeyRing>) -> StoreConfig {
    let signer: Arc<dyn inn_store::HeadSigner> = Arc::<KeyRing>::clone(keys);
    let mut config = StoreConfig::new(url, io.handle().clone(), signer, keys.vault());
    config.pool_size = settings.database.pool_size;
    config.acquire_timeout = settings.database.acquire_timeout;
    config.statement_timeout = settings.database.statement_timeout;
    config.synchronous_commit = settings.database.synchronous_commit;
    config
}

/// A node with other keys than its fellows would refuse their tokens and doubt their heads.
async fn same_keys(store: &PgStore, keys: &KeyRing, data: &DataSettings) -> anyhow::Result<()> {
    for number in store.sealed_with().await.map_err(unreadable)? {
        if !keys.vault().knows(number) {
            bail!(
                "secrets in this database are sealed with secret-{number}.key, which is not in {}: every node needs the same \
                 keys, old ones included. Copy the key directory of the node that was here first, or point INN_KEYS_DIR to it",
                data.keys().display()
            );
        }
    }
    let apps = store.all_apps().await.map_err(unreadable)?;
    let tenants = apps.iter().map(|app| app.tenant).chain([TenantId::PLATFORM]);
    for tenant in tenants.collect::<std::collections::BTreeSet<_>>() {
        let head = store.head(tenant).await.map_err(unreadable)?;
        if let Some(head) = head.filter(|head| !keys.knows_register_key(&head.key)) {
            bail!(
                "the register of this database was signed with a key ({}) that is not in {}: every node needs the same keys. \
                 Copy the key directory of the node that was here first, or point INN_KEYS_DIR to it",
                head.key,
                data.keys().display()
            );
        }
    }
    Ok(())
}

fn unreadable(error: inn_ports::StoreError) -> anyhow::Error {
    anyhow::Error::new(inn_protocol::Refusal::from(error))
        .context("the database could not be read at start; the log says why")
}

/// Keeps a path in messages.
pub(crate) fn at(path: &std::path::Path) -> String {
    path.display().to_string()
}

pub(crate) fn read_optional(path: &std::path::Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| at(path)),
    }
}
