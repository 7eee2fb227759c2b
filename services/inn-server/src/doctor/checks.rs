//! The checks, in the order things are needed at start.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use chrono::TimeDelta;
use inn_blobs::BlobStore;
use inn_protocol::Refusal;
use inn_store::DatabaseClock;

use super::{Check, postgres, redis};
use crate::address::Addresses;
use crate::config::{Settings, Sources};
use crate::keys::{KeyRing, Origin};
use crate::platform::blob_config;
use crate::scratch::Scratch;
use crate::up::lock::DataLock;

/// A node's clock may be this far from the database's before somebody should set it: database time rules, but logs and
/// other programs go by the node's.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::seconds(2);

/// What can be seen on this machine.
pub(super) fn local(sources: &Sources<'_>, settings: &Settings) -> Vec<Check> {
    let mut checks = vec![variables(sources)];
    if settings.database.url.is_none() {
        let path = std::env::var_os("PATH");
        checks.push(postgres::check(path.as_deref(), Path::new("/usr/lib/postgresql")));
    }
    let running = is_running(&settings.data.dir);
    checks.extend([
        data(&settings.data.dir),
        keys(settings),
        listener(settings, running),
        addresses(settings),
        mail(settings),
    ]);
    checks
}

/// What has to be asked for over the network.
pub(super) async fn remote(settings: &Settings, io: &tokio::runtime::Handle) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(url) = &settings.database.url {
        checks.extend(database(url, io).await);
    }
    if let Some(url) = &settings.redis.url {
        checks.push(redis::check(url).await);
    }
    if let Some(bucket) = &settings.blobs.s3_bucket {
        checks.push(object_store(settings, bucket, io).await);
    }
    checks
}

/// Reads with the keys; that they may write shows with the first upload.
async fn object_store(settings: &Settings, bucket: &str, io: &tokio::runtime::Handle) -> Check {
    const NAME: &str = "object store";
    let opened = match blob_config(settings, io) {
        Ok(config) => BlobStore::open(config),
        Err(missing) => return Check::fail(NAME, missing.0, "Set both keys, or no bucket"),
    };
    let problem = match opened {
        Ok(store) => match store.check().await {
            Ok(()) => return Check::ok(NAME, format!("bucket {bucket} answers")),
            Err(_) => format!("bucket {bucket} does not answer, or refuses the keys"),
        },
        Err(error) => error.to_string(),
    };
    Check::fail(NAME, problem, "Correct INN_S3_ENDPOINT, INN_S3_REGION and the keys; the log has the cause")
}

fn variables(sources: &Sources<'_>) -> Check {
    let unknown = sources.unknown_variables();
    if unknown.is_empty() {
        return Check::ok("settings", "every INN_ variable is known");
    }
    let advice = "If they are meant as settings, correct their names; ops/guide/settings.md lists all of them";
    Check::warn("settings", format!("these variables are no settings of the server: {}", unknown.join(", ")), advice)
}

fn is_running(dir: &Path) -> bool {
    dir.join("lock").exists() && DataLock::take(dir).is_err()
}

fn data(dir: &Path) -> Check {
    const NAME: &str = "data directory";
    let shown = dir.display();
    let exists = dir.exists();
    let place = if exists { dir } else { nearest(dir) };
    // The only honest way to know is to try.
    match tempfile::Builder::new().prefix(".inn-doctor-").tempfile_in(place) {
        Ok(_) if exists => Check::ok(NAME, format!("{shown} can be written")),
        Ok(_) => Check::ok(NAME, format!("{shown} is made at the first start")),
        Err(error) => {
            let advice = format!("Let this user write to {}, or choose another directory with --data", place.display());
            Check::fail(NAME, format!("{shown}: {error}"), advice)
        }
    }
}

/// The nearest ancestor that exists.
fn nearest(dir: &Path) -> &Path {
    let found = dir.ancestors().skip(1).find(|ancestor| !ancestor.as_os_str().is_empty() && ancestor.exists());
    found.unwrap_or(Path::new("."))
}

fn keys(settings: &Settings) -> Check {
    const NAME: &str = "keys";
    let dir = settings.data.keys();
    let given = settings.data.keys_dir.is_some();
    let empty = fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_none());
    if !given && (!dir.exists() || empty) {
        return Check::ok(NAME, format!("are made at the first start, in {}", dir.display()));
    }
    let origin = if given { Origin::Given } else { Origin::Made };
    match KeyRing::look(&dir, origin) {
        Ok(()) => Check::ok(NAME, format!("{} holds them, closed to others", dir.display())),
        Err(error) => Check::fail(NAME, error.path.display().to_string(), error.what),
    }
}

