//! How a file is shown.

/// What a served file may do in a browser: nothing.
pub const PAGE_POLICY: &str = "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'; sandbox";

/// Pictures, sound, films and PDF are shown in place; everything else is saved. SVG is not among them: it can hold
/// scripts.
pub fn inline(media_type: &str) -> bool {
    const SHOWN: [&str; 33] = [
        "image/png",
        "image/jpg",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/x-icon",
        "image/bmp",
        "image/avif",
        "video/webm",
        "video/mp4",
        "video/quicktime",
        "video/x-ms-wmv",
        "video/x-msvideo",
        "video/3gpp",
        "video/3gpp2",
        "video/mpeg",
        "video/ogg",
        "video/x-matroska",
        "audio/basic",
        "audio/aiff",
        "audio/mpeg",
        "audio/midi",
        "audio/mp3",
        "audio/wave",
        "audio/wav",
        "audio/x-wav",
        "audio/x-mpeg",
        "audio/x-m4a",
        "audio/aac",
        "audio/flac",
        "audio/ogg",
        "application/pdf",
        "application/x-pdf",
    ];
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    SHOWN.contains(&essence)
}
