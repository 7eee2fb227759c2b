//! Canonical JSON (RFC 8785, JCS): the one byte form of a value that is hashed or signed.

use serde_json::Value;

use crate::ids::Digest;

/// The canonical text of a value: members sorted by UTF-16 code units, no spaces, shortest numbers.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// SHA-256 of the canonical text.
pub fn digest(value: &Value) -> Digest {
    Digest::of(to_string(value).as_bytes())
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(&Value::String(key.clone()), out);
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Number(number) => out.push_str(&number_text(number)),
        // serde_json escapes exactly what RFC 8785 section 3.2.2.2 asks for.
        other => out.push_str(&other.to_string()),
    }
}

/// ECMAScript's number text (RFC 8785 section 3.2.2.3): every number is a double there.
fn number_text(number: &serde_json::Number) -> String {
    let Some(value) = number.as_f64() else { return number.to_string() };
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs();
    if (1e-6..1e21).contains(&magnitude) {
        return format!("{value}");
    }
    // Rust prints `1e21` and `1.5e-7`; ECMAScript wants a sign on positive exponents.
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !exponent.starts_with('-') => format!("{mantissa}e+{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_approval_vector_of_the_a2app_notes_is_reproduced() {
        // reference: A2App 0.1, approval key of `archive-board` with no arguments.
        let value = json!({"operation": "archive-board", "args": {}});
        assert_eq!(to_string(&value), r#"{"args":{},"operation":"archive-board"}"#);
        assert_eq!(digest(&value).to_string(), "5bf9fb4565dc262a18f9d14c0f3ce2ff9789b0d76edda8fdcf74248413598f20");
    }

    #[test]
    fn numbers_are_written_as_ecmascript_writes_them() {
        for (value, text) in [
            (json!(1.0), "1"),
            (json!(-0.0), "0"),
            (json!(333_333_333.333_333_3), "333333333.3333333"),
            (json!(1e30), "1e+30"),
            (json!(1e21), "1e+21"),
            (json!(4.5), "4.5"),
            (json!(2e-3), "0.002"),
            (json!(1e-27), "1e-27"),
        ] {
            assert_eq!(to_string(&value), text);
        }
    }

    #[test]
    fn members_are_sorted_by_utf16_code_units() {
        // RFC 8785 section 3.2.3: an astral character (a surrogate pair) sorts before U+FB33.
        let value = json!({"\u{fb33}": 1, "\u{1f600}": 2, "\r": 3, "1": 4});
        assert_eq!(to_string(&value), "{\"\\r\":3,\"1\":4,\"\u{1f600}\":2,\"\u{fb33}\":1}");
    }
}