fn listener(settings: &Settings, running: bool) -> Check {
    const NAME: &str = "listener";
    let address = settings.http.listen;
    match TcpListener::bind(address) {
        Ok(_) => Check::ok(NAME, format!("{address} is free")),
        Err(_) if running => Check::ok(NAME, format!("{address} is in use, and `inn up` runs on this data directory")),
        Err(error) => Check::fail(
            NAME,
            format!("{address}: {error}"),
            "Stop the program that uses it, or choose another address with --listen",
        ),
    }
}

fn addresses(settings: &Settings) -> Check {
    const NAME: &str = "addresses";
    match Addresses::of(settings, settings.http.listen) {
        Ok(found) => Check::ok(NAME, format!("platform {}, apps below {}", found.platform_text(), found.apps_domain)),
        Err(error) => Check::fail(NAME, error.to_string(), "Set INN_PUBLIC_URL and INN_APPS_DOMAIN"),
    }
}

fn mail(settings: &Settings) -> Check {
    const NAME: &str = "mail";
    let loopback = settings.http.listen.ip().is_loopback();
    match crate::mail::open(&settings.mail, loopback) {
        Ok(mail) if settings.mail.smtp_host.is_some() && mail.is_ready() => Check::ok(NAME, "a mail server is set"),
        Ok(mail) if mail.is_ready() => {
            Check::ok(NAME, "no mail server is set: mails are shown in the log and the console")
        }
        Ok(_) => Check::ok(NAME, "no mail server is set: apps cannot send mails to their own users"),
        Err(error) => Check::fail(NAME, error.to_string(), "Correct INN_SMTP_HOST and what belongs to it"),
    }
}

async fn database(url: &str, io: &tokio::runtime::Handle) -> Vec<Check> {
    const NAME: &str = "database";
    let pending = match inn_store::pending(url).await {
        Ok(pending) => pending,
        Err(error) => {
            let advice = "Start it, or correct DATABASE_URL: host, port, user, password, database";
            return vec![Check::fail(NAME, error.to_string(), advice)];
        }
    };
    let mut checks = vec![Check::ok(NAME, "answers")];
    checks.push(if pending.is_empty() {
        Check::ok("migrations", "the database is up to date")
    } else {
        Check::warn("migrations", format!("{} pending: {}", pending.len(), pending.join(", ")), "Run `inn migrate`")
    });
    checks.extend(server(url, io).await);
    checks
}

/// What the server is, and how its clock stands.
async fn server(url: &str, io: &tokio::runtime::Handle) -> Vec<Check> {
    let asked = async {
        let scratch = Scratch::open(url, io).await?;
        let version = scratch.store.server_version().await.map_err(Refusal::from)?;
        let offset = DatabaseClock::default().measure(&scratch.store).await.map_err(Refusal::from)?;
        anyhow::Ok((version, offset))
    };
    match asked.await {
        Ok((version, offset)) => vec![postgres::server(&version), clock(offset)],
        Err(error) => {
            let found = format!("could not be asked for its version and time: {error:#}");
            vec![Check::warn("server", found, "Look at the lines above")]
        }
    }
}

