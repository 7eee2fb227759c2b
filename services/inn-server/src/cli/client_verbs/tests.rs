use clap::{CommandFactory as _, Parser};
use inn_client::{ClientError, RefusalBody};

use super::*;

#[derive(Debug, Parser)]
#[command(name = "inn")]
struct Line {
    #[command(subcommand)]
    verb: ClientVerb,
}

fn parse(line: &str) -> Result<ClientVerb, clap::Error> {
    Line::try_parse_from(line.split_whitespace()).map(|line| line.verb)
}

#[test]
fn the_verbs_are_well_formed_and_explain_themselves() {
    Line::command().debug_assert();
    fn walk(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{} says what it does", command.get_name());
        command.get_subcommands().filter(|sub| sub.get_name() != "help").for_each(walk);
    }
    Line::command().get_subcommands().for_each(walk);
}

#[test]
fn json_and_url_may_stand_before_and_after_the_verb() {
    for line in [
        "inn app ls --json",
        "inn app --json ls",
        "inn data kanban cards ls --json",
        "inn data --json kanban cards ls",
        "inn agent work --json -- ./agent.sh --not-ours",
        "inn audit tail --json --url http://x",
    ] {
        assert!(wants_json(&parse(line).unwrap()), "{line}");
    }
    let verb = parse("inn agent work --agent a -- ./agent.sh --json").unwrap();
    assert!(!wants_json(&verb), "what follows -- is the program's");
}

#[test]
fn wrong_usage_is_code_2() {
    for line in [
        "inn agent work",
        "inn request claim --max 101",
        "inn request progress req_1 --epoch 1 --step x --percent 101",
        "inn grant approve",
        "inn grant approve grq_1 --all --scope data:a:read",
        "inn grant request --app x",
        "inn member add a@b.c --role king",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn exit_codes_tell_refused_from_usage_from_unreachable() {
    let body = br#"{"code":"forbidden","message":"No.","help":"http://x/help/forbidden"}"#;
    let refused = CliError::Client(ClientError::Refused(Box::new(RefusalBody::read(403, body, None).unwrap())));
    let away = ClientError::Unreachable { url: "http://x".to_owned(), cause: "refused".to_owned(), sent: false };
    let other = ClientError::Protocol { url: "http://x".to_owned(), what: "HTML".to_owned() };
    for (error, code) in [
        (refused, 1),
        (CliError::local("x", "y"), 1),
        (CliError::Said, 1),
        (CliError::Usage("y".to_owned()), 2),
        (CliError::Client(ClientError::Invalid("y".to_owned())), 2),
        (CliError::Client(away), 3),
        (CliError::Client(other), 3),
    ] {
        assert_eq!(error.exit(), code, "{error:?}");
    }
}

#[test]
fn a_refusal_says_what_where_and_what_to_do() {
    let body = br#"{"code":"insufficient_scope","message":"The grant does not hold it.","scope":"data:cards:write",
        "leg":"grant","whoCanFix":"the person","help":"http://x/help/insufficient_scope","outcome":"none",
        "violations":[{"code":"invalid_date","field":"due","expected":"YYYY-MM-DD","got":"soon"}]}"#;
    let refusal = RefusalBody::read(403, body, Some("call_1".to_owned())).unwrap();
    let text = CliError::Client(ClientError::Refused(Box::new(refusal))).text();
    for part in [
        "insufficient_scope",
        "does not hold it",
        "data:cards:write",
        "the person",
        "http://x/help/",
        "call_1",
        "due: invalid_date",
        "\"soon\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
