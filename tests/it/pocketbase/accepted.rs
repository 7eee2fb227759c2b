//! Where ours is meant to answer otherwise than PocketBase. Short on purpose; everything else that differs is a fault.

use serde_json::{Map, Value, json};

use super::ask::{Answer, Ask, Who, difference};
use super::schema::id;

/// One difference that is meant.
pub(crate) struct Accepted {
    pub(crate) name: &'static str,
    /// Why ours is better, or cannot be the same.
    pub(crate) reason: &'static str,
    /// Is it this one?
    fits: fn(&Ask, &Answer, &Answer) -> bool,
    /// A question on which the sides differ in this way; when they no longer do, the difference is taken out here.
    pub(crate) example: fn() -> Ask,
}

/// The first one that explains the difference.
pub(crate) fn reason(ask: &Ask, theirs: &Answer, ours: &Answer) -> Option<&'static str> {
    ACCEPTED.iter().find(|accepted| (accepted.fits)(ask, theirs, ours)).map(|accepted| accepted.name)
}

pub(crate) const ACCEPTED: &[Accepted] = &[
    Accepted {
        name: "guard",
        reason: "The guard of A2App 1.0 stands in front of every write and refuses, for every field at once, what PocketBase \
                 would coerce or leave out without a word (issue of the records API, point 7). It speaks first, so what \
                 PocketBase's own checks would have said besides is not said.",
        fits: |_, theirs, ours| {
            let said = |violation: &Value| violation["code"].as_str().is_some_and(|code| GUARD.contains(&code));
            let guarded = ours.body["violations"].as_array().is_some_and(|violations| violations.iter().any(said));
            let theirs_said = data(theirs);
            // What both speak of, both must say in the same words.
            let agreed =
                data(ours).iter().all(|(field, what)| theirs_said.get(field).is_none_or(|other| other == what));
            ours.status == 400 && (theirs.status == 200 || theirs.status == 400) && guarded && agreed
        },
        example: || Ask::create(SUPERUSER, "forms", json!({"when": "tomorrow"})),
    },
    Accepted {
        name: "one JSON object",
        reason: "A body is one JSON object in UTF-8 and nothing else. PocketBase takes `null` for an empty one, reads only the \
                 first value of several and puts U+FFFD for half a surrogate pair; what a signature covers must be what is \
                 stored, so ours refuses.",
        fits: |ask, theirs, ours| {
            ask.body.is_some() && theirs.status == 200 && ours.status == 400 && ours.body["code"] == "invalid_body"
        },
        example: || Ask::create(SUPERUSER, "links", json!({})).raw(Some("application/json"), b"{\"name\":\"x\"} {}"),
    },
    Accepted {
        name: "letters of a media type",
        reason: "Media types are the same in capital letters (RFC 9110, 8.3.1). PocketBase does not know `APPLICATION/JSON`.",
        fits: |ask, theirs, ours| {
            let odd = |(name, value): &(String, String)| name == "content-type" && *value != value.to_ascii_lowercase();
            ask.headers.iter().any(odd) && (theirs.status, ours.status) == (400, 200)
        },
        example: || Ask::create(SUPERUSER, "links", json!({})).raw(Some("APPLICATION/JSON"), b"{}"),
    },
    Accepted {
        name: "NUL",
        reason: "PostgreSQL keeps no NUL in a text, so no record has one: a filter with one in a text finds nothing, and anywhere \
                 else it is refused. PocketBase stops reading at the first one and takes what stands before it for the whole.",
        fits: |ask, theirs, ours| {
            let nul = ask.query.iter().any(|(name, value)| name == "filter" && value.contains('\0'));
            nul && matches!((theirs.status, ours.status), (200, 400) | (400, 200))
        },
        example: || Ask::list(SUPERUSER, "ships").with("filter", "title = 'a\0b'"),
    },
    Accepted {
        name: "references last",
        reason: "Whether a referenced record exists is asked in the transaction that writes, where nobody can delete it meanwhile. \
                 So it is said once everything else is right, and not together with it.",
        fits: |_, theirs, ours| {
            let (theirs_said, ours_said) = (data(theirs), data(ours));
            let last = |what: &Value| what["code"] == "validation_missing_rel_records";
            let explained = |(field, what): (&String, &Value)| match ours_said.get(field) {
                Some(ours) => ours == what,
                None => last(what),
            };
            (theirs.status, ours.status) == (400, 400)
                && !ours_said.is_empty()
                && ours_said.keys().all(|field| theirs_said.contains_key(field))
                && theirs_said.iter().all(explained)
        },
        example: || Ask::create(SUPERUSER, "forms", json!({"crew": "zzz", "short": "much too long"})),
    },
    Accepted {
        name: "blanks around a number",
        reason: "A2App reads the text ` 5 ` as the number 5, and so it is kept. PocketBase stores 0 without a word.",
        fits: |ask, theirs, ours| {
            let sent = ask.body.as_deref().and_then(|body| serde_json::from_slice::<Value>(body).ok());
            let sent = sent.unwrap_or_default()["any"].as_str().map(str::to_owned).unwrap_or_default();
            let mut same = theirs.clone();
            if let Some(body) = same.body.as_object_mut() {
                body.insert("any".to_owned(), ours.body["any"].clone());
            }
            sent.trim() != sent
                && theirs.body["any"] == 0
                && ours.body["any"].as_f64() == sent.trim().parse().ok()
                && difference(&same, ours).is_none()
        },
        example: || Ask::create(SUPERUSER, "forms", json!({"id": id("blanks"), "auto": "x", "any": " 5 "})),
    },
    Accepted {
        name: "no empty answers",
        reason: "To a modifier of `fields` that cannot be read, PocketBase 0.39 answers 200 with nothing in it (0.40: 400). Ours \
                 refuses and says why.",
        fits: |ask, theirs, ours| {
            let fields = ask.query.iter().any(|(name, value)| name == "fields" && value.contains(':'));
            fields && (theirs.status, ours.status) == (200, 400) && theirs.body.is_null()
        },
        example: || Ask::list(SUPERUSER, "ships").with("fields", "title:excerpt(0)"),
    },
    Accepted {
        name: "last digits of a REAL",
        reason: "The SQLite in PocketBase 0.39.8 writes some numbers below 0.001 or of 14 and more digits with others in the end: \
                 0.000986 is 0.0009859999999999999 where it is compared as text. Ours writes the number that was meant.",
        fits: |ask, theirs, ours| {
            let long = |number: &str| {
                let digits = number.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
                number.contains('.') && (digits >= 14 || digits >= 2 && number.starts_with("0.000"))
            };
            let other = |sign: char| !sign.is_ascii_digit() && sign != '.';
            let written = ask.query.iter().any(|(name, value)| name == "filter" && value.split(other).any(long));
            let text = ask.query.iter().any(|(name, value)| name == "filter" && value.contains('~'));
            written && text && (theirs.status, ours.status) == (200, 200)
        },
        example: || Ask::list(SUPERUSER, "ships").with("filter", "0.000986 ~ '9859999'"),
    },
    Accepted {
        name: "sums in rules",
        reason: "PocketBase reads a record, adds `level+` to what it read and lets the update rule see the sum as \
                 `@request.body.level`; a write in between is lost. Ours adds when it commits, so there is no sum yet that a \
                 rule could be asked about, and it says so.",
        fits: |ask, _, ours| {
            let sent =
                ask.body.as_deref().and_then(|body| serde_json::from_slice::<Value>(body).ok()).unwrap_or_default();
            let relative = |name: &String| name.trim_matches(['+', '-']) != name;
            let said = ours.body["message"].as_str().unwrap_or_default();
            ours.status == 400
                && said.contains("relative to what is stored")
                && sent.as_object().is_some_and(|sent| sent.keys().any(relative))
        },
        example: || Ask::update(Who::Nobody, "gauges", &id("gauge"), json!({"level+": 1})),
    },
];

const SUPERUSER: Who = Who::Superuser;

/// What is said of each field.
fn data(answer: &Answer) -> Map<String, Value> {
    answer.body["data"].as_object().cloned().unwrap_or_default()
}

/// Codes only the guard gives.
const GUARD: &[&str] = &[
    "invalid_string",
    "invalid_number",
    "invalid_boolean",
    "invalid_date",
    "invalid_enum",
    "invalid_ref",
    "unknown_field",
    "read_only_field",
    "missing_required",
];
