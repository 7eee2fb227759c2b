use chrono::DateTime;
use inn_protocol::Code;
use inn_protocol::model::{Collection, Model};
use serde_json::json;

use crate::filter::{AuthFacts, Expr, FieldClass, Scope};
use crate::query::{Link, ListParams, SortBy, expand_paths, expand_step, sort};

fn collections() -> (Collection, Model) {
    let cards: Collection = serde_json::from_value(json!({
        "id": "c1", "name": "cards", "type": "base", "fields": [
            {"id": "f1", "name": "title", "type": "text"},
            {"id": "f2", "name": "list", "type": "relation", "collectionId": "c2", "maxSelect": 1},
            {"id": "f3", "name": "labels", "type": "relation", "collectionId": "c3", "maxSelect": 9},
            {"id": "f4", "name": "meta", "type": "json"},
            {"id": "f5", "name": "secret", "type": "relation", "collectionId": "c2", "maxSelect": 1, "hidden": true},
            {"id": "f6", "name": "lost", "type": "relation", "collectionId": "gone", "maxSelect": 1},
        ],
    }))
    .unwrap();
    let other = |id: &str, name: &str| -> Collection {
        serde_json::from_value(json!({"id": id, "name": name, "type": "base"})).unwrap()
    };
    let model = Model { collections: vec![cards.clone(), other("c2", "lists"), other("c3", "labels")] };
    (cards, model)
}

fn params(pairs: &[(&str, &str)]) -> Result<ListParams, inn_protocol::Refusal> {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ListParams::from_pairs(&pairs)
}

#[test]
fn paging_is_clamped_and_the_first_of_a_repeated_parameter_wins() {
    let cases = [
        (vec![], (1, 30, false)),
        (vec![("page", "0"), ("perPage", "1001"), ("skipTotal", "1")], (1, 1000, true)),
        (vec![("page", "-3"), ("perPage", "-1"), ("skipTotal", "F")], (1, 30, false)),
        (vec![("page", "7"), ("page", "x"), ("perPage", "+5")], (7, 5, false)),
        (vec![("page", ""), ("perPage", ""), ("skipTotal", "")], (1, 30, false)),
    ];
    for (pairs, expected) in cases {
        let paging = params(&pairs).unwrap().paging;
        assert_eq!((paging.page, paging.per_page, paging.skip_total), expected, "{pairs:?}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_all_at_once() {
    let refusal = params(&[("page", "abc"), ("perPage", "1.5"), ("skipTotal", "yes"), ("expand", &"x".repeat(5000))]);
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.code, Code::InvalidParameter);
    let fields: Vec<_> = refusal.violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["page", "perPage", "skipTotal", "expand"]);
    assert!(params(&[("page", "99999999999999999999")]).is_err());
}

fn with_scope<T>(see_hidden: bool, f: impl FnOnce(&Scope<'_>) -> T) -> T {
    let (collection, model) = collections();
    let auth = AuthFacts::nobody();
    f(&Scope { collection: &collection, model: &model, now: DateTime::UNIX_EPOCH, auth: &auth, see_hidden })
}

#[test]
fn sort_keys_are_read_in_order() {
    let keys =
        with_scope(false, |scope| sort(" -title , +meta.a.0, list ,@random,-@rowid,title:lower", scope)).unwrap();
    let descending: Vec<_> = keys.iter().map(|key| key.descending).collect();
    assert_eq!(descending, [true, false, false, false, true, false]);
    let SortBy::Field(meta) = &keys[1].by else { panic!("{:?}", keys[1]) };
    assert_eq!((meta.class, meta.path.join(".").as_str()), (FieldClass::Json, "a.0"));
    assert_eq!((&keys[3].by, &keys[4].by), (&SortBy::Random, &SortBy::RowId));
}

#[test]
fn a_sort_is_made_of_known_fields_only() {
    let long = "x".repeat(256);
    let bad = [
        "",
        "title,",
        "--title",
        "nope",
        "'title'",
        "1",
        "null",
        "@now",
        "title desc",
        "secret",
        "list.name",
        long.as_str(),
    ];
    for spec in bad {
        let refusal = with_scope(false, |scope| sort(spec, scope)).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidParameter, "{spec:?}");
        assert_eq!(refusal.violations[0].field, "sort", "{spec:?}");
    }
    assert!(with_scope(false, |scope| sort(&["title"; 9].join(","), scope)).is_err());
    assert!(with_scope(false, |scope| sort(&["title"; 8].join(","), scope)).is_ok());
    assert!(with_scope(true, |scope| sort("secret", scope)).is_ok());
}

