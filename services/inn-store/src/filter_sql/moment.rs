//! `strftime` as SQL (reference notes on PocketBase, section A.10).

use inn_rules::filter::{Moment, Operand};

use super::SqlParams;
use super::side::{Kind, Side, bind_text};
use crate::columns::SqlValue;

#[cfg(test)]
mod tests;

/// 1970-01-01 00:00, in milliseconds since the start of the Julian day numbers.
const EPOCH: i64 = 210_866_760_000_000;

pub(super) fn render(moment: &Moment, time: &Side, params: &mut SqlParams) -> Side {
    let (number, value) = time.time(params);
    let general = general(moment, &number, &value, params);
    let sql = match stored(moment, time, &value, params) {
        Some(stored) => format!(
            "(CASE WHEN {value} = '' THEN NULL WHEN inn.is_stored_moment({value}) THEN {stored} ELSE {general} END)"
        ),
        None => general,
    };
    let empty = matches!(&moment.time, Operand::Text(text) if text.is_empty());
    let bound = !moment.format.is_empty() && !empty && moment.modifiers.iter().all(|modifier| !modifier.is_empty());
    Side::moment(&sql, bound)
}

fn general(moment: &Moment, number: &str, value: &str, params: &mut SqlParams) -> String {
    let format = bind_text(&moment.format, params);
    let modifiers = moment.modifiers.iter().map(|modifier| modifier.replace('\0', "\u{1}")).collect();
    let modifiers = params.push(SqlValue::List(modifiers));
    // Exact: a float8 has room for it until the calendar ends.
    #[allow(clippy::cast_precision_loss)]
    let now = params.push(SqlValue::Number((moment.now.timestamp_millis() + EPOCH) as f64));
    format!("inn.strftime({format}, {number}, {value}, {modifiers}, {now}::bigint)")
}

/// Of a format: text, or where in the text that a date field keeps.
enum Piece {
    Text(String),
    Part(u8, u8),
}

/// Parts of the text that a date field keeps, where that is all there is to it: much faster than [`general`].
fn stored(moment: &Moment, time: &Side, value: &str, params: &mut SqlParams) -> Option<String> {
    if time.kind != Kind::TextColumn || !moment.modifiers.is_empty() || moment.format.is_empty() {
        return None;
    }
    let pieces: Vec<String> = pieces(&moment.format)?
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => bind_text(&text, params),
            Piece::Part(from, length) => format!("substr({value}, {from}, {length})"),
        })
        .collect();
    Some(format!("({})", pieces.join(" || ")))
}

/// `None` when a letter stands for something that is not written there.
fn pieces(format: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        let part = match letter {
            '%' => match letters.next()? {
                'Y' => Some((1, 4)),
                'm' => Some((6, 2)),
                'd' => Some((9, 2)),
                'F' => Some((1, 10)),
                'H' => Some((12, 2)),
                'M' => Some((15, 2)),
                'S' => Some((18, 2)),
                'f' => Some((18, 6)),
                'R' => Some((12, 5)),
                'T' => Some((12, 8)),
                '%' => None,
                _ => return None,
            },
            _ => None,
        };
        let Some((from, length)) = part else {
            text.push(letter);
            continue;
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Part(from, length));
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Some(pieces)
}
