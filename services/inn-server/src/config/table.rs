//! The one list of settings.

use super::Settings;
use super::value::{self, Show};

/// One setting: its three names, what it means, how it is read and shown.
pub struct Setting {
    /// In the file: table and key, `http.listen`.
    pub key: &'static str,
    /// Environment variable.
    pub env: &'static str,
    /// Flag, without its dashes.
    pub flag: &'static str,
    /// What stands for the value in help texts.
    pub value: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// May hold a password: never shown, never repeated in an error.
    pub secret: bool,
    set: fn(&mut Settings, &str) -> Result<(), String>,
    get: fn(&Settings) -> String,
}

impl Setting {
    /// Reads the value from text. The error says what was expected and repeats nothing.
    pub fn set(&self, settings: &mut Settings, text: &str) -> Result<(), String> {
        (self.set)(settings, text)
    }

    /// The value as it would be written in a file, empty when it is not set; `(hidden)` for a secret that is.
    pub fn show(&self, settings: &Settings) -> String {
        let shown = (self.get)(settings);
        if self.secret && !shown.is_empty() { "(hidden)".to_owned() } else { shown }
    }

    pub fn find(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }
}

macro_rules! settings {
    (@secret) => { false };
    (@secret secret) => { true };
    ($($key:literal $env:literal $flag:literal $value:literal $($secret:ident)? =>
       $group:ident.$field:ident, $parse:expr, $help:literal;)*) => {
        /// Every setting, in the order of the guide.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            key: $key,
            env: $env,
            flag: $flag,
            value: $value,
            help: $help,
            secret: settings!(@secret $($secret)?),
            set: |settings, text| {
                let parsed: Result<_, String> = ($parse)(text);
                settings.$group.$field = parsed?;
                Ok(())
            },
            get: |settings| settings.$group.$field.show(),
        }),*];
    };
}

