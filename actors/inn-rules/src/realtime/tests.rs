use serde_json::json;

use super::*;

fn snapshot(text: &str) -> Snapshot {
    text.parse().unwrap()
}

#[test]
fn a_snapshot_sees_what_was_over_when_it_was_taken() {
    let seen = snapshot("10:20:12,15");
    for (transaction, sees) in [(9, true), (10, true), (12, false), (13, true), (15, false), (19, true), (20, false)] {
        assert_eq!(seen.sees(transaction), sees, "{transaction}");
    }
    assert_eq!(seen.to_string(), "10:20:12,15");
    assert_eq!(snapshot("7:7:").to_string(), "7:7:");
    for wrong in ["", "1", "1:2", "2:1:", "1:9:12", "1:9:5,3", "1:9:3,3", "a:b:", "1:9:x"] {
        assert!(wrong.parse::<Snapshot>().is_err(), "{wrong}");
    }
}

#[test]
fn a_place_reads_back_what_was_written_and_nothing_else() {
    let place = Place {
        seen: snapshot("1000000:1000040:1000003,1000021"),
        upto: snapshot("1000021:1000090:1000021"),
        change: 123_456_789,
        topic: u64::MAX,
        at: 1_800_000_000,
    };
    let bytes = place.to_bytes();
    assert!(bytes.len() < 48, "{}", bytes.len());
    assert_eq!(Place::from_bytes(&bytes), Some(place));
    for length in 0..bytes.len() {
        assert_eq!(Place::from_bytes(&bytes[..length]), None, "{length}");
    }
    assert_eq!(Place::from_bytes(&[&bytes[..], &[0]].concat()), None);
    assert_eq!(Place::from_bytes(&[0xff; 64]), None);
}

#[test]
fn a_topic_is_what_pocketbase_makes_of_its_text() {
    let about = |text: &str| Topic::parse(text).map(|topic| (topic.collection, topic.target));
    assert_eq!(about("cards/*"), Some(("cards".to_owned(), Target::Every)));
    assert_eq!(about("cards"), Some(("cards".to_owned(), Target::Every)));
    assert_eq!(about("cards/abc?options=x"), Some(("cards".to_owned(), Target::One("abc".to_owned()))));
    assert_eq!(about(""), None);
    let options = r#"{"query":{"filter":"a = 'b+c'","perPage":5,"x":true},"headers":{"X-Token":"1"}}"#;
    let encoded = options.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    let topic = Topic::parse(&format!("cards/*?options={encoded}")).unwrap();
    assert_eq!(topic.params.filter.as_deref(), Some("a = 'b+c'"));
    let facts = &topic.facts;
    assert_eq!((facts.query["perPage"].as_str(), facts.query["x"].as_str()), ("5", "true"));
    assert_eq!(
        (facts.headers["x_token"].as_str(), facts.context.as_str(), facts.method.as_str()),
        ("1", "realtime", "GET")
    );
    for broken in ["cards/*?options=%7B", "cards/*?options=[]", "cards/*?options=%", "cards/*?x=1"] {
        assert!(!Topic::parse(broken).unwrap().has_options(), "{broken}");
    }
}

#[test]
fn topics_are_taken_once_each_and_in_their_order() {
    let body = json!({"clientId": "c", "subscriptions": ["b/*", "a/*", "b/*", ""]});
    let read = subscribe(&body).unwrap();
    assert_eq!(read.client, "c");
    assert_eq!(read.topics.len(), 2);
    assert!(read.topics.is_sorted_by_key(|topic| topic.order));
    let many: Vec<String> =
        (0..101).map(|number| format!("a/*?options=%7B%22query%22:%7B%22n%22:{number}%7D%7D")).collect();
    assert!(subscribe(&json!({"clientId": "c", "subscriptions": many})).is_err());
    for wrong in [
        json!([]),
        json!({"clientId": 1}),
        json!({"clientId": "c", "subscriptions": "a"}),
        json!({"clientId": "c", "subscriptions": [1]}),
    ] {
        assert!(subscribe(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn nothing_a_client_sends_begins_a_line_of_its_own() {
    assert_eq!(event("1", "a\nevent:b", "{}\r\n\r\nid:2"), "id:1\nevent:a event:b\ndata:{}    id:2\n\n");
}
