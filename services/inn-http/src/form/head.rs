//! The header lines of a part, and the boundary of a form.

use inn_protocol::{Code, Refusal};

use super::broken;

const LONGEST_BOUNDARY: usize = 70;
const LONGEST_NAME: usize = 256;

/// What a part says about itself, as far as it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartHead {
    pub(crate) name: String,
    /// Without folders. `None` for a plain value; an empty file name counts as none (Go's `mime/multipart`).
    pub(crate) file_name: Option<String>,
}

/// The boundary of a `multipart/form-data` content type; `None` when the body is something else.
///
/// # Errors
/// A form without a usable boundary.
pub(crate) fn boundary(content_type: &str) -> Result<Option<String>, Refusal> {
    let (essence, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return Ok(None);
    }
    let boundary = parameter(parameters, "boundary").filter(|boundary| {
        (1..=LONGEST_BOUNDARY).contains(&boundary.len())
            && boundary.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
            && !boundary.ends_with(' ')
    });
    let missing =
        || Refusal::new(Code::InvalidBody, "A form needs a boundary of 1 to 70 characters in its Content-Type.");
    boundary.map(Some).ok_or_else(missing)
}

pub(super) fn part(lines: &[u8]) -> Result<PartHead, Refusal> {
    let lines = String::from_utf8_lossy(lines);
    let mut head = None;
    for line in lines.split("\r\n") {
        let Some((name, value)) = line.split_once(':') else { return Err(broken("a part's header has no colon")) };
        if name.eq_ignore_ascii_case("content-disposition") {
            if head.is_some() {
                return Err(broken("a part has two Content-Disposition headers"));
            }
            head = Some(disposition(value)?);
        } else if name.eq_ignore_ascii_case("content-transfer-encoding") {
            let value = value.trim();
            if !["binary", "8bit", "7bit"].iter().any(|plain| value.eq_ignore_ascii_case(plain)) {
                return Err(broken("a part is encoded; send its bytes as they are"));
            }
        }
    }
    head.ok_or_else(|| broken("a part has no Content-Disposition"))
}

fn disposition(value: &str) -> Result<PartHead, Refusal> {
    let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return Err(broken("a part is no form-data"));
    }
    let name = parameter(parameters, "name").filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| broken("a part has no name"))?;
    if name.len() > LONGEST_NAME {
        return Err(broken(&format!("the name of a part is longer than {LONGEST_NAME} bytes")));
    }
    let extended = parameter(parameters, "filename*").and_then(|text| extended(&text));
    let file_name = extended.or_else(|| parameter(parameters, "filename")).filter(|name| !name.is_empty());
    let base = |name: String| name.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(PartHead { name, file_name: file_name.map(base) })
}

/// One of `; name=value; name="value"`, the first of that name.
fn parameter(text: &str, wanted: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([';', ' ', '\t']);
        let (name, after) = rest.split_once('=')?;
        let (value, next) = if let Some(quoted) = after.trim_start().strip_prefix('"') {
            unquoted(quoted)?
        } else {
            let (value, next) = after.split_at_checked(after.find(';').unwrap_or(after.len()))?;
            (value.trim().to_owned(), next)
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = next;
    }
}

/// Up to the closing quote. A backslash only counts before characters that need one, so that Windows paths stay whole.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((place, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(place + 1..)?)),
            '\\' => match chars.next_if(|(_, next)| "()<>@,;:\\\"/[]?=".contains(*next)) {
                Some((_, next)) => value.push(next),
                None => value.push('\\'),
            },
            c => value.push(c),
        }
    }
    None
}

/// `UTF-8''na%C3%AFve.txt` (RFC 5987).
fn extended(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '\'');
    let (charset, _, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    if !charset.eq_ignore_ascii_case("utf-8") {
        return None;
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |digit: Option<u8>| char::from(digit?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            bytes.push(digit(rest.next())? * 16 + digit(rest.next())?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
