//! Names of members: what a name may look like, and how a path written inside a bundle finds a member.

use std::collections::BTreeMap;
use std::str;

use inn_protocol::Refusal;

use crate::problem::{refuse, shorten};

const MAX_NAME_BYTES: usize = 1024;
const MAX_SEGMENT_BYTES: usize = 255;

/// A name as an archive carries it, made into a member path. `None` is the archive's own root (`./`).
pub(crate) fn from_archive(raw: &[u8]) -> Result<Option<String>, Refusal> {
    let Ok(name) = str::from_utf8(raw) else {
        return Err(refuse("unsafe-path", &String::from_utf8_lossy(raw), "the member's name is not UTF-8"));
    };
    // `tar -C dir .` writes `./` before every name.
    let mut rest = name;
    while let Some(stripped) = rest.strip_prefix("./") {
        rest = stripped;
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if (rest.is_empty() && name.starts_with("./")) || rest == "." {
        return Ok(None);
    }
    check(rest).map_err(|why| refuse("unsafe-path", name, why))?;
    Ok(Some(rest.to_owned()))
}

/// Says why `name` cannot be a member path, when it cannot.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("the member's name is empty");
    }
    if name.len() > MAX_NAME_BYTES {
        return Err("the member's name is longer than 1024 bytes");
    }
    if name.starts_with('/') {
        return Err("an absolute path; members live inside the bundle");
    }
    if name.contains('\\') {
        return Err("a backslash in the name; use `/` between folders");
    }
    if name.chars().any(char::is_control) {
        return Err("a control character in the name");
    }
    let mut head = name.bytes();
    if head.next().is_some_and(|first| first.is_ascii_alphabetic()) && head.next() == Some(b':') {
        return Err("a drive letter; members live inside the bundle");
    }
    for segment in name.split('/') {
        match segment {
            "" => return Err("an empty path segment"),
            "." => return Err("a `.` segment in the middle of the path"),
            ".." => return Err("a `..` segment; members live inside the bundle"),
            long if long.len() > MAX_SEGMENT_BYTES => return Err("a path segment longer than 255 bytes"),
            _ => {}
        }
    }
    Ok(())
}

/// A path written in a file of the bundle, relative to the bundle's root (`./` in front is fine).
pub(crate) fn confine(written: &str) -> Result<String, &'static str> {
    let mut rest = written;
    while let Some(stripped) = rest.strip_prefix("./") {
        rest = stripped;
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    check(rest)?;
    Ok(rest.to_owned())
}

/// The names seen so far. Refuses what two file systems would read differently.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Folded path to the spelling first seen and whether it is a file.
    seen: BTreeMap<String, (String, bool)>,
}

impl Names {
    pub(crate) fn file(&mut self, path: &str) -> Result<(), Refusal> {
        self.folders_above(path)?;
        match self.seen.insert(fold(path), (path.to_owned(), true)) {
            None => Ok(()),
            Some((earlier, true)) if earlier == path => {
                Err(refuse("duplicate-member", path, "appears twice in the archive"))
            }
            Some((earlier, is_file)) => Err(collision(path, &earlier, is_file)),
        }
    }

    pub(crate) fn folder(&mut self, path: &str) -> Result<(), Refusal> {
        self.folders_above(path)?;
        self.one_folder(path)
    }

    fn folders_above(&mut self, path: &str) -> Result<(), Refusal> {
        for (at, _) in path.match_indices('/') {
            self.one_folder(path.get(..at).unwrap_or_default())?;
        }
        Ok(())
    }

    fn one_folder(&mut self, path: &str) -> Result<(), Refusal> {
        match self.seen.get(&fold(path)) {
            None => {
                self.seen.insert(fold(path), (path.to_owned(), false));
                Ok(())
            }
            Some((earlier, false)) if earlier == path => Ok(()),
            Some((earlier, is_file)) => Err(collision(path, earlier, *is_file)),
        }
    }
}

fn fold(path: &str) -> String {
    path.to_lowercase()
}

fn collision(path: &str, earlier: &str, earlier_is_file: bool) -> Refusal {
    let what = if earlier == path {
        format!("is both a file and a folder ({} first)", if earlier_is_file { "file" } else { "folder" })
    } else {
        format!("differs from `{}` only by upper and lower case", shorten(earlier))
    };
    refuse("name-collision", path, what)
}
