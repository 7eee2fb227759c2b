use inn_rules::filter::{FieldClass, FieldRef, Walk};
use serde::Deserialize;
use serde_json::Value;

use super::*;
use crate::PgStore;
use crate::testdb::TestDb;

/// What `SQLite` 3.53.3 (the one in PocketBase 0.39.8) answers.
#[derive(Deserialize)]
struct Recorded {
    format: String,
    time: Value,
    modifiers: Vec<String>,
    text: Option<String>,
}

async fn written(store: &PgStore, format: &str, time: &Value, modifiers: &[String]) -> Option<String> {
    let sql = "SELECT inn.strftime($1, $2::float8, $3, $4, 0)";
    let client = store.client().await.unwrap();
    let row = client.query_one(sql, &[&format, &time.as_f64(), &time.as_str(), &modifiers]).await;
    row.unwrap_or_else(|error| panic!("{format:?} {time} {modifiers:?}: {error:?}")).get(0)
}

#[tokio::test]
async fn moments_are_written_as_sqlite_writes_them() {
    let (store, _db) = TestDb::new().await;
    let recorded = include_str!("strftime.jsonl").lines().map(|line| serde_json::from_str::<Recorded>(line).unwrap());
    let mut wrong = Vec::new();
    for Recorded { format, time, modifiers, text } in recorded {
        let found = written(&store, &format, &time, &modifiers).await;
        if found != text {
            wrong.push(format!("{format:?} {time} {modifiers:?}: {found:?}, recorded {text:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn no_number_and_no_modifier_is_too_large() {
    let (store, _db) = TestDb::new().await;
    let far = [1e308, -1e308, 1e18, -1e18, 5_373_484.499, 0.0, 464_269_060_799_999.0];
    let times = far
        .iter()
        .map(|number| (*number).into())
        .chain(["9999-12-31 23:59:59.999Z", "-4713-01-01", "9".repeat(3000).as_str()].map(Value::from));
    let modifiers = [
        "464269000000000 seconds",
        "-464269000000000 seconds",
        "14712 years",
        "-176545 months",
        "unixepoch",
        "auto",
        "julianday",
        "weekday 6",
        "start of year",
        "floor",
        "+14712-11-30 24:59",
        "1e308 days",
        "utc",
        "localtime",
    ];
    for time in times {
        for first in modifiers {
            for second in modifiers {
                let modifiers: Vec<String> = [first, second, second, second].map(str::to_owned).into();
                written(&store, "%Y-%m-%d %H:%M:%f %s %j %J %W %U %V %G %g", &time, &modifiers).await;
            }
        }
    }
}

/// The text of a date field is cut into pieces, which must be the same as what the function writes.
#[tokio::test]
async fn pieces_of_a_stored_date_are_what_the_function_writes() {
    let (store, _db) = TestDb::new().await;
    let client = store.client().await.unwrap();
    let texts = [
        "",
        "2024-03-05 07:08:09.123Z",
        "2024-02-29 12:00:00.000Z",
        "2023-02-29 12:00:00.000Z",
        "2024-04-31 23:59:59.999Z",
        "2024-12-31 23:59:59.999Z",
        "0000-01-01 00:00:00.000Z",
        "9999-12-31 23:59:59.999Z",
        "2024-13-01 00:00:00.000Z",
        "2024-01-00 00:00:00.000Z",
        "2024-01-01 24:00:00.000Z",
        "2024-01-01 00:60:00.000Z",
        "2024-01-01",
        "12:00",
        "now",
        "10",
        "2024-01-01 00:00:00.000z",
        "2024-01-01 00:00:00.000Z\n",
        "x",
    ];
    client.batch_execute("CREATE TABLE moments (t text COLLATE \"C\" NOT NULL)").await.unwrap();
    client.execute("INSERT INTO moments SELECT unnest($1::text[])", &[&texts.as_slice()]).await.unwrap();
    for format in [
        "%Y",
        "%Y-%m-%d",
        "%F %T",
        "%H:%M",
        "%S|%f|%R",
        "%%%Y%%",
        "in %Y",
        "%d.%m.",
        "plain",
        "%",
        "%Q",
        "%j",
        "\u{e4}%Y\0",
    ] {
        let field = FieldRef::new(Walk::default(), "t", FieldClass::Text);
        let now = chrono::DateTime::UNIX_EPOCH;
        let moment = Moment::of_field(format, field.clone(), now);
        let mut params = SqlParams::starting_at(1);
        let time = Side::field(&field, "m", &mut params);
        let side = render(&moment, &time, &mut params);
        let whole = general(&moment, "NULL::float8", "m.t", &mut params);
        let sql = format!("SELECT m.t, {}, {whole} FROM moments AS m", side.value(&mut params));
        for row in client.query_typed(&sql, &params.typed()).await.unwrap() {
            let (text, pieces, whole): (String, Option<String>, Option<String>) = (row.get(0), row.get(1), row.get(2));
            assert_eq!(pieces, whole, "{format:?} of {text:?}");
        }
    }
}
