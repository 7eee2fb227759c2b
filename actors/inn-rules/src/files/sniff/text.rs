//! Types that are text.

use super::MediaType;

pub(super) fn sniff(start: &[u8], whole: bool) -> Option<MediaType> {
    let named = |name, extension| Some(MediaType { name, extension });
    if start.is_empty() {
        return named("text/plain", ".txt");
    }
    if start.starts_with(b"\xff\xfe") {
        return named("text/plain; charset=utf-16le", ".txt");
    }
    if start.starts_with(b"\xfe\xff") {
        return named("text/plain; charset=utf-16be", ".txt");
    }
    if start.iter().any(|byte| is_binary(*byte)) {
        return None;
    }
    // What is no UTF-8 is text in some other way, and none of the kinds below.
    let text = readable(start, whole).unwrap_or_default().trim_start_matches('\u{feff}');
    let content = text.trim_start();
    if is_html(content) {
        return named("text/html; charset=utf-8", ".html");
    }
    if content.starts_with("<?xml") || content.starts_with("<svg") || content.starts_with("<!DOCTYPE svg") {
        let drawing = content.contains("<svg") && content.contains("http://www.w3.org/2000/svg");
        if drawing {
            return named("image/svg+xml", ".svg");
        }
        if content.starts_with("<?xml") {
            return named("text/xml; charset=utf-8", ".xml");
        }
    }
    if content.starts_with("<?php") {
        return named("text/x-php", ".php");
    }
    if let Some(line) = content.strip_prefix("#!").and_then(|rest| rest.lines().next()) {
        return Some(script(line).unwrap_or_else(|| plain(start)));
    }
    if let Some(kind) = json(content, whole) {
        return Some(kind);
    }
    if is_subtitles(content) {
        return named("application/x-subrip", ".srt");
    }
    if content.starts_with("BEGIN:VCARD") {
        return named("text/vcard", ".vcf");
    }
    if content.starts_with("BEGIN:VCALENDAR") {
        return named("text/calendar", ".ics");
    }
    if content.starts_with("WEBVTT") {
        return named("text/vtt", ".vtt");
    }
    if is_table(text, ',', whole) {
        return named("text/csv", ".csv");
    }
    if is_table(text, '\t', whole) {
        return named("text/tab-separated-values", ".tsv");
    }
    Some(plain(start))
}

/// Plain text, with the character set that its bytes look like. As PocketBase looks: the last character counts for
/// nothing when it is not ASCII, since it may be cut in two.
fn plain(start: &[u8]) -> MediaType {
    let name = |name| MediaType { name, extension: ".txt" };
    if start.starts_with(b"\xef\xbb\xbf") || start.is_ascii() {
        return name("text/plain; charset=utf-8");
    }
    let last = start.len().saturating_sub(3);
    let begins = |byte: u8| byte & 0xc0 != 0x80;
    let tail = start.get(last..).unwrap_or_default();
    let cut = match tail.iter().rposition(|byte| begins(*byte)) {
        Some(place) if tail.get(place..).is_some_and(|rest| !rest.is_ascii()) => last + place,
        _ => start.len(),
    };
    let settled = start.get(..cut).unwrap_or(start);
    if !settled.is_ascii() && std::str::from_utf8(settled).is_ok() {
        return name("text/plain; charset=utf-8");
    }
    // Between 0x80 and 0x9f only the line break of Latin-1 is a character of texts.
    match start.iter().find(|byte| matches!(byte, 0x80..=0x9f)) {
        None => name("text/plain; charset=iso-8859-1"),
        Some(_) if start.iter().all(|byte| *byte == 0x85 || !matches!(byte, 0x80..=0x9f)) => {
            name("text/plain; charset=windows-1252")
        }
        Some(_) => name("text/plain"),
    }
}

/// Control bytes no text has (WHATWG MIME sniffing, binary data byte).
fn is_binary(byte: u8) -> bool {
    matches!(byte, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}

/// As UTF-8; where more follows, a character may be cut in two.
fn readable(start: &[u8], whole: bool) -> Option<&str> {
    match std::str::from_utf8(start) {
        Ok(text) => Some(text),
        Err(error) if !whole && error.error_len().is_none() => {
            start.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok())
        }
        Err(_) => None,
    }
}

