//! What a file is, by its first bytes. The client's own word for it never counts.

mod binary;
mod text;

/// As many bytes as [`sniff`] looks at.
pub const SNIFFED_BYTES: usize = 3072;

/// A media type and the extension (with its dot) files of it get when they come without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaType {
    pub name: &'static str,
    pub extension: &'static str,
}

const UNKNOWN: MediaType = MediaType { name: "application/octet-stream", extension: "" };

/// Looks at the first [`SNIFFED_BYTES`] of a file. `whole`: nothing follows them.
pub fn sniff(start: &[u8], whole: bool) -> MediaType {
    let start = start.get(..SNIFFED_BYTES).unwrap_or(start);
    binary::sniff(start).or_else(|| text::sniff(start, whole)).unwrap_or(UNKNOWN)
}

/// Whether a sniffed type is the one an app allows: parameters and case do not count, and some types have two names.
pub(super) fn is(media_type: &str, wanted: &str) -> bool {
    const SAME: [&[&str]; 21] = [
        &["application/pdf", "application/x-pdf"],
        &["application/zip", "application/x-zip", "application/x-zip-compressed"],
        &["application/gzip", "application/x-gzip", "application/x-gunzip", "application/gzipped"],
        &["application/x-rar-compressed", "application/x-rar"],
        &["application/xml", "text/xml"],
        &["application/rtf", "text/rtf"],
        &["application/x-sqlite3", "application/vnd.sqlite3"],
        &["audio/mpeg", "audio/x-mpeg", "audio/mp3"],
        &["audio/wav", "audio/x-wav", "audio/vnd.wave", "audio/wave"],
        &["audio/aiff", "audio/x-aiff"],
        &["audio/midi", "audio/mid", "audio/x-mid", "audio/x-midi"],
        &["audio/x-m4a", "audio/mp4"],
        &["image/bmp", "image/x-bmp", "image/x-ms-bmp"],
        &["image/x-icon", "image/vnd.microsoft.icon"],
        &["image/vnd.adobe.photoshop", "image/x-psd", "application/photoshop"],
        &["video/x-msvideo", "video/avi", "video/msvideo"],
        &["video/webm", "audio/webm"],
        &["application/ogg", "application/x-ogg"],
        &["font/ttf", "font/sfnt", "application/x-font-ttf", "application/font-sfnt"],
        &["text/x-shellscript", "text/x-sh", "application/x-shellscript", "application/x-sh"],
        &["text/html", "application/xhtml+xml"],
    ];
    let bare = |name: &str| name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (found, wanted) = (bare(media_type), bare(wanted));
    let both = |names: &&&[&str]| names.contains(&found.as_str()) && names.contains(&wanted.as_str());
    found == wanted || SAME.iter().find(both).is_some()
}
