//! What a filter or a sort can name, collection by collection.

use super::category::Category::{
    self, BackRelationFilter, CollectionFilter, JsonFilter, ManyFilter, ModifierFilter, PlainFilter, RelationFilter,
    RequestFilter,
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) category: Category,
}

/// What is usually compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Length,
    Distance,
    Bool,
    Date,
    List,
    Json,
    Id,
    User,
}

pub(crate) const KINDS: &[Kind] = &[Text, Number, Length, Bool, Date, List, Json, Id];

use Kind::{Bool, Date, Id, Json, Length, List, Number, Text, User};

impl Kind {
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Number | Self::Length | Self::Distance | Self::Bool)
    }

    pub(crate) fn numbers(self) -> &'static [&'static str] {
        match self {
            Self::Length => &["0", "1", "2", "3", "-1", "1.5"],
            Self::Distance => &["0", "50", "100.5", "1000", "20000", "-1"],
            Self::Bool => &["0", "1", "true", "false", "1.0", "2"],
            _ => &[
                "0",
                "1",
                "2",
                "3",
                "5",
                "9.5",
                "10",
                "-5",
                "-0.5",
                "0.1",
                "123",
                "123.45",
                "100000000000000000000",
                "-0",
                "0.0000001",
                "1234567.891",
                "9007199254740991",
                "-1000000000000000",
                "-.5",
                "1.50",
                "007",
            ],
        }
    }

    pub(crate) fn texts(self) -> &'static [&'static str] {
        match self {
            Self::Number | Self::Length | Self::Distance => {
                &["0", "1", "10", "-5", " 10 ", "1e1", "0x10", "abc", "", "123.45", "9.5"]
            }
            Self::Bool => &["true", "1", "0", "false", ""],
            Self::Date => &[
                "2024-03-05 07:08:09.123Z",
                "2024-03-05",
                "2024",
                "2024-03-05 00:00:00.000Z",
                "",
                "2023-12-31 23:59:59.999Z",
                "03",
                "2024-03-05T07:08:09Z",
                "2024-02-29 12:00:00.000Z",
                "9",
                "1709622489",
            ],
            Self::List => &[
                "oar",
                "oars",
                "sail",
                "[]",
                "",
                "[\"oar\",\"sail\"]",
                "mast",
                "\",\"",
                "f1",
                "f10000000000000",
                "red",
                "%\"oar\"%",
            ],
            Self::Json => {
                &["x", "text", "1", "10", "true", "null", "", "[]", "{}", "{\"c\":\"x\"}", "[3,1,2]", "12", "two"]
            }
            Self::User => &["", "", "ann000000000000", "ann000000000000", "ben000000000000", "zzz"],
            Self::Id => {
                &["", "c10000000000000", "c20000000000000", "s10000000000000", "f10000000000000", "zzz", "s1", "c5"]
            }
            Self::Text => &[
                "Argo",
                "argo",
                "ARGO",
                "",
                "a",
                "A",
                "o",
                "10",
                "10.0",
                "9",
                "100%",
                "%",
                "_",
                "a_b",
                "a%",
                "%o",
                "it's",
                "\"",
                "\\",
                "ho\"",
                "\u{c4}gir",
                "\u{e4}",
                "true",
                "null",
                " lead",
                " ",
                "red",
                "Red",
                "ada",
                "Ada",
                "first",
                "second",
                "north",
                "A1",
                "b\nc",
                "<i>&",
                "GET",
                "default",
                "ann",
                "ben",
                "Ben",
                "users",
                "key",
                "\u{1f6a2}",
                "\\%",
                "z",
                "Zz",
                "-5",
            ],
        }
    }
}