fn clock(offset: TimeDelta) -> Check {
    const NAME: &str = "clock";
    let found = format!("{} ms from the database's", offset.num_milliseconds());
    if offset.abs() <= CLOCK_TOLERANCE {
        return Check::ok(NAME, found);
    }
    Check::warn(NAME, found, "Keep both machines' clocks with NTP. Database time rules, so nothing is wrong yet")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::State;
    use super::*;

    fn settings(dir: &Path) -> Settings {
        let mut settings = Settings::default();
        settings.data.dir = dir.to_owned();
        settings
    }

    #[test]
    fn looking_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let settings = settings(&home.path().join("data"));
        let sources = Sources { env: BTreeMap::new(), flags: None };
        let checks = local(&sources, &settings);
        assert!(checks.iter().any(|check| check.name == "keys" && check.state == State::Ok), "{checks:?}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn an_object_store_without_keys_or_answer_fails() {
        crate::tls::install();
        let home = tempfile::tempdir().unwrap();
        let mut settings = settings(home.path());
        settings.blobs.s3_bucket = Some("files".to_owned());
        settings.blobs.s3_endpoint = Some("http://127.0.0.1:1".parse().unwrap());
        let io = tokio::runtime::Handle::current();
        let told = object_store(&settings, "files", &io).await;
        assert!(told.state == State::Fail && told.found.contains("INN_S3_SECRET_KEY"), "{told:?}");
        settings.blobs.s3_access_key = Some("key".to_owned());
        settings.blobs.s3_secret_key = Some("hunter2hunter2".to_owned());
        let told = object_store(&settings, "files", &io).await;
        assert!(told.state == State::Fail && told.found.contains("files"), "{told:?}");
        assert!(!format!("{told:?}").contains("hunter2"), "{told:?}");
    }

    #[test]
    fn a_data_directory_that_cannot_be_written_fails_with_the_place() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(data(home.path()).state, State::Ok);
        assert!(data(&home.path().join("a/b")).found.contains("first start"));
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let told = data(&file);
        assert!(told.state == State::Fail && told.advice.unwrap().contains("--data"));
    }

    #[test]
    fn keys_that_others_can_read_fail_with_the_remedy() {
        let home = tempfile::tempdir().unwrap();
        let settings = settings(home.path());
        let dir = settings.data.keys();
        KeyRing::open(&dir, Origin::Made).unwrap();
        assert_eq!(keys(&settings).state, State::Ok);
        fs::set_permissions(dir.join("token-1.pem"), fs::Permissions::from_mode(0o644)).unwrap();
        let told = keys(&settings);
        assert!(told.state == State::Fail && told.advice.unwrap().contains("chmod 600"));
        fs::remove_file(dir.join("token-1.pem")).unwrap();
        assert_eq!(keys(&settings).state, State::Fail, "half a set of keys is not a first start");
        assert!(!dir.join("token-1.pem").exists(), "looking makes none");
    }

    #[test]
    fn a_mail_server_that_is_half_set_fails() {
        let home = tempfile::tempdir().unwrap();
        let mut settings = settings(home.path());
        assert!(mail(&settings).state == State::Ok);
        settings.mail.smtp_host = Some("mail.example".to_owned());
        let told = mail(&settings);
        assert!(told.state == State::Fail && told.found.contains("INN_MAIL_FROM"));
        settings.mail.from = Some("inn@example.org".to_owned());
        assert_eq!(mail(&settings).state, State::Ok);
    }

    #[test]
    fn a_port_in_use_fails_unless_it_is_ours() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut settings = Settings::default();
        settings.http.listen = taken.local_addr().unwrap();
        assert_eq!(listener(&settings, false).state, State::Fail);
        assert_eq!(listener(&settings, true).state, State::Ok);
        drop(taken);
        assert_eq!(listener(&settings, false).state, State::Ok);
    }

    #[test]
    fn a_listener_for_everybody_needs_a_public_address() {
        let mut settings = Settings::default();
        assert_eq!(addresses(&settings).state, State::Ok);
        settings.http.listen = "0.0.0.0:8080".parse().unwrap();
        let told = addresses(&settings);
        assert!(told.state == State::Fail && told.advice.unwrap().contains("INN_PUBLIC_URL"));
    }

    #[test]
    fn a_misspelt_variable_is_told() {
        let env = BTreeMap::from([("INN_LISTNE".to_owned(), "x".to_owned())]);
        let told = variables(&Sources { env, flags: None });
        assert!(told.state == State::Warn && told.found.contains("INN_LISTNE"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_database_tells_its_version_what_is_pending_and_its_time() {
        let server = tokio::task::spawn_blocking(inn_embedded::EmbeddedPostgres::temporary).await.unwrap().unwrap();
        let checks = database(&server.url("postgres"), &tokio::runtime::Handle::current()).await;
        let names: Vec<_> = checks.iter().map(|check| (check.name, check.state)).collect();
        let wanted =
            [("database", State::Ok), ("migrations", State::Warn), ("server", State::Ok), ("clock", State::Ok)];
        assert_eq!(names, wanted, "{checks:?}");
        assert!(checks[2].found.starts_with("PostgreSQL 1"), "{checks:?}");
        tokio::task::spawn_blocking(|| server.stop()).await.unwrap().unwrap();
    }

    #[test]
    fn a_clock_that_is_off_is_told() {
        assert_eq!(clock(TimeDelta::milliseconds(-300)).state, State::Ok);
        assert_eq!(clock(TimeDelta::seconds(-3)).state, State::Warn);
    }

    #[tokio::test]
    async fn a_database_that_is_down_fails_and_its_password_is_not_shown() {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = gone.local_addr().unwrap().port();
        drop(gone);
        let url = format!("postgres://u:hunter2hunter2@127.0.0.1:{port}/d");
        let checks = database(&url, &tokio::runtime::Handle::current()).await;
        assert!(checks.len() == 1 && checks[0].state == State::Fail, "{checks:?}");
        assert!(!format!("{checks:?}").contains("hunter2"));
    }
}
