//! Files of one's own: written whole or not at all, for nobody else to read.

use std::io::Write as _;
use std::path::Path;
use std::{fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{CliError, CliResult};

/// No file of ours is larger.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A file's text, `None` when there is no such file.
pub(crate) fn read(path: &Path) -> CliResult<Option<String>> {
    let failed = |error: &io::Error| CliError::io(format!("{} cannot be read", path.display()), error);
    let size = match fs::metadata(path) {
        Ok(data) => data.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    if size > MAX_BYTES {
        return Err(CliError::local("local_file", format!("{} is too large to be right.", path.display())));
    }
    fs::read_to_string(path).map(Some).map_err(|error| failed(&error))
}

/// A JSON file, or its default when there is none.
pub(crate) fn read_json<T: DeserializeOwned + Default>(path: &Path) -> CliResult<T> {
    let Some(text) = read(path)? else { return Ok(T::default()) };
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("{} is damaged ({error}). Mend it, or remove it and start anew.", path.display());
        CliError::local("local_file", message)
    })
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> CliResult<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::local("local_file", format!("{} cannot be written: {error}.", path.display())))?;
    write(path, text.as_bytes())
}

/// Writes a file that only its owner can read, through a new one beside it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> CliResult<()> {
    let failed = |error: io::Error| CliError::io(format!("{} cannot be written", path.display()), &error);
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    private_folder(folder)?;
    // A temporary file is made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.flush()).map_err(failed)?;
    file.persist(path).map(drop).map_err(|error| failed(error.error))
}

fn private_folder(folder: &Path) -> CliResult<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if folder.is_dir() {
        return Ok(());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| CliError::io(format!("{} cannot be made", folder.display()), &error))
}
