//! Lists, views, sorts, pages, picked and expanded fields.

use super::ask::{Ask, Who};
use super::category::Category;
use super::dice::Dice;
use super::filter::{self, Maker};
use super::paths::{self, Voice};
use super::schema::id;
use super::suite::Case;

/// So many filters, and what else a list or view can be asked.
pub(crate) fn all(dice: &mut Dice, filters: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    for _ in 0..filters {
        cases.push(filtered(dice, Who::Superuser));
    }
    for _ in 0..filters / 6 {
        cases.push(filtered(dice, Who::Nobody));
        cases.push(damaged(dice));
    }
    for _ in 0..filters / 15 {
        cases.push(sorted(dice));
        cases.push(paged(dice));
        cases.push(picked(dice));
        cases.push(expanded(dice));
    }
    cases.extend(limits());
    cases.extend(odd_sorts());
    cases.extend(sorts_by_many());
    cases.extend(viewed());
    cases
}

/// One random filter of a superuser, or of nobody.
fn filtered(dice: &mut Dice, who: Who) -> Case {
    let collection = dice.pick(paths::COLLECTIONS);
    let voice = if who == Who::Superuser { Voice::Superuser } else { Voice::Visitor };
    let filter = Maker { dice, collection, voice }.filter();
    let category = match filter.category() {
        category if who == Who::Superuser || category == Category::FunctionFilter => category,
        _ => Category::VisitorFilter,
    };
    let mut ask = Ask::list(who, collection).with("sort", "id").with("perPage", "100");
    if category == Category::RequestFilter {
        ask = ask.with("q", "argo").header("x-key", "10");
    }
    if dice.chance(10) {
        ask = ask.with("skipTotal", "1");
    }
    Case { category, ask: ask.filtered(&filter.to_string()), filter: Some(filter) }
}

/// A filter with some damage.
fn damaged(dice: &mut Dice) -> Case {
    let collection = dice.pick(paths::COLLECTIONS);
    let filter = Maker { dice, collection, voice: Voice::Superuser }.filter().to_string();
    let filter = filter::broken(&filter, dice);
    let category = written(&filter, Category::BrokenFilter);
    Case::new(category, Ask::list(Who::Superuser, collection).with("sort", "id").with("filter", filter))
}

/// Of a filter that is only a text: is there a function in it?
fn written(filter: &str, otherwise: Category) -> Category {
    let called = ["geoDistance", "strftime"].iter().any(|name| filter.contains(name));
    if called { Category::FunctionFilter } else { otherwise }
}

