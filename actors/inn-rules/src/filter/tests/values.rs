//! Sections A.8, A.9 and A.11 in small: the tables that the recorded answers cannot explain when they break.

use serde_json::json;

use super::compiled;
use crate::filter::number::numeric;
use crate::filter::{Expr, column_text, literal_pattern, literal_text, matches, real_text};

#[test]
fn reals_print_as_sqlite_prints_them() {
    let cases = [
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (1.0, "1.0"),
        (123.0, "123.0"),
        (-5.0, "-5.0"),
        (1.5, "1.5"),
        (0.1, "0.1"),
        (-0.5, "-0.5"),
        (1e15, "1000000000000000.0"),
        (-1e16, "-10000000000000000.0"),
        (12_345_678_901_234_568.0, "12345678901234568.0"),
        (1e17, "1.0e+17"),
        (1e14, "100000000000000.0"),
        (1e20, "1.0e+20"),
        (1e-5, "1.0e-05"),
        (1e-4, "0.0001"),
        (1.5e-7, "1.5e-07"),
        (0.1 + 0.2, "0.30000000000000004"),
        (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
        (1e100, "1.0e+100"),
    ];
    for (number, text) in cases {
        assert_eq!(real_text(number), text);
    }
    assert_eq!(column_text(1e15), "1000000000000000");
    assert_eq!(column_text(9e18), "9000000000000000000");
    assert_eq!(column_text(9.3e18), "9.3e+18");
    assert_eq!(column_text(-0.0), "0");
    assert_eq!(literal_text(1.0), "1");
    assert_eq!(literal_text(1e20), "100000000000000000000");
}

#[test]
fn only_decimal_text_looks_numeric() {
    for (text, number) in [("10", 10.0), (" 10 ", 10.0), ("+1.5e2", 150.0), (".5", 0.5), ("5.", 5.0), ("-0", -0.0)] {
        assert_eq!(numeric(text), Some(number), "{text:?}");
    }
    for text in ["", " ", ".", "-", "e5", "1e", "0x10", "1_000", "1 0", "inf", "NaN", "10a", "١"] {
        assert_eq!(numeric(text), None, "{text:?}");
    }
}

#[test]
fn a_pattern_is_wrapped_unless_it_has_its_own_percent() {
    let cases = [
        ("a", "%a%"),
        ("", "%%"),
        ("a_b", r"%a\_b%"),
        ("100%", "100%"),
        (r"100\%", r"%100\%%"),
        (r"a\b", r"%a\\b%"),
        (r"a\_b", r"%a\_b%"),
    ];
    for (text, pattern) in cases {
        assert_eq!(literal_pattern(text).as_deref(), Some(pattern), "{text:?}");
    }
    assert_eq!(literal_pattern(r"%a\"), None, "a lone backslash at the end matches nothing");
}

#[test]
fn a_hostile_pattern_takes_no_long() {
    let text = "a".repeat(3000);
    let pattern = format!("{}b", "%a".repeat(1500));
    let expr = compiled(&format!("title ~ '{pattern}'")).unwrap();
    let record = json!({"title": text});
    assert!(!matches(&expr, record.as_object().unwrap()));
}

#[test]
fn constants_fold_away() {
    for (text, folded) in [
        ("1 = 1", Expr::Always),
        ("1 = '1'", Expr::Never),
        ("'' = null", Expr::Always),
        ("null > 1", Expr::Never),
        ("'abc' ~ 'B'", Expr::Always),
        ("1 = 2 || 2 = 2 && 'a' < 'b'", Expr::Always),
    ] {
        assert_eq!(compiled(text), Ok(folded), "{text}");
    }
    assert_eq!(compiled("num = 1 && 1 = 1"), compiled("num = 1"));
    assert_eq!(compiled("num = 1 || 1 = 1"), Ok(Expr::Always));
}

#[test]
fn conditions_on_one_list_see_the_same_value() {
    let record = json!({"msel": ["a", "b"], "tagsm": ["t1"]});
    let record = record.as_object().unwrap();
    let holds = |text: &str| matches(&compiled(text).unwrap(), record);
    assert!(holds("msel:each ?= 'a'") && holds("msel:each ?= 'b'"));
    assert!(!holds("msel:each ?= 'a' && msel:each ?= 'b'"));
    assert!(holds("msel:each ?= 'a' && tagsm:each ?= 't1'"));
    assert!(!holds("msel:each = 'a'"), "match-all: b fails");
    assert!(holds("msel:each ~ '' && msel:length = 2"));
}

#[test]
fn too_many_combinations_of_lists_answer_no() {
    let values: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    let record = json!({"msel": values, "tagsm": values});
    let expr = compiled("msel:each ?= 'x' || tagsm:each ?!= 'x'").unwrap();
    assert!(!matches(&expr, record.as_object().unwrap()));
}

#[test]
fn a_missing_field_is_its_zero_value() {
    let empty = serde_json::Map::new();
    for text in ["title = ''", "num = 0", "done = false", "msel = '[]'", "meta = null", "loc = '{\"lon\":0,\"lat\":0}'"]
    {
        assert!(matches(&compiled(text).unwrap(), &empty), "{text}");
    }
}
