//! Sections A.1 to A.4: what is a filter and what is not.

use proptest::prelude::*;

use super::{answer, compiled};
use crate::filter::{FilterError, client_filter_forbidden, parse};

fn ids(list: &str) -> Vec<String> {
    list.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

fn at(text: &str) -> usize {
    match parse(text) {
        Err(FilterError::Invalid { at, .. }) => at,
        other => panic!("{text:?} gave {other:?}"),
    }
}

#[test]
fn every_operator_is_read_and_no_other_run_of_its_characters() {
    for op in ["=", "!=", ">", ">=", "<", "<=", "~", "!~"] {
        for any in ["", "?"] {
            assert!(parse(&format!("num{any}{op}1")).is_ok(), "{any}{op}");
        }
    }
    for op in ["==", "<>", "=!", "?", "!", "=<", "??=", "~~", "=~", "?!"] {
        assert!(parse(&format!("num {op} 1")).is_err(), "{op}");
    }
}

#[test]
fn a_group_is_accepted_in_any_state_and_drops_what_dangles() {
    for text in ["num = (done = true)", "num (done = true)", "(done = true)"] {
        assert_eq!(answer(text).unwrap(), ids("p1,p4,p15"), "{text}");
    }
}

#[test]
fn an_adjacent_group_is_joined_with_the_last_join_seen() {
    assert_eq!(answer("num = 1 || num = 2 (done = true)").unwrap(), ids("p1,p4,p10,p15"));
    assert_eq!(answer("(num = 1)(title = 'true')").unwrap(), ids("p15"));
}

#[test]
fn and_binds_tighter_than_or() {
    assert_eq!(answer("num = 2 || num = 1 && title = 'true'").unwrap(), ids("p10,p15"));
    assert_eq!(answer("(num = 2 || num = 1) && title = 'true'").unwrap(), ids("p15"));
}

#[test]
fn incomplete_and_foreign_text_is_refused_with_its_place() {
    let broken = [
        "",
        " ",
        "// only a comment",
        "()",
        "a=1 && ()",
        "a=1 &&",
        "a",
        "a =",
        "&& a=1",
        "a=1 b=2",
        "(a=1",
        "a=1)",
        "a=1 & b=2",
        "a=1 ||| b=2",
        "a=1 AND b=2",
        "a / 1",
        "a=1\r",
        "a='x",
        "a=\"x'",
        "título='x'",
        "a=1;drop table x",
        "a-b=1",
        "a[0]=1",
        "a.='x'",
        "a:='x'",
        "@ = 1",
        "_ = 1",
        "# = 1",
        "f(1,,2)=1",
        "f(,1)=1",
        "f(1 2)=1",
        "f(1",
    ];
    for text in broken {
        assert!(matches!(parse(text), Err(FilterError::Invalid { .. })), "{text:?}");
    }
    assert_eq!(at("num = .5"), 6);
    assert_eq!(at("num = 1 && title == 'x'"), 17);
    assert_eq!(at("num = 1 && title = 'x"), 19);
}

#[test]
fn numbers_have_digits_on_both_sides_except_behind_a_minus() {
    for good in ["1", "-1", "1.5", "-.5", "007"] {
        assert!(parse(&format!("num = {good}")).is_ok(), "{good}");
    }
    for bad in ["-", ".5", "1.", "1.2.3", "+1", "1e5", "0x1", "1_000", "--1"] {
        assert!(parse(&format!("num = {bad}")).is_err(), "{bad}");
    }
}

#[test]
fn only_the_enclosing_quote_is_unescaped_and_no_text_ends_in_a_backslash() {
    assert_eq!(answer(r"title = 'it\'s'").unwrap(), ids("p10"));
    assert_eq!(answer(r#"title = "it's""#).unwrap(), ids("p10"));
    assert_eq!(answer(r"title = 'back\slash'").unwrap(), ids("p11"));
    assert!(answer(r"title = 'back\\slash'").unwrap().is_empty(), "two backslashes stay two");
    assert!(parse(r"title ~ '\\'").is_err());
}

#[test]
fn comments_and_line_breaks_are_blank() {
    assert_eq!(answer("num = 2 // the rest\n || num = 3").unwrap(), ids("p10,p11"));
}

#[test]
fn the_limits_are_3500_bytes_and_200_comparisons() {
    let many = |n: usize| vec!["num=1"; n].join("&&");
    assert!(parse(&many(200)).is_ok());
    assert!(parse(&many(201)).is_err());
    let long = |n: usize| format!("title='{}'", "x".repeat(n - 8));
    assert!(parse(&long(3500)).is_ok());
    assert!(parse(&long(3501)).is_err());
    let deep = format!("{}num=1{}", "(".repeat(1700), ")".repeat(1700));
    assert_eq!(compiled(&deep), compiled("num=1"));
}

#[test]
fn calls_nest_three_deep_and_are_named_when_refused() {
    assert!(parse("f(g(h(1))) = 1").is_ok());
    assert!(parse("f(g(h(i(1)))) = 1").is_err());
    assert!(parse("strftime('%Y', due, ) = '2024'").is_ok(), "a comma may trail");
    assert!(compiled("strftime('%Y', due, ) = '2024'").is_ok());
    assert!(matches!(compiled("now() = 1"), Err(FilterError::Invalid { at: 0, .. })));
}

#[test]
fn clients_are_told_apart_by_a_plain_substring() {
    assert!(client_filter_forbidden("title ~ '@request.'"));
    assert!(client_filter_forbidden("@collection.tags.name ?= 'x'"));
    assert!(!client_filter_forbidden("title ~ '@request' && due < @now"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "[-a-z0-9@_.:#'\"\\\\()=!?<>~&|/, \n\té]{0,60}") {
        if let Ok(ast) = parse(&text) {
            let _ = compiled(&text);
            prop_assert!(!ast.items.is_empty());
        }
    }

    #[test]
    fn a_text_in_quotes_stays_one_literal(value in "[^'\\\\]{0,40}") {
        let filter = format!("title = '{value}'");
        let expected = super::rows().iter().filter(|row| row["title"] == *value).count();
        prop_assert_eq!(answer(&filter).unwrap().len(), expected);
    }
}