type Row = (&'static str, Kind, Category);

#[rustfmt::skip]
const SHIPS: &[Row] = &[
    ("id", Id, PlainFilter), ("title", Text, PlainFilter), ("code", Text, PlainFilter), ("tons", Number, PlainFilter),
    ("berths", Number, PlainFilter), ("afloat", Bool, PlainFilter), ("launched", Date, PlainFilter), ("rig", Text, PlainFilter),
    ("gear", List, PlainFilter), ("owner", Id, PlainFilter), ("marks", List, PlainFilter), ("site", Text, PlainFilter),
    ("mail", Text, PlainFilter), ("notes", Text, PlainFilter),
    ("log", Json, JsonFilter), ("log.a", Json, JsonFilter), ("log.b.c", Json, JsonFilter), ("log.list.0", Json, JsonFilter),
    ("log.a.0.b", Json, JsonFilter), ("log.1", Json, JsonFilter), ("log.none", Json, JsonFilter), ("berth", Json, JsonFilter),
    ("berth.lon", Number, JsonFilter), ("berth.lat", Number, JsonFilter),
    ("gear:each", List, ModifierFilter), ("gear:length", Length, ModifierFilter), ("marks:each", List, ModifierFilter),
    ("marks:length", Length, ModifierFilter), ("rig:length", Length, ModifierFilter), ("rig:each", Text, ModifierFilter),
    ("owner:length", Length, ModifierFilter), ("owner:each", Id, ModifierFilter), ("title:lower", Text, ModifierFilter),
    ("tons:lower", Text, ModifierFilter), ("log:lower", Json, ModifierFilter), ("gear:lower", List, ModifierFilter),
    ("title:length", Text, ModifierFilter), ("log:each", Json, ModifierFilter), ("afloat:isset", Bool, ModifierFilter),
    ("owner.name", Text, RelationFilter), ("owner.grade", Number, RelationFilter), ("owner.id", Id, RelationFilter),
    ("owner.captain", Id, RelationFilter), ("owner.captain.name", Text, RelationFilter), ("owner.name:lower", Text, RelationFilter),
    ("owner.captain.captain.grade", Number, RelationFilter), ("owner.captain.captain.captain.captain.name", Text, RelationFilter),
    ("owner.skills", List, RelationFilter), ("owner.skills:length", Length, RelationFilter),
    ("marks.name", Text, ManyFilter), ("marks.weight", Number, ManyFilter), ("marks.id", Id, ManyFilter),
    ("owner.skills.name", Text, ManyFilter), ("owner.skills:each", Id, ManyFilter), ("owner.captain.skills.weight", Number, ManyFilter),
    ("marks.name:lower", Text, ManyFilter),
    ("visits_via_ship.note", Text, BackRelationFilter), ("visits_via_ship.good", Bool, BackRelationFilter),
    ("visits_via_ship.stars", Number, BackRelationFilter), ("visits_via_ship.id", Id, BackRelationFilter),
    ("visits_via_ship.by", Id, BackRelationFilter), ("visits_via_ship.by.name", Text, BackRelationFilter),
    ("visits_via_ship.by.skills.name", Text, BackRelationFilter), ("papers_via_ship.serial", Text, BackRelationFilter),
    ("papers_via_ship.id", Id, BackRelationFilter), ("owner.teams_via_lead.label", Text, BackRelationFilter),
    ("owner.teams_via_members.label", Text, BackRelationFilter), ("owner.crews_via_captain.grade", Number, BackRelationFilter),
    ("marks.crews_via_skills.name", Text, BackRelationFilter), ("visits_via_ship.by.teams_via_members.members:length", Length, BackRelationFilter),
];

#[rustfmt::skip]
const CREWS: &[Row] = &[
    ("id", Id, PlainFilter), ("name", Text, PlainFilter), ("grade", Number, PlainFilter), ("captain", Id, PlainFilter),
    ("skills", List, PlainFilter), ("name:lower", Text, ModifierFilter), ("skills:each", List, ModifierFilter),
    ("skills:length", Length, ModifierFilter), ("captain.name", Text, RelationFilter), ("captain.captain.grade", Number, RelationFilter),
    ("captain.captain", Id, RelationFilter), ("skills.name", Text, ManyFilter), ("skills.weight", Number, ManyFilter),
    ("captain.skills.name", Text, ManyFilter), ("crews_via_captain.name", Text, BackRelationFilter),
    ("crews_via_captain.grade", Number, BackRelationFilter), ("ships_via_owner.title", Text, BackRelationFilter),
    ("ships_via_owner.tons", Number, BackRelationFilter), ("ships_via_owner.gear:each", List, BackRelationFilter),
    ("ships_via_owner.marks.name", Text, BackRelationFilter), ("teams_via_members.label", Text, BackRelationFilter),
    ("teams_via_lead.members", List, BackRelationFilter), ("visits_via_by.ship.title", Text, BackRelationFilter),
    ("visits_via_by.ship.papers_via_ship.serial", Text, BackRelationFilter),
];

#[rustfmt::skip]
const VISITS: &[Row] = &[
    ("id", Id, PlainFilter), ("ship", Id, PlainFilter), ("note", Text, PlainFilter), ("good", Bool, PlainFilter),
    ("by", Id, PlainFilter), ("stars", Number, PlainFilter), ("note:lower", Text, ModifierFilter), ("ship:length", Length, ModifierFilter),
    ("ship.title", Text, RelationFilter), ("ship.tons", Number, RelationFilter), ("ship.log.a", Json, RelationFilter),
    ("ship.owner.name", Text, RelationFilter), ("by.captain.name", Text, RelationFilter), ("ship.marks.name", Text, ManyFilter),
    ("ship.gear:each", List, ManyFilter), ("by.skills.weight", Number, ManyFilter), ("ship.papers_via_ship.serial", Text, BackRelationFilter),
    ("ship.visits_via_ship.stars", Number, BackRelationFilter), ("by.teams_via_members.label", Text, BackRelationFilter),
];

#[rustfmt::skip]
const FLAGS: &[Row] = &[
    ("id", Id, PlainFilter), ("name", Text, PlainFilter), ("weight", Number, PlainFilter), ("name:lower", Text, ModifierFilter),
    ("ships_via_marks.title", Text, BackRelationFilter), ("ships_via_marks.tons", Number, BackRelationFilter),
    ("crews_via_skills.name", Text, BackRelationFilter), ("crews_via_skills.captain.name", Text, BackRelationFilter),
    ("ships_via_marks.owner.skills.name", Text, BackRelationFilter), ("crews_via_skills.id", Id, BackRelationFilter),
];

#[rustfmt::skip]
const TEAMS: &[Row] = &[
    ("id", Id, PlainFilter), ("label", Text, PlainFilter), ("members", List, PlainFilter), ("lead", Id, PlainFilter),
    ("members:length", Length, ModifierFilter), ("members:each", List, ModifierFilter), ("lead.name", Text, RelationFilter),
    ("members.name", Text, ManyFilter), ("members.grade", Number, ManyFilter), ("members.captain.name", Text, ManyFilter),
    ("members.skills.name", Text, ManyFilter), ("lead.ships_via_owner.title", Text, BackRelationFilter),
];

#[rustfmt::skip]
const OF_SUPERUSERS: &[Row] = &[
    ("@request.method", Text, RequestFilter), ("@request.context", Text, RequestFilter), ("@request.query.q", Text, RequestFilter),
    ("@request.query.none", Text, RequestFilter), ("@request.headers.x_key", Text, RequestFilter), ("@request.body.none", Text, RequestFilter),
    ("@request.query.q:isset", Bool, RequestFilter), ("@request.query.none:isset", Bool, RequestFilter),
    ("@request.auth.name", Text, RequestFilter), ("@request.query.q:lower", Text, RequestFilter),
    ("@collection.flags.name", Text, CollectionFilter), ("@collection.flags:other.weight", Number, CollectionFilter),
    ("@collection.visits.ship", Id, CollectionFilter), ("@collection.crews.captain.name", Text, CollectionFilter),
    ("@collection.crews.skills:each", List, CollectionFilter), ("@collection.teams.members.name", Text, CollectionFilter),
];

#[rustfmt::skip]
const GATES: &[Row] = &[
    ("id", Id, PlainFilter), ("title", Text, PlainFilter), ("tons", Number, PlainFilter), ("afloat", Bool, PlainFilter),
    ("rig", Text, PlainFilter), ("gear", List, PlainFilter), ("owner", Id, PlainFilter), ("user", User, PlainFilter),
    ("marks", List, PlainFilter), ("log.a", Json, JsonFilter), ("gear:each", List, ModifierFilter), ("gear:length", Length, ModifierFilter),
    ("title:lower", Text, ModifierFilter), ("owner.name", Text, RelationFilter), ("user.name", Text, RelationFilter),
    ("user.crew.name", Text, RelationFilter), ("owner.captain.name", Text, RelationFilter), ("marks.name", Text, ManyFilter),
    ("owner.skills.name", Text, ManyFilter), ("owner.teams_via_members.label", Text, BackRelationFilter),
    ("owner.visits_via_by.note", Text, BackRelationFilter), ("owner.visits_via_by.good", Bool, BackRelationFilter),
];

#[rustfmt::skip]
const SHIP_PAPERS: &[Row] = &[
    ("id", Id, PlainFilter), ("title", Text, PlainFilter), ("serial", Text, PlainFilter), ("weight", Number, PlainFilter),
    ("number", Number, PlainFilter), ("more", Number, JsonFilter), ("serial:lower", Text, ModifierFilter),
];

#[rustfmt::skip]
const SHIP_NAMES: &[Row] = &[
    ("id", Id, PlainFilter), ("title", Text, PlainFilter), ("tons", Number, PlainFilter), ("owner", Id, PlainFilter),
    ("launched", Date, PlainFilter), ("log", Json, JsonFilter), ("log.a", Json, JsonFilter), ("title:lower", Text, ModifierFilter),
    ("owner.name", Text, RelationFilter), ("owner.skills.name", Text, ManyFilter),
];

const SHIP_VISITS: &[Row] = &[("id", Id, PlainFilter), ("title", Text, PlainFilter), ("visits", Number, PlainFilter)];

#[rustfmt::skip]
const OF_RULES: &[Row] = &[
    ("@request.auth.id", User, RequestFilter), ("@request.auth.id", User, RequestFilter), ("@request.auth.name", Text, RequestFilter),
    ("@request.auth.verified", Bool, RequestFilter), ("@request.auth.collectionName", Text, RequestFilter),
    ("@request.auth.crew", Id, RequestFilter), ("@request.auth.crew.name", Text, RequestFilter), ("@request.auth.email", Text, RequestFilter),
    ("@request.auth.crew.skills.name", Text, RequestFilter), ("@request.auth.crew.skills:each", List, RequestFilter),
    ("@request.method", Text, RequestFilter), ("@request.context", Text, RequestFilter), ("@request.query.q", Text, RequestFilter),
    ("@request.query.q:isset", Bool, RequestFilter), ("@request.headers.x_key", Text, RequestFilter), ("@request.auth.none", Text, RequestFilter),
    ("@request.auth.level", Number, RequestFilter), ("@request.auth.badge", Text, RequestFilter), ("@request.auth.badge:lower", Text, RequestFilter),
    ("@request.auth.verified:isset", Bool, RequestFilter), ("@request.auth.crew:length", Length, RequestFilter),
    ("@collection.flags.name", Text, CollectionFilter), ("@collection.visits.by", Id, CollectionFilter),
    ("@collection.crews:mine.name", Text, CollectionFilter), ("@collection.users.name", Text, CollectionFilter),
];

#[rustfmt::skip]
const OF_WRITE_RULES: &[Row] = &[
    ("@request.body.title", Text, RequestFilter), ("@request.body.tons", Number, RequestFilter), ("@request.body.title:isset", Bool, RequestFilter),
    ("@request.body.tons:changed", Bool, RequestFilter), ("@request.body.afloat", Bool, RequestFilter), ("@request.body.user", User, RequestFilter),
    ("@request.body.owner.name", Text, RequestFilter), ("@request.body.gear:length", Length, RequestFilter),
    ("@request.body.gear:each", List, RequestFilter), ("@request.body.marks.name", Text, RequestFilter),
    ("@request.body.title:lower", Text, RequestFilter), ("@request.body.none", Text, RequestFilter), ("@request.body.marks:each", Id, RequestFilter),
    ("@request.body.title:changed", Bool, RequestFilter), ("@request.body.gear", List, RequestFilter), ("@request.body.log.a", Json, RequestFilter),
];

const HIDDEN: &[(&str, Row)] = &[
    ("ships", ("secret", Text, PlainFilter)),
    ("crews", ("salary", Number, PlainFilter)),
    ("ships", ("owner.salary", Number, RelationFilter)),
];

pub(crate) const COLLECTIONS: &[&str] = &["ships", "ships", "ships", "ships", "crews", "visits", "flags", "teams"];

/// Whose filter it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Superuser,
    /// Anybody else.
    Visitor,
    /// A rule for reading.
    Rule,
    /// A rule for writing, which sees the body.
    WriteRule,
}

