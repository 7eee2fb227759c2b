use inn_protocol::app::AppDefinition;

use crate::path;

/// The member of the bundle that a request path stands for, or `None` when it can stand for none.
///
/// Takes the path as it came over the wire (percent-encoded, without query). `/` and every path with a slash at its end
/// is the entry document of that folder. The caller still has to look whether the member exists, and may fall back to
/// the entry for paths a single-page app routes by itself.
pub fn ui_path(definition: &AppDefinition, request_path: &str) -> Option<String> {
    let root = definition.ui_root.as_deref()?;
    let entry = definition.ui_entry.as_deref().unwrap_or("index.html");
    let decoded = percent_decode(request_path.strip_prefix('/')?)?;
    let relative = match decoded.strip_suffix('/') {
        _ if decoded.is_empty() => entry.to_owned(),
        Some(folder) => format!("{folder}/index.html"),
        None => decoded,
    };
    path::check(&relative).ok()?;
    Some(format!("{root}/{relative}"))
}

/// RFC 3986 section 2.1. `None` for a broken escape or bytes that are not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}