fn is_html(content: &str) -> bool {
    const TAGS: [&str; 17] = [
        "<!DOCTYPE HTML",
        "<HTML",
        "<HEAD",
        "<SCRIPT",
        "<IFRAME",
        "<H1",
        "<DIV",
        "<FONT",
        "<TABLE",
        "<A",
        "<STYLE",
        "<TITLE",
        "<B",
        "<BODY",
        "<BR",
        "<P",
        "<!--",
    ];
    TAGS.iter().any(|tag| {
        let named = content.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
        named && content.get(tag.len()..).is_some_and(|rest| *tag == "<!--" || rest.starts_with([' ', '>', '\t', '\n']))
    })
}

fn script(line: &str) -> Option<MediaType> {
    let program =
        line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word)).find(|word| *word != "env");
    let (name, extension) = match program.unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
    {
        "sh" | "bash" | "dash" | "ksh" | "zsh" => ("text/x-shellscript", ".sh"),
        "python" => ("text/x-python", ".py"),
        "perl" => ("text/x-perl", ".pl"),
        "ruby" => ("text/x-ruby", ".rb"),
        "php" => ("text/x-php", ".php"),
        "lua" => ("text/x-lua", ".lua"),
        "node" => ("text/javascript", ".js"),
        "tclsh" => ("text/x-tcl", ".tcl"),
        _ => return None,
    };
    Some(MediaType { name, extension })
}

/// A list or an object, where more follows one that is whole as far as it goes; several of them, one a line.
fn json(content: &str, whole: bool) -> Option<MediaType> {
    const SHAPES: [&str; 9] = [
        "Feature",
        "FeatureCollection",
        "Point",
        "LineString",
        "Polygon",
        "MultiPoint",
        "MultiLineString",
        "MultiPolygon",
        "GeometryCollection",
    ];
    if !content.starts_with(['{', '[']) {
        return None;
    }
    let named = |name, extension| Some(MediaType { name, extension });
    match serde_json::from_str::<serde::de::IgnoredAny>(content) {
        Err(error) if error.is_eof() && !whole => {}
        Err(_) => {
            let is_json = |line: &str| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
            let mut lines = content.lines().filter(|line| !line.trim().is_empty());
            // A last line that is cut off tells nothing.
            let cut = if whole { None } else { lines.next_back() };
            let count = lines.clone().count() + usize::from(cut.is_some());
            let all = lines.all(|line| line.trim_start().starts_with(['{', '[']) && is_json(line));
            return if count > 1 && all { named("application/x-ndjson", ".ndjson") } else { None };
        }
        Ok(_) => {}
    }
    let shape = content.split_once("\"type\"").and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
    let shape = shape.and_then(|rest| rest.trim_start().strip_prefix('"')).and_then(|rest| rest.split('"').next());
    if content.starts_with('{') && shape.is_some_and(|shape| SHAPES.contains(&shape)) {
        return named("application/geo+json", ".geojson");
    }
    named("application/json", ".json")
}

/// The first of numbered lines that are shown for a while.
fn is_subtitles(content: &str) -> bool {
    let mut lines = content.lines();
    let time = |text: &str| {
        let digits =
            |from: usize, to: usize| text.get(from..to).is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
        text.len() == 12 && digits(0, 2) && digits(3, 5) && digits(6, 8) && text.get(8..9) == Some(",") && digits(9, 12)
    };
    let span = |line: &str| line.split_once(" --> ").is_some_and(|(from, to)| time(from.trim()) && time(to.trim()));
    lines.next().is_some_and(|line| line.trim() == "1") && lines.next().is_some_and(span)
}

/// At least two lines with the same number of fields, more than one each.
fn is_table(text: &str, separator: char, whole: bool) -> bool {
    let mut counts = Vec::new();
    let (mut quoted, mut fields, mut any) = (false, 1_usize, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '\n' if !quoted => {
                if any {
                    counts.push(fields);
                }
                (fields, any) = (1, false);
                continue;
            }
            '\r' if !quoted => continue,
            c if c == separator && !quoted => fields += 1,
            _ => {}
        }
        any = true;
    }
    // A last line that is cut off tells nothing.
    if any && whole && !quoted {
        counts.push(fields);
    }
    counts.len() > 1 && counts.first().is_some_and(|first| *first > 1 && counts.iter().all(|count| count == first))
}