/// Filters at and beyond each limit, and quirks of the grammar that chance seldom finds.
fn limits() -> Vec<Case> {
    let many = |count: usize, item: &str| vec![item; count].join("&&");
    let deep = |levels: usize| format!("{}tons=1{}", "(".repeat(levels), ")".repeat(levels));
    let mut filters = vec![
        many(200, "tons=1"),
        many(201, "tons=1"),
        format!("title='{}'", "x".repeat(3_492)),
        format!("title='{}'", "x".repeat(3_493)),
        format!("title='{}'", "\u{e4}".repeat(1_750)),
        "x".repeat(20_000),
        "title = 'a\u{0}b'".to_owned(),
        deep(100),
        deep(1_700),
        format!("{}tons=1", "(".repeat(1_000)),
    ];
    filters.extend(
        [
            " ",
            "// nothing",
            "tons=1 // one",
            "tons=1 // one\n || tons=2",
            "()",
            "tons=1 && ()",
            "tons = (afloat = true)",
            "tons (afloat = true)",
            "(tons=1)(afloat=true)",
            "tons = 1 (afloat = true)",
            "tons = 1 || tons = 2 (afloat = true)",
            "tons=1 &&",
            "&& tons=1",
            "tons",
            "tons=",
            "tons=1tons=2",
            "1=1",
            "1='1'",
            "'' = null",
            "null = null",
            "true != false",
            "NULL = title",
            "tRuE = afloat",
            "title == 'x'",
            "title <> 'x'",
            "title =! 'x'",
            "title & 'x'",
            "tons = .5",
            "tons = 5.",
            "tons = +5",
            "tons = 1e3",
            "tons = 0x1",
            "tons = --5",
            "tons = 1_000",
            "tons = 99999999999999999999999999999999999999999999",
            "title = 'it\\'s'",
            "title = \"say \\\"ho\\\"\"",
            "title = 'a\\'",
            "title = 'a\\\\'",
            "title ~ '\\'",
            "title = 'a\nb'",
            "title = 'open",
            "Title = 'x'",
            "none = 1",
            "title.x = 1",
            "owner.none = 1",
            "owner. = 1",
            "owner..name = 1",
            "collectionId = 'x'",
            "collectionName != ''",
            "expand = 'x'",
            "@rowid > 0",
            "@random = 1",
            "@none = 1",
            "@now > ''",
            "@NOW > ''",
            "@request.none = 1",
            "@request.query = 1",
            "@collection.none.id = 1",
            "@collection.flags = 1",
            "@collection.flags:.name ?= 'red'",
            "@collection.:x.name ?= 'red'",
            "@collection.flags:x:y.name ?= 'red'",
            "owner.skills.name = strftime('_%d_', null)",
            "strftime('%I', '2024-13-01') = owner.skills.name",
            "strftime('x%%y', @request.body.none) != @collection.visits.ship",
            "strftime('%s', -5, '+1 DAYS', 'utc') < 'c'",
            "strftime('%Y', '9999-12-31', '+1 days', 'localtime') = '0000'",
            "title:none = 1",
            "title:lower:lower = 1",
            "title: = 1",
            "gear:each:length = 1",
            "owner:each.name = 1",
            "visits_via_ship = 1",
            "visits_via_none.id = 1",
            "none_via_ship.id = 1",
            "pbc_visits_via_ship.id != ''",
            "VISITS_via_ship.id != ''",
            "owner.captain.captain.captain.captain.captain.name = ''",
            "owner.captain.captain.captain.captain.captain.captain.name = ''",
            "none(1) = 1",
            "geoDistance(1,2,3) = 1",
            "geoDistance(1,2,3,'4') = 1",
            "geoDistance(berth.lon,berth.lat,23,42,) < 100",
            "geoDistance(title,berth.lat,23,42) < 100",
            "geoDistance (berth.lon,berth.lat,23,42) < 100",
            "strftime() = ''",
            "strftime(title) = ''",
            "strftime('%Y') != ''",
            "strftime('%Y', 'now') = @year",
            "strftime('%Y', '2024-01-01') = '2024'",
            "strftime('%Y', launched) = 2024",
            "strftime('%Y', launched, 'start of year', '+1 month', '-1 day') = '2024'",
            "strftime('%Y', strftime('%Y-%m-%d', launched)) = '2024'",
            "strftime('%Y', strftime('%Y', strftime('%Y', strftime('%Y', launched)))) = ''",
            "id = 'x' OR id = 'y'",
            "\u{a0}tons = 1",
            "tons\t=\n1",
            "tons\r=1",
            "(tons = 1",
            "tons = 1)",
            "((tons = 1) && (tons = 1 || (afloat = true)))",
            "#x = 1",
            "@ = 1",
            "title = `x`",
            "title = x",
            "'title' = 'title'",
            "title ~ '%'",
            "title ~ ''",
            "title ~ null",
            "title !~ ''",
            "tons ~ 1",
            "title ~ title",
            "title ~ code",
        ]
        .map(str::to_owned),
    );
    let ask = |filter: String| Ask::list(Who::Superuser, "ships").with("sort", "id").with("filter", filter);
    let mut cases: Vec<Case> =
        filters.into_iter().map(|filter| Case::new(written(&filter, Category::FilterLimits), ask(filter))).collect();
    for filter in
        ["title ~ '@request.'", "@request.method = 'GET'", "@collection.flags.name = 'red'", "secret = ''", ""]
    {
        let ask = Ask::list(Who::Nobody, "ships").with("sort", "id").with("filter", filter);
        cases.push(Case::new(Category::VisitorFilter, ask));
    }
    cases
}

fn sorted(dice: &mut Dice) -> Case {
    let collection = dice.pick(paths::COLLECTIONS);
    let all = paths::sortable(collection);
    let mut category = Category::Sort;
    let keys: Vec<String> = (0..=dice.below(3))
        .map(|_| {
            let path = dice.of(&all);
            if path.category == Category::RelationFilter {
                category = Category::RelationSort;
            }
            let sign = dice.pick(&["", "-", "+", " "]);
            format!("{sign}{}", path.name)
        })
        .collect();
    let last = dice.pick(&["id", "-id", "@rowid", "-@rowid"]);
    let sort = format!("{},{last}", keys.join(","));
    Case::new(category, Ask::list(Who::Superuser, collection).with("sort", sort).with("perPage", "100"))
}

