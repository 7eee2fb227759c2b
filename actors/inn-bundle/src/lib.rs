//! Bundles: the bytes an app travels in, and the typed app that is in them.
//!
//! [`read`] opens a `.agentapp` (AIP-53 `agentapp/v1`) or the ZIP of an A2App project, [`pack`] makes one from a
//! folder's files, [`load`] turns the files into an [`AppDefinition`](inn_protocol::app::AppDefinition). Nothing of a
//! bundle is ever executed, and no clock, file or network is touched: bytes in, values out.

mod archive;
mod bundle;
mod digest;
mod frontmatter;
mod identity;
mod json;
mod limits;
mod load;
mod manifest;
mod node;
mod pack;
mod path;
mod problem;
mod read;
mod ui;

#[cfg(test)]
mod tests;

pub use bundle::Bundle;
pub use limits::Limits;
pub use load::index::{Column as IndexColumn, Index, parse as parse_index};
pub use load::load;
pub use manifest::{BundleManifest, FORMAT, MANIFEST};
pub use pack::{archive_name, is_packed_away, pack};
pub use read::read;
pub use ui::ui_path;
