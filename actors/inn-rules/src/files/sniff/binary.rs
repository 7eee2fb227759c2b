//! Types with a signature of bytes.

use super::MediaType;

/// Bytes at a place, a media type, an extension.
type Signature = (usize, &'static [u8], &'static str, &'static str);

#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    (0, b"\x89PNG\r\n\x1a\n", "image/png", ".png"),
    (0, b"\xff\xd8\xff", "image/jpeg", ".jpg"),
    (0, b"GIF87a", "image/gif", ".gif"),
    (0, b"GIF89a", "image/gif", ".gif"),
    (0, b"II*\0", "image/tiff", ".tiff"),
    (0, b"MM\0*", "image/tiff", ".tiff"),
    (0, b"8BPS", "image/vnd.adobe.photoshop", ".psd"),
    (0, b"\0\0\x01\0", "image/x-icon", ".ico"),
    (0, b"\xff\x0a", "image/jxl", ".jxl"),
    (0, b"\xef\xbb\xbf%PDF-", "application/pdf", ".pdf"),
    (0, b"%!PS-Adobe-", "application/postscript", ".ps"),
    (0, b"\x1f\x8b", "application/gzip", ".gz"),
    (0, b"BZh", "application/x-bzip2", ".bz2"),
    (0, b"\xfd7zXZ\0", "application/x-xz", ".xz"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd", ".zst"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed", ".7z"),
    (0, b"Rar!\x1a\x07\0", "application/x-rar-compressed", ".rar"),
    (0, b"Rar!\x1a\x07\x01\0", "application/x-rar-compressed", ".rar"),
    (257, b"ustar", "application/x-tar", ".tar"),
    (0, b"ID3", "audio/mpeg", ".mp3"),
    (0, b"fLaC", "audio/flac", ".flac"),
    (0, b"MThd", "audio/midi", ".midi"),
    (0, b"#!AMR", "audio/amr", ".amr"),
    (0, b"\x1aE\xdf\xa3", "video/x-matroska", ".mkv"),
    (0, b"\0\0\x01\xba", "video/mpeg", ".mpeg"),
    (0, b"\0\0\x01\xb3", "video/mpeg", ".mpeg"),
    (0, b"FLV\x01", "video/x-flv", ".flv"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-asf", ".asf"),
    (0, b"wOFF", "font/woff", ".woff"),
    (0, b"wOF2", "font/woff2", ".woff2"),
    (0, b"OTTO\0", "font/otf", ".otf"),
    (0, b"\0\x01\0\0\0", "font/ttf", ".ttf"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3", ".sqlite"),
    (0, b"\x7fELF", "application/x-elf", ""),
    (0, b"MZ", "application/vnd.microsoft.portable-executable", ".exe"),
    (0, b"\0asm", "application/wasm", ".wasm"),
    (0, b"\xca\xfe\xba\xbe", "application/x-java-applet", ".class"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary", ".macho"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage", ""),
    (0, b"{\\rtf", "text/rtf", ".rtf"),
];

pub(super) fn sniff(start: &[u8]) -> Option<MediaType> {
    let at = |place: usize, bytes: &[u8]| start.get(place..).is_some_and(|rest| rest.starts_with(bytes));
    let named = |name, extension| Some(MediaType { name, extension });
    if start.trim_ascii_start().starts_with(b"%PDF-") {
        return named("application/pdf", ".pdf");
    }
    if at(0, b"RIFF") {
        return match start.get(8..12) {
            Some(b"WEBP") => named("image/webp", ".webp"),
            Some(b"WAVE") => named("audio/wav", ".wav"),
            Some(b"AVI ") => named("video/x-msvideo", ".avi"),
            _ => None,
        };
    }
    if at(0, b"FORM") && (at(8, b"AIFF") || at(8, b"AIFC")) {
        return named("audio/aiff", ".aiff");
    }
    if at(0, b"OggS") {
        let audio = at(28, b"\x7fFLAC") || at(28, b"\x01vorbis") || at(28, b"OpusHead") || at(28, b"Speex");
        let video = at(28, b"\x80theora") || at(28, b"fishead") || at(28, b"\x01video");
        return match (audio, video) {
            (true, _) => named("audio/ogg", ".oga"),
            (_, true) => named("video/ogg", ".ogv"),
            _ => named("application/ogg", ".ogg"),
        };
    }
    if at(4, b"ftyp") {
        return iso_media(start.get(8..12)?);
    }
    if at(0, b"PK\x03\x04") || at(0, b"PK\x05\x06") {
        return Some(zipped(start));
    }
    if at(0, b"BM") && start.len() >= 18 {
        // The size of one of the headers there are; two letters alone are no picture.
        let header = start.get(14..18).and_then(|size| size.try_into().ok()).map_or(0, u32::from_le_bytes);
        return if [12, 40, 52, 56, 64, 108, 124].contains(&header) { named("image/bmp", ".bmp") } else { None };
    }
    if let [0xff, second, ..] = start {
        return match second {
            0xfb | 0xfa | 0xf3 | 0xf2 | 0xe3 | 0xe2 => named("audio/mpeg", ".mp3"),
            0xf1 | 0xf9 => named("audio/aac", ".aac"),
            0xd8 if start.get(2) == Some(&0xff) => named("image/jpeg", ".jpg"),
            0x0a => named("image/jxl", ".jxl"),
            _ => None,
        };
    }
    if at(0, b"\x1aE\xdf\xa3") && contains(start, b"webm") {
        return named("video/webm", ".webm");
    }
    let found = SIGNATURES.iter().find(|(place, bytes, ..)| at(*place, bytes))?;
    named(found.2, found.3)
}

fn iso_media(brand: &[u8]) -> Option<MediaType> {
    let named = |name, extension| Some(MediaType { name, extension });
    match brand {
        b"avif" | b"avis" => named("image/avif", ".avif"),
        b"heic" | b"heix" => named("image/heic", ".heic"),
        b"mif1" | b"msf1" | b"heim" | b"heis" => named("image/heif", ".heif"),
        b"M4A " | b"M4B " => named("audio/x-m4a", ".m4a"),
        b"M4V " | b"M4VH" | b"M4VP" => named("video/x-m4v", ".m4v"),
        b"qt  " => named("video/quicktime", ".mov"),
        [b'3', b'g', b'2', _] => named("video/3gpp2", ".3g2"),
        [b'3', b'g', _, _] => named("video/3gpp", ".3gp"),
        _ => named("video/mp4", ".mp4"),
    }
}

/// Documents that are archives say so in the names of their first members.
fn zipped(start: &[u8]) -> MediaType {
    /// The beginning of a member's name, with its content where that is what tells.
    #[rustfmt::skip]
    const INSIDE: &[(&[u8], &str, &str)] = &[
        (b"mimetypeapplication/epub+zip", "application/epub+zip", ".epub"),
        (b"mimetypeapplication/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text", ".odt"),
        (b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet", "application/vnd.oasis.opendocument.spreadsheet", ".ods"),
        (b"mimetypeapplication/vnd.oasis.opendocument.presentation", "application/vnd.oasis.opendocument.presentation", ".odp"),
        (b"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".docx"),
        (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx"),
        (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation", ".pptx"),
        (b"META-INF/MANIFEST.MF", "application/jar", ".jar"),
        (b"AndroidManifest.xml", "application/vnd.android.package-archive", ".apk"),
    ];
    // A member's name stands 30 bytes behind its signature.
    let names = start.windows(4).enumerate().filter(|(_, bytes)| bytes == b"PK\x03\x04");
    let mut names = names.filter_map(|(place, _)| start.get(place + 30..));
    let found = names.find_map(|name| INSIDE.iter().find(|(mark, ..)| name.starts_with(mark)));
    found.map_or(MediaType { name: "application/zip", extension: ".zip" }, |(_, name, extension)| MediaType {
        name,
        extension,
    })
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
