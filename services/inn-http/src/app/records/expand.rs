//! Relations filled in, up to six levels deep. One look per level and collection, whatever the number of records; what
//! the caller may not view is left out without an error, and a path that cannot be followed is as if not asked for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use inn_actors::Admitted;
use inn_ports::{ReferrersPlan, Store, ViewPlan};
use inn_protocol::call::Action;
use inn_protocol::model::{Collection, Model};
use inn_protocol::{Code, Refusal};
use inn_rules::filter::Expr;
use inn_rules::query::{ExpandStep, Link, MAX_BACK_RELATED, MAX_EXPAND_LEVELS, expand_paths, expand_step};
use serde_json::{Map, Value};

use super::dress::shown;
use super::rule;

type Record = Map<String, Value>;

/// Ids per look; fewer until it is known how heavy such records are.
const PAGE: usize = 1000;
const FIRST_PAGE: usize = 200;
/// Records up to this many bytes on average are fetched by whole pages.
const LIGHT: usize = 4 << 10;
/// References one look along a back relation may find.
const MAX_PAIRS: u32 = 50_000;
/// Related records of one answer, in approximate bytes: those that are fetched, and those that stand in it, each as often
/// as it does.
const MAX_WEIGHT: usize = 64 << 20;

pub(super) async fn expand(
    store: &dyn Store,
    admitted: &Admitted,
    collection: &Collection,
    records: Vec<Record>,
    spec: &str,
) -> Result<Vec<Record>, Refusal> {
    let app = Arc::clone(admitted.app()?);
    let mut look =
        Look { store, admitted, model: &app.definition.model, rules: HashMap::new(), seen: HashMap::new(), weight: 0 };
    let mut tree = Tree::default();
    for path in expand_paths(spec) {
        let start: HashMap<String, &Record> = records.iter().filter_map(|record| Some((id(record)?, record))).collect();
        if let Some(levels) = look.follow(collection, start, &path).await? {
            tree.add(levels);
        }
    }
    if tree.branches.is_empty() {
        return Ok(records);
    }
    let mut weight = 0;
    records.into_iter().map(|record| tree.hang(record, &look.seen, &mut weight)).collect()
}

/// What has been looked up for one answer.
struct Look<'a> {
    store: &'a dyn Store,
    admitted: &'a Admitted,
    model: &'a Model,
    /// The view rule of each collection that was asked about; `None` where the caller may view nothing.
    rules: HashMap<String, Option<Expr>>,
    seen: Seen,
    /// Of what was fetched.
    weight: usize,
}

/// Records by collection name and id; `None` for one that is not there or not for this caller.
type Seen = HashMap<String, HashMap<String, Option<Record>>>;

/// One level of a path: from each record to those it leads to.
struct Level {
    name: String,
    target: String,
    multiple: bool,
    links: HashMap<String, Vec<String>>,
}

impl<'a> Look<'a> {
    /// `None` when the path cannot be followed. A level without records ends it, whatever would come after.
    async fn follow(
        &mut self,
        collection: &'a Collection,
        start: HashMap<String, &Record>,
        path: &[String],
    ) -> Result<Option<Vec<Level>>, Refusal> {
        let mut levels: Vec<Level> = Vec::new();
        let (mut standing, mut at) = (start.keys().cloned().collect::<Vec<_>>(), collection);
        for name in path.iter().take(MAX_EXPAND_LEVELS) {
            if standing.is_empty() {
                break;
            }
            let Some(step) = expand_step(name, at, self.model, self.admitted.permit.see_hidden) else {
                return Ok(None);
            };
            let target = &step.target.name;
            let Some(rule) = self.rule(target) else { return Ok(None) };
            let mut links = match step.link {
                Link::Forward(field) if levels.is_empty() => {
                    forward(&standing, |id| start.get(id).copied(), &field.name)
                }
                Link::Forward(field) => {
                    let seen = self.seen.get(&at.name);
                    forward(&standing, |id| seen.and_then(|seen| seen.get(id)?.as_ref()), &field.name)
                }
                Link::Back(field) => self.back(&step, &field.name, &standing).await?,
            };
            self.fetch(step.target, rule, links.values().flatten()).await?;
            let found = self.seen.get(target);
            let is_found = |id: &String| found.and_then(|found| found.get(id)).is_some_and(Option::is_some);
            let mut next = HashSet::new();
            for ids in links.values_mut() {
                ids.retain(is_found);
                next.extend(ids.iter().cloned());
            }
            standing = next.into_iter().collect();
            at = step.target;
            levels.push(Level { name: name.clone(), target: target.clone(), multiple: step.multiple, links });
        }
        Ok(Some(levels))
    }

    /// The rule over what the caller may view of a collection.
    fn rule(&mut self, entity: &str) -> Option<Expr> {
        let admitted = self.admitted;
        let view = || admitted.also(&Action::ViewRecord { entity: entity.to_owned(), id: String::new() });
        self.rules.entry(entity.to_owned()).or_insert_with(|| view().ok().map(|permit| rule(&permit))).clone()
    }

