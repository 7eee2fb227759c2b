//! Names files are stored under: words of the client's own name, something random, the extension.

/// Random bytes [`stored_name`] needs.
pub const RANDOM_BYTES: usize = 20;

const RANDOM: usize = 10;
const LONGEST: usize = 100;
const SHORTEST: usize = 3;
const LONGEST_EXTENSION: usize = 20;

/// `My Photo.PNG` as `my_photo_x1y2z3a4b5.PNG`. `extension` (with its dot) is used when the name has none.
///
/// Only `[A-Za-z0-9_.*+=#-]` come out, never a separator, and at most 145 characters; whoever does not know the random
/// part does not find the file.
pub fn stored_name(sent: &str, extension: &str, random: &[u8; RANDOM_BYTES]) -> String {
    let base = sent.rsplit('/').next().unwrap_or_default();
    let own = own_extension(base);
    let kept: String = own.chars().filter(|c| is_word(*c) || ".*-+=#".contains(*c)).collect();
    let extension = if kept.trim_matches('.').is_empty() { extension.to_owned() } else { shortened(kept) };
    let mut name = snake_case(base.strip_suffix(own).unwrap_or(base));
    let (for_short, always) = random.split_at(RANDOM);
    if name.len() < SHORTEST {
        name.push_str(&letters(for_short));
    }
    name.truncate(LONGEST);
    format!("{name}_{}{extension}", letters(always))
}

/// From the last dot but one, as in `.tar.gz`; from the last when there is only one.
fn own_extension(name: &str) -> &str {
    let Some((front, _)) = name.rsplit_once('.') else { return "" };
    let start = front.rfind('.').unwrap_or(front.len());
    name.get(start..).unwrap_or_default()
}

fn shortened(extension: String) -> String {
    // Only ASCII is left, so every index is a boundary.
    match extension.len().checked_sub(LONGEST_EXTENSION).filter(|over| *over > 0) {
        Some(over) => format!(".{}", extension.get(over..).unwrap_or_default()),
        None => extension,
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn snake_case(text: &str) -> String {
    let mut out = String::new();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        if !out.is_empty() {
            out.push('_');
        }
        let mut before: Option<char> = None;
        for c in word.chars() {
            if c.is_ascii_uppercase() && before.is_some_and(|before| !before.is_ascii_uppercase()) {
                out.push('_');
            }
            out.push(c.to_ascii_lowercase());
            before = Some(c);
        }
    }
    out
}

fn letters(random: &[u8]) -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    random.iter().filter_map(|byte| LETTERS.get(usize::from(*byte) % LETTERS.len())).map(|b| char::from(*b)).collect()
}
