//! Rules made at random and rules as apps write them, asked by nobody, two users and a superuser.

use serde_json::{Value, json};

use super::ask::{Ask, Who};
use super::category::Category;
use super::dice::Dice;
use super::filter::Maker;
use super::paths::Voice;
use super::rows::{self, Row};
use super::schema::{self, Rules, id};
use super::suite::Case;

const CALLERS: &[Who] = &[Who::Nobody, Who::User(0), Who::User(1), Who::Superuser];
/// With rules made at random: more of them where more filters are asked for.
fn random() -> usize {
    usize::try_from(super::filters() / 166).expect("a small number").max(1)
}

/// As apps write them: list, view, create, update, delete.
#[rustfmt::skip]
const WRITTEN: &[[Option<&str>; 5]] = &[
    [Some("@request.auth.id != ''"), Some("@request.auth.id != ''"), Some("@request.auth.id != ''"), Some("@request.auth.id != ''"), Some("@request.auth.id != ''")],
    [Some("user = @request.auth.id"), Some("user = @request.auth.id"), Some("user = @request.auth.id"), Some("user = @request.auth.id"), Some("user = @request.auth.id")],
    [Some("afloat = true || user = @request.auth.id"), Some("afloat = true || user = @request.auth.id"), Some("@request.body.user = @request.auth.id"), Some("user = @request.auth.id && @request.body.user:changed = false"), None],
    [None, None, None, None, None],
    [Some(""), Some("user.crew.name = owner.name"), Some("@request.auth.crew.skills.name ?= 'red'"), Some("@request.body.tons:isset = false"), Some("@request.auth.verified = true")],
    [Some("@request.query.q = title"), Some("@request.headers.x_key = title"), Some("@request.body.gear:length > 1 && @request.body.gear:each != 'mast'"), Some("@request.body.title:lower != 'argo'"), Some("id ~ '0'")],
    [Some("owner.teams_via_members.lead.name ?= 'Ada'"), Some("@collection.visits.by ?= owner && @collection.visits.good ?= true"), Some("@request.body.owner.name = 'Ada'"), Some("owner.skills.name ?~ 'r'"), Some("marks:length > 0")],
    [Some("@request.auth.crew.name = owner.captain.name"), Some("@request.context = 'default' && @request.method = 'GET'"), Some("title != ''"), Some("title != @request.body.title"), Some("@request.method = 'DELETE'")],
    [Some("title != @request.query.q:isset"), Some("strftime('%Y', title) = ''"), Some("title < false"), Some("@request.body.marks:each = ''"), Some("tons = @request.auth.badge")],
    [Some("@request.auth.level = title"), Some("title ~ @request.auth.badge"), Some("tons = '10' || tons > rig"), Some("@request.body.gear:length = title || @request.body.gear:each ?= ''"), Some("@request.auth.badge:lower = user.badge")],
    [Some("@request.auth.id:isset = true"), Some("user.level = @request.auth.level"), Some("@request.body.tons:isset != title"), Some("@request.body.gear:length != ''"), Some("marks.weight > @request.auth.crew.grade")],
];

/// With nothing in them but fields of the record itself and who asks.
#[rustfmt::skip]
const PLAIN: &[[Option<&str>; 5]] = &[
    [Some(""), Some(""), Some(""), Some(""), Some("")],
    [None, None, None, None, None],
    [Some("@request.auth.id != ''"), Some("@request.auth.id != ''"), Some("@request.auth.id != ''"), Some("@request.auth.id != ''"), Some("@request.auth.id != ''")],
    [Some("user = @request.auth.id"), Some("user = @request.auth.id"), Some("user = @request.auth.id"), Some("user = @request.auth.id"), Some("user = @request.auth.id")],
    [Some("afloat = true || user = @request.auth.id"), Some("tons > 1"), Some("title != '' && user = @request.auth.id"), Some("afloat = true"), Some("@request.auth.id = user && tons < 5")],
    [Some("id = ''"), Some("title ~ 'A'"), Some("@request.auth.id = ''"), Some(""), None],
];

/// Which gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Plain,
    /// As written, and at random.
    All,
}

impl Set {
    fn written(self) -> &'static [[Option<&'static str>; 5]] {
        if self == Self::Plain { PLAIN } else { WRITTEN }
    }

    /// Collection names, which live as long as the tests.
    fn names(self) -> Vec<&'static str> {
        let count = self.written().len() + if self == Self::Plain { 0 } else { random() };
        (0..count).map(|index| &*Box::leak(format!("gate{index}").into_boxed_str())).collect()
    }

    pub(crate) fn gates(self, dice: &mut Dice) -> Vec<Value> {
        let written = self.written().iter().map(|rules| rules.map(|rule| rule.map(str::to_owned)));
        let mut all: Vec<Rules> = written.collect();
        while all.len() < self.names().len() {
            let mut rule = |voice: Voice| match dice.below(10) {
                0 => Some(String::new()),
                _ => Some(Maker { dice, collection: "gates", voice }.filter().to_string()),
            };
            let (list, view) = (rule(Voice::Rule), rule(Voice::Rule));
            all.push([list, view, rule(Voice::WriteRule), rule(Voice::WriteRule), rule(Voice::Rule)]);
        }
        all.into_iter().enumerate().map(|(index, rules)| schema::gate(index, rules)).collect()
    }

    pub(crate) fn rows(self) -> Vec<Row> {
        let mut all = Vec::new();
        for name in self.names() {
            for (index, row) in rows::gated().into_iter().enumerate() {
                all.push((name, ["g0", "g1", "g2", "g3", "g4", "g5"][index], row));
            }
        }
        all
    }

    /// The category of a case, which is another one behind plain gates.
    fn about(self, category: Category) -> Category {
        if self == Self::Plain { Category::PlainRules } else { category }
    }
}