fn odd_sorts() -> Vec<Case> {
    let sorts = [
        "",
        "id",
        "-id",
        "@rowid",
        "-@rowid",
        "title,",
        ",id",
        "title,,id",
        "--id",
        "+-id",
        "none",
        "'x'",
        "1",
        "@now",
        "null",
        "@request.method",
        "secret,id",
        "owner.salary,id",
        "Title",
        "title:lower,id",
        "title:none",
        "gear:length,id",
        "owner",
        "owner.name,id",
        "visits_via_ship",
        "id,id,id,id,id,id,id,id",
        "id,id,id,id,id,id,id,id,id",
        " title , -id ",
        "log.a,id",
        "berth.lon,id",
        "-log,id",
        "title asc",
        "id;",
        "collectionId",
        "tons,-title,id",
    ];
    let mut cases = Vec::new();
    for sort in sorts {
        for who in [Who::Superuser, Who::Nobody] {
            cases.push(Case::new(Category::Sort, Ask::list(who, "ships").with("sort", sort).with("perPage", "100")));
        }
    }
    let long = "x".repeat(256);
    cases.push(Case::new(Category::Sort, Ask::list(Who::Superuser, "ships").with("sort", long)));
    for who in [Who::Superuser, Who::Nobody] {
        cases.push(Case::new(Category::Sort, Ask::list(who, "ships").with("perPage", "100")));
    }
    cases
}

/// Sorts by one of several related rows: the first one met decides.
fn sorts_by_many() -> Vec<Case> {
    let sorts = [
        "marks.name",
        "-marks.weight",
        "visits_via_ship.stars",
        "-visits_via_ship.note",
        "owner.skills.name",
        "gear:each",
        "-marks:each",
        "papers_via_ship.serial",
    ];
    let ask = |sort: &str| Ask::list(Who::Superuser, "ships").with("sort", format!("{sort},id")).with("perPage", "100");
    sorts.iter().map(|sort| Case::new(Category::ManySort, ask(sort))).collect()
}

fn paged(dice: &mut Dice) -> Case {
    let mut ask = Ask::list(Who::Superuser, "ships").with("sort", "id");
    let page = ["0", "1", "2", "3", "-1", "99", "abc", "", "1.5", "+2", " 1", "99999999999999999999"];
    if dice.chance(80) {
        ask = ask.with("page", *dice.of(&page));
    }
    let per_page = ["0", "1", "4", "5", "17", "30", "1000", "1001", "-5", "abc", "", "2.0", "99999999999999999999"];
    if dice.chance(80) {
        ask = ask.with("perPage", *dice.of(&per_page));
    }
    let skip = ["1", "0", "true", "false", "t", "F", "TRUE", "True", "tRUE", "yes", "", "2"];
    if dice.chance(50) {
        ask = ask.with("skipTotal", *dice.of(&skip));
    }
    if dice.chance(30) {
        ask = ask.with("filter", dice.pick(&["tons > 1", "id = ''", "none = 1"]));
    }
    Case::new(Category::Paging, ask)
}

const FIELDS: &[&str] = &[
    "id",
    "title",
    "*",
    "log",
    "log.a",
    "log.b",
    "log.b.c",
    "log.list",
    "log.*",
    "marks",
    "none",
    "id.x",
    "berth.lon",
    "notes",
    "notes:excerpt(5)",
    "notes:excerpt(5,true)",
    "notes:excerpt(100,true)",
    "title:excerpt(3)",
    "title:excerpt(3,true)",
    "notes:excerpt(0)",
    "collectionName",
    "secret",
    " tons ",
    "gear",
    "expand",
    "expand.owner",
    "expand.owner.name",
    "expand.*",
    "expand.marks.name",
    "expand.owner.expand.captain.id",
    "expand.visits_via_ship.note",
    "log.a.b",
    "",
    "TITLE",
];

fn picked(dice: &mut Dice) -> Case {
    let fields: Vec<&str> = (0..=dice.below(3)).map(|_| *dice.of(FIELDS)).collect();
    let who = if dice.chance(70) { Who::Superuser } else { Who::Nobody };
    let mut ask = if dice.chance(50) {
        Ask::view(who, "ships", &id(dice.pick(&["s1", "s2", "s4", "sh"])))
    } else {
        Ask::list(who, "ships").with("sort", "id")
    };
    if dice.chance(50) {
        ask = ask.with("expand", "owner.captain,marks");
    }
    Case::new(Category::Fields, ask.with("fields", fields.join(",")))
}

const EXPANDS: &[&str] = &[
    "owner",
    "marks",
    "owner.captain",
    "owner.skills",
    "owner.captain.captain",
    "owner.captain.skills",
    "none",
    "owner.none",
    "title",
    "owner.captain.captain.captain.captain.captain.captain",
    ".owner.",
    " marks ",
    "",
    "OWNER",
    "owner.owner",
];
const BACK_EXPANDS: &[&str] = &[
    "visits_via_ship",
    "visits_via_ship.by",
    "visits_via_ship.by.captain",
    "papers_via_ship",
    "owner.teams_via_members",
    "owner.crews_via_captain",
    "owner.teams_via_lead.members",
    "visits(ship)",
    "visits_via_none",
    "none_via_ship",
    "marks.crews_via_skills",
];

