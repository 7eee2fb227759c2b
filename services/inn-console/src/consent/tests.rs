use inn_protocol::Code;
use inn_protocol::grant::{GrantRequest, GrantRequestStatus};
use inn_protocol::people::Role;

use super::choice::Decision;
use super::lines::groups;
use super::*;
use crate::form::Form;
use crate::samples;

impl ConsentPage {
    pub(crate) fn sample(frame: Frame, request: GrantRequest, app: AppSnapshot, problem: Option<String>) -> Self {
        let fresh = problem.is_none();
        Self::of(Found { frame, fresh, request, app: Some(Arc::new(app)) }, problem, None)
    }
}

fn parse(body: &str) -> Result<Decision, Refusal> {
    Decision::parse(&Form::parse(Some("application/x-www-form-urlencoded"), body.as_bytes()).unwrap())
}

fn granted(body: &str) -> Choice {
    match parse(body).unwrap() {
        Decision::Grant(choice) => choice,
        Decision::Refuse { .. } => panic!("{body} was taken for a no"),
    }
}

#[test]
fn a_part_is_granted_as_it_was_ticked() {
    let choice =
        granted("scope=data%3Acards%3Aread&scope=queue%3Asum-up&others=yes&password=s+e%26cret&decision=grant");
    let approve = choice.approve().unwrap();
    assert_eq!(approve.scopes.unwrap(), ["data:cards:read", "queue:sum-up"]);
    assert!(approve.others_requests && !approve.plain_token);
    assert_eq!((approve.app_record, approve.password.as_deref()), (None, Some("s e&cret")));
}

#[test]
fn nothing_ticked_is_not_taken_for_everything() {
    let refused = granted("decision=grant&password=x&plain=yes").approve().map(|_| ()).unwrap_err();
    assert_eq!(refused.code, Code::InvalidParameter);
}

#[test]
fn others_requests_without_any_kind_of_request_are_asked_back() {
    let refused = granted("decision=grant&scope=data:cards:read&others=yes").approve().map(|_| ()).unwrap_err();
    assert_eq!(refused.code, Code::InvalidParameter);
}

#[test]
fn an_empty_password_is_none_and_never_compared() {
    assert!(granted("decision=grant&scope=a&password=").approve().unwrap().password.is_none());
    assert!(matches!(parse("decision=refuse&password=").unwrap(), Decision::Refuse { password: None }));
}

#[test]
fn a_refusal_ignores_what_is_ticked() {
    let decision = parse("scope=data:cards:read&plain=yes&decision=refuse&password=p").unwrap();
    assert!(matches!(decision, Decision::Refuse { password: Some(password) } if password == "p"));
}

#[test]
fn a_decision_is_never_guessed() {
    let long = format!("decision=grant&scope=a&password={}", "p".repeat(1025));
    let bodies = [
        "",
        "scope=a",
        "decision=",
        "decision=yes",
        "decision=grant&decision=refuse",
        "decision=grant&plain=on",
        "decision=grant&plain=yes&plain=yes",
        "decision=grant&otherss=yes",
        "decision=grant&password=a&password=b",
        &long,
    ];
    for body in bodies {
        let refused = parse(body).map(|_| ()).unwrap_err();
        assert!(matches!(refused.code, Code::InvalidBody | Code::UnknownField), "{body}: {refused}");
    }
}

#[test]
fn only_reading_is_ticked_in_advance() {
    let request = samples::request("a", GrantRequestStatus::Pending);
    let app = samples::app("a", "none");
    let ticked = |chosen: Option<&[String]>| {
        let groups = groups(&request.scopes, &app.definition, chosen);
        assert_eq!(groups.iter().map(|group| group.lines.len()).sum::<usize>(), request.scopes.len());
        let lines = groups.into_iter().flat_map(|group| group.lines);
        lines.filter(|line| line.ticked).map(|line| line.scope).collect::<Vec<_>>()
    };
    assert_eq!(ticked(None), ["data:boards:read", "data:cards:read"]);
    let chosen = ["op:cards.clear".to_owned(), "op:not.asked".to_owned()];
    assert_eq!(ticked(Some(&chosen)), ["op:cards.clear"], "the person's own choice stays, and nothing is added to it");
    assert!(ticked(Some(&[])).is_empty());
}

#[test]
fn what_destroys_is_marked_and_what_is_not_declared_counts_as_destroying() {
    let mut request = samples::request("a", GrantRequestStatus::Pending);
    request.scopes.insert("op:gone".parse().unwrap());
    let groups = groups(&request.scopes, &samples::app("a", "none").definition, None);
    let marked = groups.iter().flat_map(|group| &group.lines).filter(|line| line.destructive);
    assert_eq!(marked.map(|line| line.scope.as_str()).collect::<Vec<_>>(), ["op:cards.clear", "op:gone"]);
}

#[test]
fn a_decided_or_late_request_has_no_form() {
    for status in [GrantRequestStatus::Approved, GrantRequestStatus::Refused, GrantRequestStatus::Expired] {
        let frame = samples::frame(Here::Grants, "a");
        let page = ConsentPage::sample(frame, samples::request("a", status), samples::app("a", "none"), None);
        let text = page.render().unwrap();
        assert!(!text.contains("name=\"decision\"") && !text.contains("name=\"scope\""), "{status:?}");
        assert!(text.contains("class=\"notice\""), "{status:?}");
    }
}

#[test]
fn the_password_is_needed_unless_it_was_just_given() {
    let page = |problem: Option<String>| {
        let (frame, app) = (samples::frame(Here::Grants, "a"), samples::app("a", "none"));
        ConsentPage::sample(frame, samples::request("a", GrantRequestStatus::Pending), app, problem).render().unwrap()
    };
    assert!(page(Some("old".to_owned())).contains("maxlength=\"1024\" required"));
    assert!(!page(None).contains("maxlength=\"1024\" required"));
}

#[test]
fn what_is_an_owners_to_decide_is_not_offered_to_others() {
    let page = |role| {
        let frame = Frame { role, ..samples::frame(Here::Grants, "a") };
        let (request, app) = (samples::request("a", GrantRequestStatus::Pending), samples::app("a", "none"));
        ConsentPage::sample(frame, request, app, None).render().unwrap()
    };
    for field in ["name=\"plain\"", "name=\"others\"", "value=\"refuse\""] {
        assert!(page(Role::Owner).contains(field), "{field}");
        assert!(!page(Role::Editor).contains(field), "{field}");
    }
    assert!(page(Role::Viewer).contains("value=\"grant\""));
}
