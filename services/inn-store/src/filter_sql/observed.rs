//! Cases observed on the real PocketBase 0.39.8 (reference notes, section H.3): those over a record's own fields.

use inn_protocol::AppId;
use inn_rules::filter::{AuthFacts, Scope, compile};

use super::*;
use crate::PgStore;
use crate::columns::fixture::{filled, model};
use crate::columns::table;
use crate::testdb::TestDb;

/// Filter, and the posts it finds: `all`, `none`, `p1,p2`, or `-p1,p2` for all but those.
const CASES: &[(&str, &str)] = &[
    ("title ~ 'ALPHA'", "p1,p2"),
    ("title:lower = 'äpfel'", "p8"),
    ("title > 'Zebra'", "p2,p6,p7,p8,p10,p11,p15,p16,p17,p18,p20"),
    ("title < 100", "p3,p5,p9,p19"),
    ("title = true", "none"),
    ("title = 123", "p13"),
    ("title ~ null", "none"),
    ("title ~ '100%'", "p5"),
    ("title ~ 'a_b'", "p6"),
    ("title ~ title", "-p11"),
    ("num = '10'", "p3"),
    ("num > ''", "none"),
    ("num = null", "none"),
    ("num ~ 1", "p1,p2,p3,p7,p8,p9,p12,p13,p15"),
    ("num = title", "none"),
    ("num = 100000000000000000000", "p7"),
    ("done = 'true'", "none"),
    ("done = ''", "none"),
    ("num = done", "p1,p6,p15"),
    ("'' = null", "all"),
    ("msel = 'a'", "none"),
    ("msel ~ '\",\"'", "p1,p5"),
    ("msel = ''", "none"),
    ("msel = '[]'", "-p1,p3,p4,p5,p6,p7"),
    ("msel:each ?= 'a'", "p1,p4,p5"),
    ("msel:each ?!= 'a'", "-p4"),
    ("msel:each = ''", "-p1,p3,p4,p5,p6,p7"),
    ("msel:each ?= 'a' && msel:each ?= 'b'", "none"),
    ("sel:length = 0", "-p1,p3,p4,p6"),
    ("msel:length = '2'", "none"),
    ("tagsm = 't1'", "none"),
    ("msel:each ?= sel", "-p4,p5,p6,p7"),
    ("meta = 1", "p7,p12,p15"),
    ("meta = 'true'", "none"),
    ("meta = ''", "p8"),
    ("meta.a != 1", "-p1"),
    ("meta.b = '{\"c\":\"x\"}'", "p1"),
    ("meta.arr.1 = 2", "p1"),
    ("meta.a.0.b = 'q'", "p14"),
    ("meta:each ?= 1", "p7,p12,p15"),
    ("loc = '{\"lon\":0,\"lat\":0}'", "-p1,p4"),
    ("due = '2024-01-10'", "none"),
    ("due < '2024-01-10'", "-p1,p3,p5,p17"),
    ("due >= '2024-01-10 10:00:00Z'", "p5"),
    ("num = 1 || num = 2 (done = true)", "p1,p4,p10,p15"),
    ("title = 'it\\'s'", "p10"),
    ("NULL = title", "p9"),
    ("1000000000000000 ~ '00.0' && 100000000000000000 ~ '1.0e+17' && num = 2", "p10"),
    ("strftime('%Y', due) = ''", "-p1,p3,p4,p5,p17"),
    ("strftime('%W', due) = '02'", "p1,p3,p4,p17"),
    ("strftime('%Y-%m', due) = '2024-01'", "p1,p3,p4,p17"),
    ("strftime('%Y', due) = 2024", "none"),
    ("strftime('%Y', due) > ''", "p1,p3,p4,p5,p17"),
    ("strftime('%Y', due) ~ '202'", "p1,p3,p4,p5,p17"),
    ("strftime('%H:%M', due) != '10:00'", "-p1,p3"),
    ("strftime('%Y-%m-%d', due, 'start of month', '+1 month', '-1 day') = '2024-01-31'", "p1,p3,p4,p17"),
    ("strftime('%Y', num, 'unixepoch') = '1970'", "-p5,p7,p14"),
    ("strftime('%J', num) = '10'", "p3"),
    ("strftime('%Y', done) = '-4713'", "all"),
    ("strftime('%s', due) = title", "p9"),
    ("strftime('%Y', meta) = '-4713'", "p7,p11,p12,p13,p15"),
    ("strftime('%Y', meta.a) = ''", "-p1,p6"),
    ("strftime('%Y', msel) = ''", "all"),
    ("strftime('%f', title:lower) != num", "all"),
    ("'2024' = strftime('%Y', due)", "p1,p3,p4,p5,p17"),
    ("title ~ strftime('', due)", "p1,p3,p4,p5,p17"),
    ("title ~ strftime('%%', due)", "p1,p3,p4,p5,p17"),
    ("due ~ strftime('%Y%%', due)", "p1,p3,p4,p5,p17"),
    ("due ~ strftime('%Y', due)", "none"),
    ("due !~ strftime('%Y', due)", "p1,p3,p4,p5,p17"),
    ("title ~ strftime('%Y', '2024-01-01')", "none"),
    ("title = strftime('%Y', '2024-01-01')", "none"),
    ("strftime('%Y') != title", "all"),
    ("strftime('%m', '13:00') = '01'", "all"),
    ("strftime('%Y', null) = ''", "all"),
    ("strftime('%Y', true) = '-4713'", "all"),
    ("strftime('%Q', due) != ''", "none"),
    ("msel:each = strftime('%Y', due)", "-p1,p3,p4,p5,p6,p7,p17"),
    ("msel:each != strftime('%Y', due)", "p1,p3,p4,p5,p6,p7,p17"),
    ("strftime('%Y', msel:each) = ''", "all"),
    ("strftime('%Y', msel:each) ?!= ''", "none"),
    ("strftime('%Y', msel:each) = strftime('%Y', due)", "-p1,p3,p4,p5,p17"),
    ("geoDistance(loc.lon, loc.lat, 23.32, 42.69) != strftime('%Y', due)", "all"),
    ("title != @request.query.none:isset", "p3,p4,p5,p12,p13"),
    ("title = @request.query.none:isset", "none"),
    ("meta != @request.query.none:isset", "-p1,p3,p5,p6,p8,p9,p10,p13,p14"),
    ("meta = @request.query.none:isset", "p1,p3,p5,p6,p8,p9,p10,p13,p14"),
    ("loc.lon = @request.query.none:isset", "-p1,p4"),
    ("num != @request.query.none:isset", "-p6"),
    ("done != @request.query.none:isset", "p1,p4,p15"),
    ("msel:each != @request.query.none:isset", "-p1,p3,p4,p5,p6,p7"),
    ("@request.query.none:isset != title", "all"),
];

