//! The `fields` parameter: which members of a record an answer shows.

use inn_protocol::{Code, Refusal, Violation};
use serde_json::Value;

use super::excerpt::Excerpt;

/// Most paths in one specification.
const MAX_PATHS: usize = 200;

/// Reads `spec` and picks. See [`FieldPick`].
pub fn pick_fields(value: &mut Value, spec: &str) -> Result<(), Refusal> {
    FieldPick::parse(spec)?.apply(value);
    Ok(())
}

/// A read specification like `*,expand.list.title,body:excerpt(80,true)`: dots for nesting, `*` for everything of a
/// level, unknown names ignored. An empty one picks everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPick {
    paths: Vec<Path>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Path {
    parts: Vec<String>,
    excerpt: Option<Excerpt>,
}

impl FieldPick {
    /// Refused with `invalid_parameter` for a modifier that is not `:excerpt(max,withEllipsis?)`.
    pub fn parse(spec: &str) -> Result<Self, Refusal> {
        let mut paths: Vec<Path> = Vec::new();
        for item in split(spec) {
            let item = item.trim();
            if item.is_empty() {
                continue;
            }
            let (name, modifier) = item.split_once(':').map_or((item, None), |(name, rest)| (name, Some(rest)));
            let excerpt = modifier.map(|text| Excerpt::parse(text).ok_or_else(|| refused(item))).transpose()?;
            let parts: Vec<String> = name.split('.').map(str::to_owned).collect();
            // The last of a repeated path counts.
            paths.retain(|path| path.parts != parts);
            paths.push(Path { parts, excerpt });
            if paths.len() > MAX_PATHS {
                let limit = format!("at most {MAX_PATHS} fields");
                let violation = Violation::new(Code::InvalidParameter, "fields", limit);
                return Err(Refusal::violations("The fields parameter is too long.", vec![violation]));
            }
        }
        Ok(Self { paths })
    }

    /// Drops every member that was not asked for. Lists are picked item by item.
    pub fn apply(&self, value: &mut Value) {
        if !self.paths.is_empty() {
            let paths: Vec<(&[String], Option<&Excerpt>)> =
                self.paths.iter().map(|path| (path.parts.as_slice(), path.excerpt.as_ref())).collect();
            pick(value, &paths);
        }
    }
}

type Wanted<'a> = (&'a [String], Option<&'a Excerpt>);

fn pick(value: &mut Value, paths: &[Wanted<'_>]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| pick(item, paths)),
        Value::Object(members) => {
            let everything = paths.iter().find(|(parts, _)| matches!(parts, [only] if only == "*"));
            members.retain(|key, member| {
                let below: Vec<Wanted<'_>> = paths
                    .iter()
                    .filter_map(|(parts, excerpt)| {
                        let (first, rest) = parts.split_first()?;
                        (first == key).then_some((rest, *excerpt))
                    })
                    .collect();
                if let Some((_, excerpt)) = below.iter().find(|(rest, _)| rest.is_empty()) {
                    shorten(member, *excerpt);
                    return true;
                }
                if !below.is_empty() {
                    pick(member, &below);
                    return true;
                }
                let Some((_, excerpt)) = everything else { return false };
                shorten(member, *excerpt);
                true
            });
        }
        _ => {}
    }
}

fn shorten(member: &mut Value, excerpt: Option<&Excerpt>) {
    if let Some(excerpt) = excerpt {
        *member = Value::String(excerpt.of(member));
    }
}

/// At commas outside parentheses.
fn split(spec: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    spec.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn refused(item: &str) -> Refusal {
    let violation = Violation::new(Code::InvalidParameter, "fields", "a field name, or name:excerpt(max,withEllipsis)")
        .got(&Value::String(item.to_owned()));
    Refusal::violations("The fields parameter cannot be read.", vec![violation])
}
