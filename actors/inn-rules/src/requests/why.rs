//! What a request waits for, in words of people. Pure: what the database and the app say of it, in; reasons, out.

use chrono::{DateTime, Utc};
use inn_protocol::queue::LimitKind;
use inn_protocol::request::{QueueRequest, RequestState};
use serde::Serialize;

/// What is known of a request's surroundings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The app's release declares the capability, and an owner consented to it.
    pub declared: bool,
    pub consented: bool,
    /// Agents with a live grant for the capability whose person may answer, and how many of them may answer this requester.
    pub agents: i64,
    pub able_agents: i64,
    /// Caps that are used up, of what this request would count for (agents' own caps left out).
    pub full: Vec<(LimitKind, i64)>,
    /// One with the same key is being worked on, and this one waits for that.
    pub twin: bool,
    /// Waiting requests of the same requester that come first, and other requesters with something waiting.
    pub ahead: i64,
    pub other_requesters: i64,
    /// Not before this moment: a pause after a failed attempt.
    pub pause_until: Option<DateTime<Utc>>,
}

/// One thing a request waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    pub code: &'static str,
    pub sentence: String,
    /// Who can do what about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

fn reason(code: &'static str, sentence: impl Into<String>) -> Reason {
    Reason { code, sentence: sentence.into(), fix: None }
}

impl Reason {
    fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

/// Everything it waits for, what stops it first. Empty for what has ended.
pub fn why(request: &QueueRequest, around: &Surroundings) -> Vec<Reason> {
    match request.state {
        RequestState::Submitted => waiting(request, around),
        RequestState::Working if !request.acknowledged => {
            vec![reason("acknowledgement", "An agent has claimed it and must speak within seconds, or it goes back.")]
        }
        RequestState::Working => {
            let until =
                request.lease_until.map(|until| format!(" It has until {} to say that it still does.", moment(until)));
            vec![reason("agent_works", format!("An agent works on it.{}", until.unwrap_or_default()))]
        }
        RequestState::InputRequired => {
            let until = request.lease_until.map(|until| format!(" until {}", moment(until))).unwrap_or_default();
            let sentence =
                format!("Its agent has asked {} something and waits for the answer{until}.", request.requester_label);
            vec![reason("answer", sentence).fix("The requester or an editor, with `inn request answer`.")]
        }
        RequestState::Completed | RequestState::Failed | RequestState::Canceled => Vec::new(),
    }
}

fn waiting(request: &QueueRequest, around: &Surroundings) -> Vec<Reason> {
    let capability = &request.capability;
    let mut reasons = Vec::new();
    if !around.declared {
        let sentence = format!("The app's release no longer declares \"{capability}\".");
        reasons.push(reason("not_declared", sentence).fix("Whoever deploys the app, or cancel the request."));
    } else if !around.consented {
        let sentence = format!("The app's owner has taken back the consent to \"{capability}\".");
        reasons.push(reason("not_consented", sentence).fix("An owner of the tenant, at the next deploy."));
    }
    if around.agents == 0 {
        let sentence = format!("No agent may claim \"{capability}\" of this app.");
        reasons
            .push(reason("no_agent", sentence).fix(format!("A member, by granting `queue:{capability}` to an agent.")));
    } else if around.able_agents == 0 {
        let sentence = format!("No agent may work for {}: each answers its own person only.", request.requester_label);
        let fix = format!(
            "{} by granting an agent, or the others by a grant that covers others' requests.",
            request.requester_label
        );
        reasons.push(reason("no_agent_for_requester", sentence).fix(fix));
    }
    if let Some(until) = around.pause_until {
        reasons.push(reason("pause", format!("The last attempt failed; the next one may begin at {}.", moment(until))));
    }
    for (kind, most) in &around.full {
        let sentence = format!("The {} has {most} requests being worked on, which is its cap.", kind.as_str());
        reasons.push(reason("cap", sentence).fix("Time, or an owner with `inn request limit`."));
    }
    if around.twin {
        reasons.push(reason("twin", "An identical request is being worked on, and only one may be at a time."));
    }
    if around.ahead > 0 {
        reasons.push(reason("ahead", format!("{} of the same requester come first.", around.ahead)));
    }
    if around.other_requesters > 0 {
        reasons.push(reason("turns", format!("{} other requesters take turns with it.", around.other_requesters)));
    }
    if around.able_agents > 0 {
        let agents = if around.able_agents == 1 {
            "The one agent".to_owned()
        } else {
            format!("One of the {} agents", around.able_agents)
        };
        reasons.push(reason("agent", format!("{agents} that may claim it has to come for it.")));
    }
    reasons
}

fn moment(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use inn_protocol::{AppId, RequestId, TenantId};
    use serde_json::json;

    use super::*;

    fn request(state: RequestState) -> QueueRequest {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        QueueRequest {
            id: RequestId::new(),
            tenant: TenantId::new(),
            app: AppId::new(),
            app_slug: "kanban".to_owned(),
            capability: "summarise".to_owned(),
            payload: json!({}),
            state,
            requester: None,
            requester_label: "Ada".to_owned(),
            attempt: 0,
            attempts: 3,
            epoch: 0,
            holder: None,
            acknowledged: true,
            lease_seconds: 60,
            lease_until: Some(at),
            hard_until: None,
            hard_seconds: 3_600,
            priority: 3,
            progress: None,
            result: None,
            reason: None,
            questions: Vec::new(),
            past_attempts: Vec::new(),
            replay_of: None,
            created_at: at,
            updated_at: at,
        }
    }

    fn free() -> Surroundings {
        Surroundings { declared: true, consented: true, agents: 2, able_agents: 1, ..Surroundings::default() }
    }

    fn codes(state: RequestState, around: &Surroundings) -> Vec<&'static str> {
        why(&request(state), around).iter().map(|reason| reason.code).collect()
    }

    #[test]
    fn every_open_request_waits_for_something_and_no_ended_one_does() {
        assert_eq!(codes(RequestState::Submitted, &free()), ["agent"]);
        assert_eq!(codes(RequestState::Working, &free()), ["agent_works"]);
        assert_eq!(codes(RequestState::InputRequired, &free()), ["answer"]);
        for ended in [RequestState::Completed, RequestState::Failed, RequestState::Canceled] {
            assert!(codes(ended, &free()).is_empty());
        }
        let silent = QueueRequest { acknowledged: false, ..request(RequestState::Working) };
        assert_eq!(why(&silent, &free())[0].code, "acknowledgement");
    }

    #[test]
    fn what_stops_a_request_is_told_before_what_only_delays_it() {
        let at = DateTime::from_timestamp(1_800_000_060, 0);
        for (around, expected) in [
            (Surroundings { declared: false, ..free() }, vec!["not_declared", "agent"]),
            (Surroundings { consented: false, ..free() }, vec!["not_consented", "agent"]),
            (Surroundings { agents: 0, able_agents: 0, ..free() }, vec!["no_agent"]),
            (Surroundings { able_agents: 0, ..free() }, vec!["no_agent_for_requester"]),
            (Surroundings { pause_until: at, ahead: 2, ..free() }, vec!["pause", "ahead", "agent"]),
            (Surroundings { full: vec![(LimitKind::App, 5)], ..free() }, vec!["cap", "agent"]),
            (Surroundings { twin: true, other_requesters: 4, ..free() }, vec!["twin", "turns", "agent"]),
        ] {
            assert_eq!(codes(RequestState::Submitted, &around), expected, "{around:?}");
        }
    }
}