pub(super) async fn found(store: &PgStore, table: &str, expr: &Expr) -> Vec<String> {
    let mut params = SqlParams::starting_at(1);
    let condition = render(expr, AppId::new(), "t", &mut params);
    let sql = format!("SELECT t.\"id\" FROM {table} AS t WHERE {condition} ORDER BY t.\"_row\"");
    let rows = store.client().await.unwrap().query_typed(&sql, &params.typed()).await;
    rows.unwrap_or_else(|error| panic!("{sql}\n{error:?}")).iter().map(|row| row.get(0)).collect()
}

fn expected(text: &str) -> Vec<String> {
    let all = || (1..=20).map(|number| format!("p{number}"));
    match text {
        "all" => all().collect(),
        "none" => Vec::new(),
        _ => match text.strip_prefix('-') {
            Some(without) => all().filter(|id| !without.split(',').any(|other| other == id)).collect(),
            None => text.split(',').map(str::to_owned).collect(),
        },
    }
}

#[tokio::test]
async fn filters_find_what_pocketbase_finds() {
    let (store, _db) = TestDb::new().await;
    let (app, posts) = filled(&store).await;
    let model = model(vec![posts.clone()]);
    let auth = AuthFacts::nobody();
    let scope =
        Scope { collection: &posts, model: &model, now: chrono::DateTime::UNIX_EPOCH, auth: &auth, see_hidden: true };
    let table = table(app, &posts);
    let mut wrong = Vec::new();
    for (filter, wanted) in CASES {
        let expr = compile(filter, &scope).unwrap_or_else(|error| panic!("{filter}: {error}"));
        let found = found(&store, &table, &expr).await;
        if found != expected(wanted) {
            wrong.push(format!("{filter}: {found:?}, expected {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