settings! {
    "data.dir" "INN_DATA" "data" "DIR" =>
        data.dir, value::path, "Directory for keys, blobs, agent token files and the embedded database.";
    "data.keys-dir" "INN_KEYS_DIR" "keys-dir" "DIR" =>
        data.keys_dir, |text| value::path(text).map(Some),
        "Directory with the platform's keys, when they are not made and kept below the data directory. Nothing is ever written there.";
    "data.blobs-dir" "INN_BLOBS_DIR" "blobs-dir" "DIR" =>
        data.blobs_dir, |text| value::path(text).map(Some),
        "Directory for bundles and files of pages, when they are not kept below the data directory. All nodes of a platform must share it.";

    "blobs.s3-bucket" "INN_S3_BUCKET" "s3-bucket" "NAME" =>
        blobs.s3_bucket, |text| value::plain(text).map(Some),
        "Bucket of an S3-compatible store for bundles, files of pages and files of records, instead of a directory. Needs both keys.";
    "blobs.s3-prefix" "INN_S3_PREFIX" "s3-prefix" "NAME" =>
        blobs.s3_prefix, |text| value::plain(text).map(Some), "Everything lies below this in the bucket.";
    "blobs.s3-endpoint" "INN_S3_ENDPOINT" "s3-endpoint" "URL" =>
        blobs.s3_endpoint, |text| value::origin(text).map(Some),
        "Where the store answers, when it is not Amazon's own for the region.";
    "blobs.s3-region" "INN_S3_REGION" "s3-region" "NAME" =>
        blobs.s3_region, value::plain, "Region of the bucket; stores without regions take any.";
    "blobs.s3-access-key" "INN_S3_ACCESS_KEY" "s3-access-key" "KEY" secret =>
        blobs.s3_access_key, |text| value::plain(text).map(Some), "Id of the key that may read, write, list and delete in the bucket.";
    "blobs.s3-secret-key" "INN_S3_SECRET_KEY" "s3-secret-key" "KEY" secret =>
        blobs.s3_secret_key, |text| value::plain(text).map(Some), "The key's secret.";

    "files.max-upload-bytes" "INN_MAX_UPLOAD_BYTES" "max-upload-bytes" "BYTES" =>
        files.max_upload, |text| value::whole(text, 1024, 4 << 30),
        "Largest form with files. The collection's own limit, 32 MiB and what its fields may hold, counts when it is lower.";
    "files.app-bytes" "INN_APP_FILE_BYTES" "app-file-bytes" "BYTES" =>
        files.app_bytes, |text| value::whole(text, 0, 1 << 60),
        "What the files of one app may take together; 0 is no limit. Forms received at one time may go a little beyond.";
    "files.uploads" "INN_UPLOADS" "uploads" "COUNT" =>
        files.uploads, |text| value::whole(text, 1, 1000), "Forms received at one time on this node; each holds 4 MiB in memory at most.";
    "files.thumb-workers" "INN_THUMB_WORKERS" "thumb-workers" "COUNT" =>
        files.thumb_workers, |text| value::whole(text, 1, 64), "Pictures opened at one time to make thumbs; one of 50 megapixels takes 400 MiB for a moment.";

    "http.listen" "INN_LISTEN" "listen" "ADDR:PORT" =>
        http.listen, value::address, "Address and port to listen on; port 0 takes any free one.";
    "http.public-url" "INN_PUBLIC_URL" "public-url" "URL" =>
        http.public_url, |text| value::origin(text).map(Some),
        "Where people and agents reach the platform. Needed off loopback; on loopback it is http://localhost and the port.";
    "http.apps-domain" "INN_APPS_DOMAIN" "apps-domain" "DOMAIN" =>
        http.apps_domain, |text| value::domain(text).map(Some),
        "Apps answer one label below this domain. On loopback it is the host of the platform's URL, elsewhere `apps.` before it; a registrable domain of its own is safer.";
    "http.workers" "INN_WORKERS" "workers" "COUNT" =>
        http.workers, |text| value::whole(text, 0, 256), "Threads that serve HTTP; 0 is one a core.";
    "http.max-connections" "INN_MAX_CONNECTIONS" "max-connections" "COUNT" =>
        http.max_connections, |text| value::whole(text, 1, 1_000_000), "Connections that one worker keeps open at a time.";
    "http.request-timeout-seconds" "INN_REQUEST_TIMEOUT_SECONDS" "request-timeout-seconds" "SECONDS" =>
        http.request_timeout, |text| value::seconds(text, 1, 300), "How long a client may take to send the headers of a request.";
    "http.keep-alive-seconds" "INN_KEEP_ALIVE_SECONDS" "keep-alive-seconds" "SECONDS" =>
        http.keep_alive, |text| value::seconds(text, 1, 3600), "An idle connection is closed after this long.";
    "http.max-body-bytes" "INN_MAX_BODY_BYTES" "max-body-bytes" "BYTES" =>
        http.max_body, |text| value::whole(text, 1024, 1 << 30), "Largest body of a request, except a bundle.";
    "http.batch-requests" "INN_BATCH_REQUESTS" "batch-requests" "COUNT" =>
        http.batch_requests, |text| value::whole(text, 0, 1000), "Writes one `/api/batch` may hold; 0 switches batches off.";
    "http.max-bundle-bytes" "INN_MAX_BUNDLE_BYTES" "max-bundle-bytes" "BYTES" =>
        http.max_bundle, |text| value::whole(text, 1024, 64 << 20), "Largest bundle.";
    "http.shutdown-seconds" "INN_SHUTDOWN_SECONDS" "shutdown-seconds" "SECONDS" =>
        http.shutdown, |text| value::seconds(text, 0, 300), "How long calls under way may take to end when the platform stops.";
    "http.io-threads" "INN_IO_THREADS" "io-threads" "COUNT" =>
        http.io_threads, |text| value::whole(text, 1, 64), "Threads that own the connections to the database and to Redis.";

    "people.session-hours" "INN_SESSION_HOURS" "session-hours" "HOURS" =>
        people.session_hours, |text| value::whole(text, 1, 24 * 90), "A person stays signed in for this long.";
    "people.token-minutes" "INN_TOKEN_MINUTES" "token-minutes" "MINUTES" =>
        people.token_minutes, |text| value::whole(text, 1, 60), "Lifetime of an agent's token.";
    "people.owner" "INN_OWNER" "owner" "EMAIL" =>
        people.owner, |text| value::email(text).map(Some),
        "First owner of a platform that is empty. `inn up` founds it for `owner@localhost` when nobody is named, `inn migrate` and `inn serve --migrate` only when somebody is.";
    "people.owner-password-file" "INN_OWNER_PASSWORD_FILE" "password-file" "FILE" =>
        people.owner_password_file, |text| value::path(text).map(Some),
        "File with the first owner's password, alone on one line. `inn up` makes one up without it.";
    "people.owner-tenant" "INN_OWNER_TENANT" "tenant" "SLUG" =>
        people.owner_tenant, value::slug, "Slug of the first tenant.";

    "mail.smtp-host" "INN_SMTP_HOST" "smtp-host" "NAME" =>
        mail.smtp_host, |text| value::plain(text).map(Some),
        "Mail server for mails of apps to their own users. Without it they are shown in the log and the console on loopback, and refused elsewhere. Needs `mail.from`.";
    "mail.smtp-port" "INN_SMTP_PORT" "smtp-port" "PORT" =>
        mail.smtp_port, |text| value::whole(text, 1, 65535), "Its port.";
    "mail.smtp-tls" "INN_SMTP_TLS" "smtp-tls" "TLS" =>
        mail.smtp_tls, value::tls,
        "starttls, implicit (usually on port 465) or none (a relay on this machine). The server's certificate is checked.";
    "mail.smtp-user" "INN_SMTP_USER" "smtp-user" "NAME" =>
        mail.smtp_user, |text| value::plain(text).map(Some), "Name to sign in to the mail server with; needs the password file.";
    "mail.smtp-password-file" "INN_SMTP_PASSWORD_FILE" "smtp-password-file" "FILE" =>
        mail.smtp_password_file, |text| value::path(text).map(Some),
        "File with the password for the mail server, alone on one line; read at start.";
    "mail.from" "INN_MAIL_FROM" "mail-from" "EMAIL" =>
        mail.from, |text| value::email(text).map(Some), "Address that mails come from; the app's name stands before it.";

    "rates.auth" "INN_RATE_AUTH" "rate-auth" "COUNT" =>
        rates.auth, |text| value::whole(text, 0, 1_000_000), "Attempts with a password or code a minute and client address; 0 is no limit.";
    "rates.data" "INN_RATE_DATA" "rate-data" "COUNT" =>
        rates.data, |text| value::whole(text, 0, 10_000_000), "Calls on records, describe and tasks a minute and caller; 0 is no limit.";
    "rates.operations" "INN_RATE_OPERATIONS" "rate-operations" "COUNT" =>
        rates.operations, |text| value::whole(text, 0, 10_000_000), "Operations a minute and caller; 0 is no limit.";
    "rates.queue" "INN_RATE_QUEUE" "rate-queue" "COUNT" =>
        rates.queue, |text| value::whole(text, 0, 10_000_000), "Claims and what is done with them, a minute and agent; 0 is no limit.";

    "limits.node" "INN_LIMIT_NODE" "limit-node" "COUNT" =>
        limits.node, |text| value::whole(text, 1, 100_000), "Calls under way at one time on this node.";
    "limits.tenant" "INN_LIMIT_TENANT" "limit-tenant" "COUNT" =>
        limits.tenant, |text| value::whole(text, 1, 100_000), "Calls under way at one time of one tenant on this node.";
    "limits.app" "INN_LIMIT_APP" "limit-app" "COUNT" =>
        limits.app, |text| value::whole(text, 1, 256), "Calls under way at one time of one app on this node.";
    "limits.app-threads" "INN_APP_THREADS" "app-threads" "COUNT" =>
        limits.app_threads, |text| value::whole(text, 1, 64), "Threads that app actors are spread over.";

    "realtime.connections" "INN_REALTIME_CONNECTIONS" "realtime-connections" "COUNT" =>
        realtime.connections, |text| value::whole(text, 0, 1_000_000), "Streams of events open at one time on this node; 0 switches them off.";
    "realtime.app-connections" "INN_REALTIME_APP_CONNECTIONS" "realtime-app-connections" "COUNT" =>
        realtime.app_connections, |text| value::whole(text, 1, 1_000_000), "Streams open at one time of one app on this node.";
    "realtime.caller-connections" "INN_REALTIME_CALLER_CONNECTIONS" "realtime-caller-connections" "COUNT" =>
        realtime.caller_connections, |text| value::whole(text, 1, 1_000_000), "Streams open at one time of one caller on one app; guests share the app's.";
    "realtime.buffer-events" "INN_REALTIME_BUFFER_EVENTS" "realtime-buffer-events" "COUNT" =>
        realtime.buffer, |text| value::whole(text, 1, 100_000), "Events that may wait for one slow client, and 1 MiB of them, before it is cut off.";
    "realtime.idle-seconds" "INN_REALTIME_IDLE_SECONDS" "realtime-idle-seconds" "SECONDS" =>
        realtime.idle, |text| value::seconds(text, 1, 1800), "A stream without an event ends after this long; clients open it again.";

    "database.url" "DATABASE_URL" "database-url" "URL" secret =>
        database.url, |text| value::database(text).map(Some),
        "PostgreSQL of `inn serve`, `inn migrate` and `inn doctor`; `inn up` runs one of its own.";
    "database.pool-size" "INN_POOL_SIZE" "pool-size" "COUNT" =>
        database.pool_size, |text| value::whole(text, 2, 1000), "Connections to the database at most.";
    "database.acquire-timeout-seconds" "INN_ACQUIRE_TIMEOUT_SECONDS" "acquire-timeout-seconds" "SECONDS" =>
        database.acquire_timeout, |text| value::seconds(text, 1, 60), "How long a call waits for a connection before it is refused.";
    "database.statement-timeout-seconds" "INN_STATEMENT_TIMEOUT_SECONDS" "statement-timeout-seconds" "SECONDS" =>
        database.statement_timeout, |text| value::seconds(text, 1, 600), "The database ends a statement after this long.";
    "database.synchronous-commit" "INN_SYNCHRONOUS_COMMIT" "synchronous-commit" "BOOL" =>
        database.synchronous_commit, value::truth,
        "`false` answers before a commit is on disk: faster, and a crash of the machine loses the last fraction of a second.";

    "redis.url" "REDIS_URL" "redis-url" "URL" secret =>
        redis.url, |text| value::redis(text).map(Some),
        "Redis that wakes the other nodes. Not needed by one node; without it several nodes are slower and still right.";

    "log.filter" "INN_LOG" "log" "LEVELS" =>
        log.filter, value::directives, "What is logged: error, warn, info, debug or trace, also by module.";
    "log.format" "INN_LOG_FORMAT" "log-format" "FORMAT" =>
        log.format, value::format, "human or json, one line an event, on standard error.";
    "telemetry.otlp-endpoint" "OTEL_EXPORTER_OTLP_ENDPOINT" "otlp-endpoint" "URL" =>
        telemetry.otlp_endpoint, |text| value::endpoint(text).map(Some),
        "Traces are sent to this OpenTelemetry collector, over HTTP.";
}