/// What a filter on the collection can name. What only superusers may name is a refusal for others, which is wanted too.
pub(crate) fn of(collection: &str, voice: Voice) -> Vec<Path> {
    let own = match collection {
        "crews" => CREWS,
        "visits" => VISITS,
        "flags" => FLAGS,
        "teams" => TEAMS,
        "gates" => GATES,
        "ship_names" => SHIP_NAMES,
        "ship_papers" => SHIP_PAPERS,
        "ship_visits" => SHIP_VISITS,
        _ => SHIPS,
    };
    let hidden = HIDDEN.iter().filter(|(of, _)| *of == collection).map(|(_, row)| row);
    let (more, body) = match voice {
        Voice::Superuser => (OF_SUPERUSERS, &[][..]),
        Voice::Visitor => (&OF_SUPERUSERS[..1], &[][..]),
        Voice::Rule => (OF_RULES, &[][..]),
        Voice::WriteRule => (OF_RULES, OF_WRITE_RULES),
    };
    own.iter()
        .chain(hidden)
        .chain(more)
        .chain(body)
        .map(|(name, kind, category)| Path { name, kind: *kind, category: *category })
        .collect()
}

/// Sort keys whose order does not depend on which of several related rows comes first.
pub(crate) fn sortable(collection: &str) -> Vec<Path> {
    let mut all = of(collection, Voice::Superuser);
    all.retain(|path| {
        matches!(path.category, PlainFilter | JsonFilter | RelationFilter)
            || path.category == ModifierFilter && !path.name.contains("each")
    });
    all
}