#[test]
fn only_owners_may_use_request_forms_in_a_filter_or_sort() {
    let list = params(&[("filter", "title ~ '@request.'"), ("sort", "@request.auth.id")]).unwrap();
    for refusal in [
        with_scope(false, |scope| list.client_filter(scope)).unwrap_err(),
        with_scope(false, |scope| list.client_sort(scope)).unwrap_err(),
    ] {
        assert_eq!(refusal.code, Code::Forbidden);
        assert_eq!(refusal.message, "Only superusers can filter by @request.");
    }
    let filtered = params(&[("filter", "title ~ '@request.'")]).unwrap();
    assert!(with_scope(true, |scope| filtered.client_filter(scope)).is_ok());
}

#[test]
fn an_empty_filter_is_none_and_a_blank_one_an_error() {
    let filter = |text: &str| with_scope(false, |scope| params(&[("filter", text)]).unwrap().client_filter(scope));
    assert_eq!(filter(""), Ok(Expr::Always));
    assert_eq!(filter(" ").unwrap_err().code, Code::InvalidFilter);
    assert_eq!(filter("title = 'x'; --").unwrap_err().code, Code::InvalidFilter);
}

#[test]
fn an_expand_path_is_read_without_blanks_and_kept_once_in_its_longest_form() {
    let paths = |spec: &str| expand_paths(spec).iter().map(|path| path.join(".")).collect::<Vec<_>>().join(" ");
    assert_eq!(paths(" labels , .list. ,labels,list.board,li st"), "labels list.board");
    assert_eq!(paths("a.b.c,a.b,a,ab"), "a.b.c ab");
    assert_eq!(paths("a..b"), "a..b", "an empty name in the middle is a name nothing has");
    assert_eq!(paths(", .,.. ,"), "");
}

#[test]
fn expand_follows_relations_and_back_relations_and_nothing_else() {
    let (cards, model) = collections();
    let step = |name: &str, see_hidden| {
        let step = expand_step(name, &cards, &model, see_hidden)?;
        Some((step.target.name.as_str(), matches!(step.link, Link::Back(_)), step.multiple))
    };
    assert_eq!(step("labels", false), Some(("labels", false, true)));
    assert_eq!(step("list", false), Some(("lists", false, false)));
    for name in
        ["title", "nope", "lost", "secret", "Labels", "cards_via_list", "_via_list", "lists_via_", "__proto__", ""]
    {
        assert_eq!(step(name, false), None, "{name:?}");
    }
    assert!(step("secret", true).is_some(), "owners follow hidden relations too");
}

#[test]
fn a_back_relation_leads_to_many_unless_a_unique_index_makes_it_one() {
    let (cards, mut model) = collections();
    let lists = model.collection("lists").unwrap().clone();
    let step = |model: &Model, name: &str| expand_step(name, &lists, model, false).map(|step| step.multiple);
    assert_eq!(step(&model, "cards_via_list"), Some(true));
    assert_eq!(step(&model, "CARDS_via_list"), Some(true), "collections are found whatever their case");
    assert_eq!(step(&model, "cards(list)"), Some(true), "the old form");
    assert_eq!(step(&model, "cards_via_labels"), None, "it points elsewhere");
    let unique = format!("CREATE UNIQUE INDEX `one` ON `{}` (`list`)", cards.name);
    model.collections.iter_mut().find(|other| other.id == cards.id).unwrap().indexes.push(unique);
    assert_eq!(step(&model, "cards_via_list"), Some(false));
}
