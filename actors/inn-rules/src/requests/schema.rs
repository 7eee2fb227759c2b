//! JSON Schema of payloads and results. Both the schema (an app's) and the instance (a caller's) may be hostile, so
//! the schema's size is bounded with its references unfolded, references stay inside the document and never loop,
//! and patterns run in linear time.

use inn_protocol::{Code, Refusal, Violation};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Longest schema, in bytes of JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Longest payload or result, in bytes of JSON.
pub const MAX_INSTANCE_BYTES: usize = 256 * 1024;
/// Most values in a schema after every `$ref` is unfolded.
const MAX_SCHEMA_VALUES: usize = 10_000;
const MAX_DEPTH: usize = 64;
/// Compiled size of one pattern.
const MAX_PATTERN_BYTES: usize = 256 * 1024;
/// Most violations in one answer.
const MAX_VIOLATIONS: usize = 50;

/// Checks an instance. `what` is `payload` or `result`: a result is refused with `invalid_result`, anything else with
/// `invalid_parameter`. Each violation names the place by JSON Pointer (RFC 6901) below `what`.
pub fn check_schema(schema: &Value, instance: &Value, what: &str) -> Result<(), Refusal> {
    let code = if what == "result" { Code::InvalidResult } else { Code::InvalidParameter };
    if instance.to_string().len() > MAX_INSTANCE_BYTES {
        return Err(Refusal::new(Code::TooLarge, format!("The {what} is larger than {MAX_INSTANCE_BYTES} bytes.")));
    }
    let validator = compile(schema)?;
    let violations: Vec<Violation> = validator
        .iter_errors(instance)
        .take(MAX_VIOLATIONS)
        .map(|error| {
            let place = format!("{what}{}", error.instance_path());
            // The masked form: the answer names the rule and never echoes a large value.
            Violation::new(code, place, error.masked().to_string()).got(error.instance())
        })
        .collect();
    if violations.is_empty() {
        Ok(())
    } else {
        Err(Refusal::violations(format!("The {what} does not fit the schema the app declares for it."), violations))
    }
}

/// Can this schema be used at all? Asked when an app is deployed.
pub fn check_is_schema(schema: &Value) -> Result<(), Refusal> {
    compile(schema).map(|_| ())
}

fn compile(schema: &Value) -> Result<Validator, Refusal> {
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(unusable(&format!("it is larger than {MAX_SCHEMA_BYTES} bytes")));
    }
    let mut budget = MAX_SCHEMA_VALUES;
    unfold(schema, schema, Part::Schema, &mut Vec::new(), 0, &mut budget)?;
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES))
        .offline()
        .build(schema)
        .map_err(|error| unusable(&error.masked().to_string()))
}

fn unusable(why: &str) -> Refusal {
    Refusal::new(Code::InvalidBundle, format!("A schema the app declares cannot be used: {why}."))
}

/// What a value inside a schema is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Schema,
    /// Names of the app's choice → schemas.
    Named,
    /// Instance values: nothing in them is a keyword.
    Data,
}

impl Part {
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Data, _) | (Self::Schema, "const" | "enum" | "default" | "examples") => Self::Data,
            (Self::Schema, "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas") => {
                Self::Named
            }
            _ => Self::Schema,
        }
    }
}

/// Walks the schema as a validator would, following references, and refuses what would make it run long: loops,
/// references out of the document, and references that multiply.
fn unfold<'a>(
    root: &'a Value,
    value: &'a Value,
    part: Part,
    followed: &mut Vec<&'a str>,
    depth: usize,
    budget: &mut usize,
) -> Result<(), Refusal> {
    *budget = budget.checked_sub(1).ok_or_else(|| unusable("it is too large once its references are unfolded"))?;
    if depth > MAX_DEPTH {
        return Err(unusable(&format!("it is nested deeper than {MAX_DEPTH} levels")));
    }
    let members = match value {
        Value::Array(items) => {
            return items.iter().try_for_each(|item| unfold(root, item, part, followed, depth + 1, budget));
        }
        Value::Object(members) => members,
        _ => return Ok(()),
    };
    for (key, value) in members {
        match (part, key.as_str()) {
            (Part::Schema, "$ref") => {
                let target = value.as_str().unwrap_or_default();
                let pointer = target.strip_prefix('#').filter(|p| p.is_empty() || p.starts_with('/'));
                let found = pointer.and_then(|pointer| root.pointer(pointer));
                let found =
                    found.ok_or_else(|| unusable(&format!("`$ref` {value} does not point into this schema")))?;
                if followed.contains(&target) {
                    return Err(unusable(&format!("`$ref` {value} leads back to itself")));
                }
                followed.push(target);
                unfold(root, found, Part::Schema, followed, depth + 1, budget)?;
                followed.pop();
            }
            (Part::Schema, "$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor") => {
                return Err(unusable(&format!("`{key}` is not supported")));
            }
            (Part::Schema, "$id" | "id") if depth > 0 => {
                return Err(unusable(&format!("`{key}` is only supported at the top")));
            }
            (part, key) => unfold(root, value, part.below(key), followed, depth + 1, budget)?,
        }
    }
    Ok(())
}
