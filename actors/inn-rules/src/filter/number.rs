//! Numbers as `SQLite` 3.53 writes and reads them (section A.11).

/// What may stand around a number.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'];

/// A REAL as text: 15 digits when they read back, else 17; whole numbers keep `.0`; exponents begin at 1e17 and have two
/// digits (`1.0e+20`). Known difference: the last digits of numbers with 14 and more are `SQLite`'s own.
pub fn real_text(number: f64) -> String {
    if number == 0.0 {
        return "0.0".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let short = format!("{number:.14e}");
    let scientific = if short.parse() == Ok(number) { short } else { format!("{number:.16e}") };
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let significant: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = significant.trim_end_matches('0');
    if !(-4..17).contains(&exponent) {
        let (first, rest) = significant.split_at_checked(1).unwrap_or((significant, ""));
        let rest = if rest.is_empty() { "0" } else { rest };
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}.{rest}e{direction}{:02}", exponent.unsigned_abs());
    }
    if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or_default());
        return format!("{sign}0.{zeros}{significant}");
    }
    let whole_digits = usize::try_from(exponent + 1).unwrap_or_default();
    match significant.split_at_checked(whole_digits) {
        Some((whole, rest)) if !rest.is_empty() => format!("{sign}{whole}.{rest}"),
        _ => format!("{sign}{significant:0<whole_digits$}.0"),
    }
}

/// A number of a NUMERIC column as text: whole numbers below 2^63 are stored as integers.
#[allow(clippy::cast_possible_truncation)]
pub fn column_text(number: f64) -> String {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && number.abs() < LIMIT { (number as i64).to_string() } else { real_text(number) }
}

/// The number a text begins with, as a cast reads it; 0 when it begins with none.
pub(super) fn leading_number(text: &str) -> f64 {
    let text = text.trim_start_matches(BLANKS);
    let digits = |from: usize| text.bytes().skip(from).take_while(u8::is_ascii_digit).count();
    let whole = usize::from(text.starts_with(['+', '-']));
    let mut end = whole + digits(whole);
    if text.get(end..).is_some_and(|rest| rest.starts_with('.')) {
        end += 1 + digits(end + 1);
    }
    if let Some(rest) = text.get(end..).and_then(|rest| rest.strip_prefix(['e', 'E'])) {
        let exponent = end + 1 + usize::from(rest.starts_with(['+', '-']));
        if digits(exponent) > 0 {
            end = exponent + digits(exponent);
        }
    }
    text.get(..end).and_then(numeric).unwrap_or_default()
}

/// The number a text stands for when it meets a numeric column: optional blanks, sign, digits, point, exponent. Not
/// hexadecimal, not `''`, nothing after it.
pub(super) fn numeric(text: &str) -> Option<f64> {
    let text = text.trim_matches(BLANKS);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    if let Some(exponent) = exponent {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if exponent.is_empty() || !digits(exponent) {
            return None;
        }
    }
    text.parse().ok()
}
