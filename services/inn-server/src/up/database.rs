//! The embedded database of `inn up`.

use std::path::Path;

use anyhow::Context as _;
use inn_embedded::{EmbeddedPostgres, Options};

use crate::config::Settings;

/// The database every cluster has from the start.
const DATABASE: &str = "postgres";

/// Starts it and answers its address. The server itself goes into `running` at once, whatever happens next.
pub(crate) fn start(settings: &Settings, running: &mut Option<EmbeddedPostgres>) -> anyhow::Result<String> {
    let dir = std::path::absolute(&settings.data.dir).with_context(|| settings.data.dir.display().to_string())?;
    let server = EmbeddedPostgres::start(options(&dir))?;
    let url = server.url(DATABASE);
    tracing::debug!(pid = server.pid(), data = %server.data_dir().display(), "embedded database");
    *running = Some(server);
    Ok(url)
}

pub(crate) fn options(dir: &Path) -> Options {
    Options::below(dir)
}
