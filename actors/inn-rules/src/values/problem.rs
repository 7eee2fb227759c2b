//! What can be wrong with a value, in both vocabularies: our codes (A2App) and PocketBase's `validation_*`.
//!
//! A [`Violation`] carries code, field, expected and got only. The texts of `expected` are therefore made from the same
//! table that reads them back, so that a face can derive PocketBase's `data` from the violations of a refusal alone.

use inn_protocol::{Code, Refusal, Violation};
use serde_json::{Map, Value, json};

use super::{coerce, number_value};

/// One rule a value can break. `{}` in the texts stands for its one argument.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    pub pb: &'static str,
    pub code: Code,
    pub expected: &'static str,
    pub message: &'static str,
    /// Name of the argument in PocketBase's `params`.
    pub param: Option<Param>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    Number(&'static str),
    Text(&'static str),
    /// A stored date, told as Go tells it.
    Date(&'static str),
    /// The value that was sent.
    Got(&'static str),
    /// The names that were sent, as a list.
    Names(&'static str),
    /// The longest there may be, told with this shortest: `max` and `min`.
    Length(u8),
    /// `<file> - the maximum allowed file size is <bytes>`: `file` and `maxSize`.
    FileSize,
}

macro_rules! rules {
    ($($name:ident = $pb:literal, $code:ident, $expected:literal, $message:literal, $param:expr;)*) => {
        $(pub(crate) const $name: Rule = Rule {
            pb: $pb, code: Code::$code, expected: $expected, message: $message, param: $param,
        };)*
        /// Rules with an argument in the middle first: the first whose text fits is the one.
        const ALL: &[Rule] = &[$($name,)*];
    };
}

rules! {
    REQUIRED = "validation_required", MissingRequired, "a value", "Cannot be blank.", None;
    MIN_TEXT = "validation_min_text_constraint", InvalidValue,
        "at least {} character(s)", "Must be at least {} character(s).", Some(Param::Number("min"));
    MAX_TEXT = "validation_max_text_constraint", InvalidValue,
        "no more than {} character(s)", "Must be no more than {} character(s).", Some(Param::Number("max"));
    FORMAT = "validation_invalid_format", InvalidValue,
        "text that fits the field's pattern", "Invalid value format.", None;
    NUL = "validation_invalid_value", InvalidString,
        "text without NUL characters", "Must not contain NUL characters.", None;
    CONTENT_SIZE = "validation_content_size_limit", InvalidValue,
        "no more than {} bytes of content", "The maximum allowed content size is {} bytes.", Some(Param::Number("maxSize"));
    NOT_A_NUMBER = "validation_not_a_number", InvalidNumber,
        "a finite number", "The submitted number is not properly formatted.", None;
    ONLY_INT = "validation_only_int_constraint", InvalidValue,
        "a whole number", "Decimal numbers are not allowed.", None;
    MIN_NUMBER = "validation_min_number_constraint", InvalidValue,
        "a number of at least {}", "Must be greater or equal than {}.", Some(Param::Number("min"));
    MAX_NUMBER = "validation_max_number_constraint", InvalidValue,
        "a number of at most {}", "Must be less or equal than {}.", Some(Param::Number("max"));
    MIN_DATE = "validation_min_greater_equal_than_required", InvalidValue,
        "a date no earlier than {}", "Must be no less than {}.", Some(Param::Date("threshold"));
    MAX_DATE = "validation_max_less_equal_than_required", InvalidValue,
        "a date no later than {}", "Must be no greater than {}.", Some(Param::Date("threshold"));
    NOT_AN_OPTION = "validation_invalid_value", InvalidEnum,
        "one of: {}", "Invalid value {}.", Some(Param::Got("value"));
    TOO_MANY = "validation_too_many_values", InvalidValue,
        "no more than {} values", "Select no more than {}.", Some(Param::Number("maxSelect"));
    NOT_ENOUGH = "validation_not_enough_values", InvalidValue,
        "at least {} values", "Select at least {}.", Some(Param::Number("minSelect"));
    NO_SUCH_RECORD = "validation_missing_rel_records", InvalidRef,
        "ids of records in {}", "Failed to find all relation records with the provided ids.", None;
    NEEDS_ROW = "validation_invalid_value", InvalidValue,
        "the whole list: here it cannot be changed relative to the stored one", "Send the whole list.", None;
    NO_SUCH_COLLECTION = "validation_missing_rel_collection", InvalidRef,
        "a relation whose collection exists", "Relation connected to a missing collection.", None;
    JSON_SIZE = "validation_json_size_limit", InvalidValue,
        "no more than {} bytes of JSON", "The maximum allowed JSON size is {} bytes.", Some(Param::Number("maxSize"));
    JSON = "validation_invalid_json", InvalidValue,
        "JSON without control characters", "Must be a valid json value.", None;
    EMAIL = "validation_is_email", InvalidValue, "an email address", "Must be a valid email address.", None;
    EMAIL_DOMAIN = "validation_email_domain_not_allowed", InvalidValue,
        "an email address of an allowed domain", "Email domain is not allowed.", None;
    URL = "validation_invalid_url", InvalidValue, "a URL with its scheme", "Must be a valid url.", None;
    URL_DOMAIN = "validation_url_domain_not_allowed", InvalidValue,
        "a URL of an allowed domain", "Url domain is not allowed.", None;
    GEO = "validation_invalid_geo_point", InvalidValue,
        "an object with the numbers lon and lat", "Must be an object with the numbers lon and lat.", None;
    LATITUDE = "validation_invalid_latitude", InvalidValue,
        "a latitude between -90 and 90", "Latitude must be between -90 and 90 degrees.", None;
    LONGITUDE = "validation_invalid_longitude", InvalidValue,
        "a longitude between -180 and 180", "Longitude must be between -180 and 180 degrees.", None;
    UNKNOWN_FILES = "validation_invalid_file", InvalidValue,
        "uploads, or names of files this record has", "Invalid new files: [{}].", Some(Param::Names("invalidFiles"));
    TOO_MANY_FILES = "validation_too_many_files", InvalidValue,
        "no more than {} files", "The maximum allowed files is {}.", Some(Param::Number("maxSelect"));
    FILE_SIZE = "validation_file_size_limit", InvalidValue,
        "a smaller file: {} bytes", "Failed to upload {} bytes.", Some(Param::FileSize);
    FILE_TYPE = "validation_invalid_mime_type", InvalidValue, "another kind of file: {}", "{}.", None;
    FILE_HERE = "validation_invalid_value", InvalidValue,
        "text: files go into file fields", "This field takes no files.", None;
    KEY_CHANGE = "validation_pk_change", InvalidValue,
        "the record's own id", "The record primary key cannot be changed.", None;
    MISMATCH = "validation_values_mismatch", InvalidValue, "the same value again", "Values don't match.", None;
    NOT_YOURS = "validation_values_mismatch", InvalidValue,
        "the stored value (only an owner of the app changes it)", "Values don't match.", None;
    OLD_PASSWORD = "validation_invalid_old_password", InvalidValue,
        "the password that is valid now", "Missing or invalid old password.", None;
    TOKEN = "validation_invalid_token", InvalidValue,
        "a token of this kind that still holds", "Invalid or expired token.", None;
    TOKEN_CLAIMS = "validation_invalid_token_claims", InvalidValue,
        "a token that says for which address it was made", "Missing email token claim.", None;
    TOKEN_PAYLOAD = "validation_invalid_token_payload", InvalidValue,
        "a token that says which address is the new one", "Invalid token payload - newEmail must be set.", None;
    TAKEN_EMAIL = "validation_invalid_new_email", InvalidValue,
        "an address no other account has", "Invalid new email address.", None;
    MIN_PASSWORD = "validation_min_text_constraint", InvalidValue,
        "a password of at least {} character(s)", "Must be at least {} character(s).", None;
    MAX_PASSWORD = "validation_max_text_constraint", InvalidValue,
        "a password of no more than {} character(s)", "Must be less than {} character(s).", None;
    NO_IDENTITY = "validation_in_invalid", InvalidValue,
        "a field that names one record", "Must be a valid value.", None;
    SAME_EMAIL = "validation_not_in_invalid", InvalidValue,
        "another address than the one that is valid now", "Must not be in list.", None;
    WRONG_PASSWORD = "validation_invalid_password", InvalidValue,
        "the record's password", "Missing or invalid auth record password.", None;
    NEGATIVE = "validation_min_greater_equal_than_required", InvalidValue,
        "a duration of at least {} seconds", "Must be no less than {}.", Some(Param::Number("threshold"));
    LENGTH = "validation_length_out_of_range", InvalidValue,
        "a length from 1 to {}", "The length must be between 1 and {}.", Some(Param::Length(1));
    TOO_LONG = "validation_length_too_long", InvalidValue,
        "a length of no more than {}", "The length must be no more than {}.", Some(Param::Length(0));
    UNREADABLE = "validation_invalid_value", InvalidValue,
        "a shorter text without NUL characters", "Invalid value.", None;
    NOT_UNIQUE = "validation_not_unique", NotUnique, "a value no other record has", "Value must be unique.", None;
    ID_CHARACTER = "validation_forbidden_pk_character", InvalidValue,
        "an id without the character {}", "'{}' is not a valid primary key character.", Some(Param::Text("ch"));
    RESERVED_ID = "validation_reserved_pk", InvalidValue,
        "an id that is not the reserved {}", "The primary key '{}' is reserved and cannot be used.", Some(Param::Text("reserved"));
    ACCOUNT_ID = "validation_invalid_auth_id", NotUnique,
        "an id that no other account of the app has", "Invalid or duplicated auth record id.", None;
    NOT_STORED = "validation_not_stored", NotStored,
        "a value the database keeps", "The value was not stored; nothing was changed.", None;
}

/// Something wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldProblem {
    pub field: String,
    pub rule: &'static Rule,
    pub argument: Option<String>,
    pub got: Option<Value>,
}

impl FieldProblem {
    pub(crate) fn new(field: &str, rule: &'static Rule) -> Self {
        Self { field: field.to_owned(), rule, argument: None, got: None }
    }

    pub(crate) fn with(field: &str, rule: &'static Rule, argument: &impl ToString) -> Self {
        Self { argument: Some(argument.to_string()), ..Self::new(field, rule) }
    }

    pub(crate) fn got(mut self, value: &Value) -> Self {
        self.got = Some(value.clone());
        self
    }

    pub fn violation(&self) -> Violation {
        let violation =
            Violation::new(self.rule.code, &*self.field, fill(self.rule.expected, self.argument.as_deref()));
        match &self.got {
            Some(got) => violation.got(got),
            None => violation,
        }
    }
}

/// Everything wrong with one body.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problems(pub Vec<FieldProblem>);

impl Problems {
    /// One refusal that names every problem.
    pub fn into_refusal(self) -> Refusal {
        crate::guard::rejection(self.0.iter().map(FieldProblem::violation).collect(), None)
    }
}

impl From<Problems> for Refusal {
    fn from(problems: Problems) -> Self {
        problems.into_refusal()
    }
}

/// What PocketBase's `data` says about one field.
#[derive(Debug, Clone, PartialEq)]
pub struct PbProblem {
    pub code: &'static str,
    pub message: String,
    pub params: Option<Value>,
}

/// A violation in PocketBase's words: its code, message and params.
pub fn pb_code(violation: &Violation) -> PbProblem {
    let expected = violation.expected.as_deref().unwrap_or_default();
    let mut fitting = ALL.iter().filter(|rule| rule.code == violation.code);
    let found = fitting.find_map(|rule| read(rule.expected, expected).map(|argument| (rule, argument)));
    let Some((rule, argument)) = found else {
        // The guard's number is PocketBase's, where that refuses at all.
        let message =
            if violation.code == Code::InvalidNumber { NOT_A_NUMBER.message.to_owned() } else { sentence(expected) };
        return PbProblem { code: code_of(violation.code), message, params: None };
    };
    let value = match rule.param {
        Some(Param::Got(_)) => json!(violation.got.as_ref().map(coerce::text).unwrap_or_default()),
        Some(Param::Names(_)) => names(violation.got.as_ref()),
        Some(Param::Number(_) | Param::Length(_)) => argument.parse().map_or(json!(argument), number_value),
        Some(Param::Date(_)) => json!(go_date(argument, "T", "Z")),
        Some(Param::Text(_) | Param::FileSize) | None => json!(argument),
    };
    let text = match (rule.param, &value) {
        (Some(Param::Got(_)), Value::String(text)) => text.clone(),
        (Some(Param::Names(_)), Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        (Some(Param::Date(_)), _) => go_date(argument, " ", " +0000 UTC"),
        _ => argument.to_owned(),
    };
    let params = rule.param.map(|param| match param {
        Param::Number(name) | Param::Text(name) | Param::Date(name) | Param::Got(name) | Param::Names(name) => {
            json!({ name: value })
        }
        Param::Length(least) => json!({ "max": value, "min": least }),
        Param::FileSize => {
            let (file, most) = argument.rsplit_once(FILE_SIZE_WORDS).unwrap_or((argument, ""));
            json!({"file": file, "maxSize": most.parse().map_or(json!(most), number_value)})
        }
    });
    PbProblem { code: rule.pb, message: full_stop(&fill(rule.message.trim_end_matches('.'), Some(&text))), params }
}

/// PocketBase's whole `data` member; the first violation of a field speaks for it. It says nothing about parameters.
pub fn pb_data(violations: &[Violation]) -> Map<String, Value> {
    let mut data = Map::new();
    let about_fields =
        violations.iter().filter(|found| !matches!(found.code, Code::InvalidParameter | Code::InvalidFilter));
    for violation in about_fields {
        let PbProblem { code, message, params } = pb_code(violation);
        let mut entry = json!({ "code": code, "message": message });
        if let (Some(members), Some(params)) = (entry.as_object_mut(), params) {
            members.insert("params".to_owned(), params);
        }
        // Of an item of a list: `subscriptions.3`.
        let item = violation.field.rsplit_once('.').filter(|(_, item)| item.parse::<usize>().is_ok());
        match item {
            Some((list, item)) => {
                if let Some(items) = data.entry(list).or_insert_with(|| json!({})).as_object_mut() {
                    items.entry(item).or_insert(entry);
                }
            }
            None => {
                data.entry(violation.field.clone()).or_insert(entry);
            }
        }
    }
    data
}

/// Stand between a file's name and the limit it broke.
pub(crate) const FILE_SIZE_WORDS: &str = " - the maximum allowed file size is ";

fn names(got: Option<&Value>) -> Value {
    match got {
        Some(Value::Array(names)) => Value::Array(names.clone()),
        Some(other) => json!([other]),
        None => json!([]),
    }
}

/// A stored date `YYYY-MM-DD HH:MM:SS.mmmZ` in another layout, without zeros at the end of its fraction.
fn go_date(stored: &str, middle: &str, end: &str) -> String {
    let Some((day, time)) = stored.trim_end_matches('Z').split_once(' ') else { return stored.to_owned() };
    let time = match time.split_once('.') {
        Some((whole, fraction)) => {
            let fraction = fraction.trim_end_matches('0');
            if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
        }
        None => time.to_owned(),
    };
    format!("{day}{middle}{time}{end}")
}

/// PocketBase ends every message with a full stop, unless it ends like a sentence already.
fn full_stop(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '?', '!']) { text.to_owned() } else { format!("{text}.") }
}

fn fill(template: &str, argument: Option<&str>) -> String {
    template.replacen("{}", argument.unwrap_or_default(), 1)
}

/// The argument with which a template gives this text; empty for a template without one.
fn read<'a>(template: &str, text: &'a str) -> Option<&'a str> {
    match template.split_once("{}") {
        Some((before, after)) => text.strip_prefix(before)?.strip_suffix(after),
        None => (template == text).then_some(""),
    }
}