fn expanded(dice: &mut Dice) -> Case {
    let back = dice.chance(40);
    let from = if back { BACK_EXPANDS } else { EXPANDS };
    let mut paths: Vec<&str> = (0..=dice.below(2)).map(|_| *dice.of(from)).collect();
    if dice.chance(30) {
        paths.push(*dice.of(EXPANDS));
    }
    let who = if dice.chance(70) { Who::Superuser } else { Who::Nobody };
    let ask = if dice.chance(60) {
        Ask::view(who, "ships", &id(dice.pick(&["s1", "s2", "s3", "s4", "s5", "s6", "s8", "sh"])))
    } else {
        Ask::list(who, "ships").with("sort", "id")
    };
    let category = if back { Category::BackExpand } else { Category::Expand };
    Case::new(category, ask.with("expand", paths.join(",")))
}

/// Every record by its id, and addresses where nothing is.
fn viewed() -> Vec<Case> {
    let mut cases = Vec::new();
    for who in [Who::Superuser, Who::Nobody] {
        for (collection, short, _) in super::rows::harbour() {
            cases.push(Ask::view(who, collection, &id(short)));
        }
        for (collection, id) in [
            ("ships", "none"),
            ("ships", "s1"),
            ("ships", "%20"),
            ("ships", "S10000000000000"),
            ("none", "s10000000000000"),
            ("SHIPS", "s10000000000000"),
            ("pbc_ships", "s10000000000000"),
            ("PBC_ships", "s10000000000000"),
            ("ships", "s10000000000000'"),
        ] {
            cases.push(Ask::view(who, collection, id));
        }
        for collection in ["none", "Ships", "pbc_ships", "teams", "visits"] {
            cases.push(Ask::list(who, collection).with("sort", "id"));
        }
    }
    cases.into_iter().map(|ask| Case::new(Category::View, ask)).collect()
}

/// Lists and views of view collections, and writes to them.
pub(crate) fn of_views(dice: &mut Dice, filters: u64) -> Vec<Case> {
    let mut asks = Vec::new();
    let mut cases = Vec::new();
    for collection in ["ship_names", "ship_papers", "ship_visits"] {
        for who in [Who::Superuser, Who::Nobody] {
            for sort in ["id", "-title,id", "title:lower,id", "none", "-@rowid"] {
                asks.push(Ask::list(who, collection).with("sort", sort).with("perPage", "7").with("page", "2"));
            }
            asks.push(Ask::view(who, collection, &id("s1")));
            asks.push(Ask::view(who, collection, &id("gone")));
            asks.push(
                Ask::view(who, collection, &id("s1"))
                    .with("expand", "owner.captain")
                    .with("fields", "*,expand.owner.name"),
            );
        }
        for _ in 0..filters {
            let filter = Maker { dice, collection, voice: Voice::Superuser }.filter();
            let ask = Ask::list(Who::Superuser, collection).with("sort", "id").filtered(&filter.to_string());
            let category = match filter.category() {
                hard @ (Category::FunctionFilter | Category::RequestFilter) => hard,
                _ => Category::Views,
            };
            cases.push(Case { category, ask, filter: Some(filter) });
        }
        asks.push(Ask::create(Who::Superuser, collection, serde_json::json!({"title": "x"})));
        asks.push(Ask::update(Who::Superuser, collection, &id("s1"), serde_json::json!({"title": "x"})));
        asks.push(Ask::delete(Who::Superuser, collection, &id("s1")));
    }
    cases.extend(asks.into_iter().map(|ask| Case::new(Category::Views, ask)));
    cases
}

#[test]
fn every_kind_of_filter_is_asked() {
    let cases = all(&mut Dice::new(1, 1), 3_000);
    let asked = |category: Category| cases.iter().filter(|case| case.category == category).count();
    for (category, least) in [
        (Category::PlainFilter, 200),
        (Category::JsonFilter, 30),
        (Category::MacroFilter, 5),
        (Category::ModifierFilter, 100),
        (Category::RelationFilter, 100),
        (Category::ManyFilter, 100),
        (Category::BackRelationFilter, 100),
        (Category::FunctionFilter, 50),
        (Category::RequestFilter, 50),
        (Category::CollectionFilter, 50),
        (Category::VisitorFilter, 400),
        (Category::BrokenFilter, 400),
    ] {
        assert!(asked(category) >= least, "only {} of {category:?}", asked(category));
    }
}
