//! Files of one form on their way into a record: whatever happens to the call, those that no record names go again.

use actix_web::web::Data;
use inn_ports::{DueFile, FileKey};
use inn_protocol::{AppId, FileId};
use serde_json::{Map, Value};

use crate::state::HttpState;

pub(super) struct Kept {
    state: Data<HttpState>,
    app: AppId,
    /// With the names a record would give them.
    files: Vec<(FileId, String)>,
}

impl Kept {
    pub(super) fn new(state: Data<HttpState>, app: AppId) -> Self {
        Self { state, app, files: Vec::new() }
    }

    /// Said before anything is written, so that nothing is forgotten when the client hangs up in between.
    pub(super) fn expect(&mut self, file: FileId, name: String) {
        self.files.push((file, name));
    }

    /// A committed row: what it names is not ours any more.
    pub(super) fn named_by(&mut self, row: &Map<String, Value>) {
        let is_named = |name: &str| {
            row.values().any(|value| match value {
                Value::String(text) => text == name,
                Value::Array(items) => items.iter().any(|item| item.as_str() == Some(name)),
                _ => false,
            })
        };
        self.files.retain(|(_, name)| !is_named(name));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.files.is_empty() {
            return;
        }
        let files: Vec<FileId> = self.files.drain(..).map(|(file, _)| file).collect();
        let (state, app) = (self.state.clone(), self.app);
        // Not awaited by anybody: the client may be gone, and with it the task that would wait. If this does not get
        // done either, the sweeper does it.
        self.state.io.spawn(discard(state, app, files));
    }
}

async fn discard(state: Data<HttpState>, app: AppId, files: Vec<FileId>) {
    let doomed = match state.store.discard_files(&files).await {
        Ok(doomed) => doomed,
        Err(error) => return tracing::warn!(?error, "files of a refused form stay until they are swept"),
    };
    let mut removed = Vec::new();
    for file in doomed {
        let key = FileKey { app, file };
        match state.objects.remove(key).await {
            Ok(()) => removed.push(DueFile { key, again: false }),
            Err(error) => tracing::warn!(?error, %file, "a file of a refused form stays until it is swept"),
        }
    }
    if let Err(error) = state.store.files_removed(&removed).await {
        tracing::warn!(?error, "removed files are looked at again by the sweeper");
    }
}