fn dressed(ask: Ask, dice: &mut Dice) -> Ask {
    let ask = if dice.chance(30) { ask.with("q", dice.pick(&["Argo", "argo", "", "10", "ann"])) } else { ask };
    if dice.chance(30) { ask.header("x-key", dice.pick(&["Argo", "key", "10"])) } else { ask }
}

pub(crate) fn reads(set: Set, dice: &mut Dice) -> Vec<Case> {
    let mut cases = Vec::new();
    for name in set.names() {
        for who in CALLERS {
            let ask = dressed(Ask::list(*who, name).with("sort", "id"), dice);
            cases.push(Case::new(set.about(Category::Rules), ask.clone()));
            for short in ["g0", "g1", "g2", "g3", "g4", "g5", "gone"] {
                let ask = dressed(Ask::view(*who, name, &id(short)), dice);
                cases.push(Case::new(set.about(Category::Rules), ask));
            }
            if *who != Who::Superuser && set == Set::All {
                for _ in 0..4 {
                    let filter = Maker { dice, collection: "gates", voice: Voice::Visitor }.filter();
                    let ask = ask.filtered(&filter.to_string());
                    cases.push(Case { category: Category::RuleFilters, ask, filter: Some(filter) });
                }
            }
            let expand = Ask::view(*who, name, &id("g0")).with("expand", "user,owner,user.crew,marks");
            cases.push(Case::new(set.about(Category::Rules), expand));
        }
    }
    for who in CALLERS {
        for collection in ["users", "teams", "visits", "crews"] {
            cases.push(Case::new(set.about(Category::Rules), Ask::list(*who, collection).with("sort", "id")));
        }
        for short in ["ann", "ben"] {
            cases.push(Case::new(set.about(Category::Rules), Ask::view(*who, "users", &id(short))));
        }
        let filter = "email != ''";
        cases.push(Case::new(
            set.about(Category::Rules),
            Ask::list(*who, "users").with("filter", filter).with("sort", "id"),
        ));
    }
    cases
}

/// The same questions by agents of the users.
pub(crate) fn by_agents(cases: Vec<Case>) -> Vec<Case> {
    let by_agent = |mut case: Case| {
        let Who::User(index) = case.ask.who else { return None };
        case.ask.who = Who::AgentOf(index);
        case.category = Category::Agents;
        Some(case)
    };
    cases.into_iter().filter_map(by_agent).collect()
}

/// Bodies that the rules are asked about.
fn body(dice: &mut Dice) -> Value {
    let values = [
        ("title", json!("Argo")),
        ("title", json!("new")),
        ("title", json!("")),
        ("tons", json!(10)),
        ("tons", json!(7)),
        ("afloat", json!(true)),
        ("user", json!(id("ann"))),
        ("user", json!(id("ben"))),
        ("user", json!("")),
        ("owner", json!(id("c1"))),
        ("owner", json!(id("c3"))),
        ("gear", json!(["oar", "sail"])),
        ("gear", json!(["mast"])),
        ("gear", json!([])),
        ("marks", json!([id("f1")])),
        ("marks", json!([id("f2"), id("f3")])),
        ("log", json!({"a": 1})),
        ("tons+", json!(1)),
    ];
    let mut body = json!({});
    for _ in 0..dice.below(4) {
        let (key, value) = dice.of(&values);
        body[*key] = value.clone();
    }
    body
}

/// Of one row a story each, so that rules about stored values are asked before and after a change.
pub(crate) fn writes(set: Set, dice: &mut Dice) -> Vec<Vec<Case>> {
    let mut stories = Vec::new();
    for name in set.names() {
        for short in ["g0", "g1", "g2", "g3", "g4", "g5"] {
            let (who, then) = (*dice.of(CALLERS), *dice.of(CALLERS));
            let changed = dressed(Ask::update(who, name, &id(short), body(dice)), dice);
            let gone = dressed(Ask::delete(then, name, &id(short)), dice);
            stories.push(vec![
                Case::new(set.about(Category::RuleWrites), changed),
                Case::new(set.about(Category::RuleWrites), Ask::view(Who::Superuser, name, &id(short))),
                Case::new(set.about(Category::RuleWrites), gone),
                Case::new(set.about(Category::RuleWrites), Ask::view(Who::Superuser, name, &id(short))),
            ]);
        }
        for number in 0..8 {
            let who = CALLERS[number % 3];
            let id = id(&format!("n{number}x"));
            let mut body = body(dice);
            body.as_object_mut().expect("an object").remove("tons+");
            body["id"] = json!(id);
            stories.push(vec![
                Case::new(set.about(Category::CreateRules), dressed(Ask::create(who, name, body), dice)),
                Case::new(set.about(Category::CreateRules), Ask::view(Who::Superuser, name, &id)),
            ]);
        }
    }
    stories
}