/// PocketBase has no word for most of what the guard refuses; clients show the message and look at the field.
fn code_of(code: Code) -> &'static str {
    match code {
        Code::UnknownField => "validation_unknown_field",
        Code::ReadOnlyField => "validation_read_only_field",
        Code::MissingRequired => "validation_required",
        Code::InvalidDate => "validation_invalid_date",
        Code::InvalidDaykey => "validation_invalid_daykey",
        Code::InvalidString => "validation_invalid_string",
        Code::InvalidNumber => "validation_not_a_number",
        Code::InvalidBoolean => "validation_invalid_boolean",
        Code::InvalidRef => "validation_missing_rel_records",
        Code::NotUnique => "validation_not_unique",
        Code::NotStored => "validation_not_stored",
        _ => "validation_invalid_value",
    }
}

fn sentence(expected: &str) -> String {
    if expected.is_empty() { "Invalid value.".to_owned() } else { format!("Expects {expected}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_read_back_from_its_violation() {
        for rule in ALL {
            let argument =
                matches!(rule.param, Some(Param::Number(_) | Param::Length(_) | Param::Text(_) | Param::Date(_)))
                    .then(|| "12".to_owned());
            let argument = argument.or_else(|| rule.expected.contains("{}").then(|| "a, b".to_owned()));
            let problem = FieldProblem { field: "f".to_owned(), rule, argument, got: Some(json!("zzz")) };
            let read = pb_code(&problem.violation());
            assert_eq!(read.code, rule.pb, "{rule:?}");
            let start = rule.message.split("{}").next().unwrap();
            assert!(read.message.starts_with(start), "{rule:?}");
            assert_eq!(read.params.is_some(), rule.param.is_some(), "{rule:?}");
        }
    }

    #[test]
    fn params_have_pocketbases_names_and_types() {
        let problem = FieldProblem::with("n", &MIN_NUMBER, &-100);
        assert_eq!(
            Value::Object(pb_data(&[problem.violation()])),
            json!({"n": {
                "code": "validation_min_number_constraint",
                "message": "Must be greater or equal than -100.",
                "params": {"min": -100},
            }})
        );
        let problem = FieldProblem::with("s", &NOT_AN_OPTION, &"a, b").got(&json!("zzz"));
        assert_eq!(
            Value::Object(pb_data(&[problem.violation()])),
            json!({"s": {"code": "validation_invalid_value", "message": "Invalid value zzz.", "params": {"value": "zzz"}}})
        );
    }

    #[test]
    fn a_date_in_a_message_reads_as_go_writes_it() {
        for (stored, message, threshold) in [
            ("2024-01-10 08:30:00.000Z", "Must be no less than 2024-01-10 08:30:00 +0000 UTC.", "2024-01-10T08:30:00Z"),
            (
                "2024-01-10 08:30:00.120Z",
                "Must be no less than 2024-01-10 08:30:00.12 +0000 UTC.",
                "2024-01-10T08:30:00.12Z",
            ),
        ] {
            let read = pb_code(&FieldProblem::with("d", &MIN_DATE, &stored).violation());
            assert_eq!((read.message.as_str(), read.params), (message, Some(json!({ "threshold": threshold }))));
        }
    }

    #[test]
    fn a_message_ends_with_one_full_stop_whatever_was_sent() {
        for (sent, message) in [
            ("zzz", "Invalid value zzz."),
            ("5.", "Invalid value 5."),
            ("5 ", "Invalid value 5."),
            (" ", "Invalid value."),
            ("a?", "Invalid value a?"),
        ] {
            let read = pb_code(&FieldProblem::with("s", &NOT_AN_OPTION, &"a, b").got(&json!(sent)).violation());
            assert_eq!(read.message, message);
        }
    }

    #[test]
    fn a_guard_violation_has_a_message_that_says_what_is_expected() {
        let read = pb_code(&Violation::new(Code::UnknownField, "bogus", "one of: title"));
        assert_eq!((read.code, read.message.as_str()), ("validation_unknown_field", "Expects one of: title."));
    }
}