    async fn back(
        &self,
        step: &ExpandStep<'_>,
        field: &str,
        ids: &[String],
    ) -> Result<HashMap<String, Vec<String>>, Refusal> {
        let plan = ReferrersPlan {
            app: Arc::clone(self.admitted.app()?),
            entity: step.target.name.clone(),
            field: field.to_owned(),
            ids: ids.to_vec(),
            most: MAX_BACK_RELATED,
            most_pairs: MAX_PAIRS,
        };
        let mut links: HashMap<String, Vec<String>> = HashMap::new();
        for referrer in self.store.referrers(&plan).await? {
            links.entry(referrer.of).or_default().push(referrer.id);
        }
        Ok(links)
    }

    /// Looks at those that nobody has looked at yet.
    async fn fetch(
        &mut self,
        target: &Collection,
        rule: Expr,
        ids: impl Iterator<Item = &String>,
    ) -> Result<(), Refusal> {
        let seen = self.seen.entry(target.name.clone()).or_default();
        let mut wanted: Vec<String> = ids.filter(|id| !seen.contains_key(*id)).cloned().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let (mut rest, mut size) = (wanted.as_slice(), FIRST_PAGE);
        while !rest.is_empty() {
            let (page, next) = rest.split_at(size.min(rest.len()));
            rest = next;
            let before = self.weight;
            seen.extend(page.iter().map(|id| (id.clone(), None)));
            let app = Arc::clone(self.admitted.app()?);
            let plan = ViewPlan { app, entity: target.name.clone(), ids: page.to_vec(), rule: rule.clone() };
            for row in self.store.view(&plan).await? {
                if let Some(id) = id(&row) {
                    let record = shown(self.admitted, target, &row);
                    self.weight += weigh(&record);
                    seen.insert(id, Some(record));
                }
            }
            if self.weight > MAX_WEIGHT {
                return Err(too_much());
            }
            size = if self.weight - before <= LIGHT * page.len() { PAGE } else { FIRST_PAGE };
        }
        Ok(())
    }
}

fn forward<'r>(
    standing: &[String],
    record: impl Fn(&str) -> Option<&'r Record>,
    field: &str,
) -> HashMap<String, Vec<String>> {
    standing.iter().map(|id| (id.clone(), ids_of(record(id).and_then(|record| record.get(field))))).collect()
}

fn ids_of(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(id)) if !id.is_empty() => vec![id.clone()],
        Some(Value::Array(ids)) => ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

fn id(record: &Record) -> Option<String> {
    record.get("id")?.as_str().map(str::to_owned)
}

/// All paths that could be followed, put together: names that begin alike are one branch.
#[derive(Default)]
struct Tree {
    branches: BTreeMap<String, Branch>,
}

struct Branch {
    target: String,
    multiple: bool,
    links: HashMap<String, Vec<String>>,
    below: Tree,
}

impl Tree {
    fn add(&mut self, levels: Vec<Level>) {
        let mut tree = self;
        for Level { name, target, multiple, links } in levels {
            let start = || Branch { target, multiple, links, below: Self::default() };
            tree = &mut tree.branches.entry(name).or_insert_with(start).below;
        }
    }

    /// The record with its related ones hung below `expand`.
    fn hang(&self, mut record: Record, seen: &Seen, weight: &mut usize) -> Result<Record, Refusal> {
        let Some(own) = id(&record).filter(|_| !self.branches.is_empty()) else { return Ok(record) };
        let mut expanded = Map::new();
        for (name, branch) in &self.branches {
            let (Some(ids), Some(seen_there)) = (branch.links.get(&own), seen.get(&branch.target)) else { continue };
            let mut related = Vec::new();
            for found in ids.iter().filter_map(|id| seen_there.get(id)?.as_ref()) {
                *weight += weigh(found);
                if *weight > MAX_WEIGHT {
                    return Err(too_much());
                }
                related.push(Value::Object(branch.below.hang(found.clone(), seen, weight)?));
                if !branch.multiple {
                    break;
                }
            }
            let value = if branch.multiple { Some(Value::Array(related)) } else { related.pop() };
            let value = value.filter(|value| value.as_array().is_none_or(|list| !list.is_empty()));
            expanded.extend(value.map(|value| (name.clone(), value)));
        }
        record.insert("expand".to_owned(), Value::Object(expanded));
        Ok(record)
    }
}

/// About the bytes of the record's JSON.
fn weigh(record: &Record) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => 2 + items.iter().map(|item| of(item) + 1).sum::<usize>(),
            Value::Object(members) => weigh(members),
        }
    }
    2 + record.iter().map(|(key, value)| key.len() + 4 + of(value)).sum::<usize>()
}

fn too_much() -> Refusal {
    let limit = MAX_WEIGHT >> 20;
    Refusal::new(
        Code::TooLarge,
        format!(
            "The expanded records would make an answer of more than {limit} MiB. Ask for a smaller page or fewer levels."
        ),
    )
}
