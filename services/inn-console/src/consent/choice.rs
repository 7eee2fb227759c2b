//! What the person chose, read strictly: a yes is never guessed.

use inn_grants::app_token;
use inn_http::api::Approve;
use inn_protocol::{Code, Refusal};

use crate::form::Form;

/// Longest password that is compared at all; a hash of a longer one would only cost time.
const MAX_PASSWORD: usize = 1024;

pub(crate) enum Decision {
    Grant(Choice),
    Refuse { password: Option<String> },
}

/// The ticked lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) scopes: Vec<String>,
    /// Requests of other members and of the app's users too.
    pub(crate) others: bool,
    pub(crate) plain: bool,
    pub(crate) app_record: Option<String>,
    password: Option<String>,
}

impl Decision {
    pub(crate) fn parse(form: &Form) -> Result<Self, Refusal> {
        form.only(&["decision", "scope", "others", "plain", "record", "password"])?;
        let password = form.one("password")?.map(str::to_owned);
        if password.as_ref().is_some_and(|password| password.len() > MAX_PASSWORD) {
            return Err(Refusal::new(Code::InvalidBody, format!("A password has at most {MAX_PASSWORD} bytes.")));
        }
        match form.one("decision")? {
            Some("grant") => Ok(Self::Grant(Choice {
                scopes: form.all("scope").map(str::to_owned).collect(),
                others: form.ticked("others")?,
                plain: form.ticked("plain")?,
                app_record: form.one("record")?.map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned),
                password,
            })),
            Some("refuse") => Ok(Self::Refuse { password }),
            _ => Err(Refusal::new(Code::InvalidBody, "The form says neither grant nor refuse; nothing was decided.")),
        }
    }
}

impl Choice {
    /// The consent as the API takes it. Nothing ticked is not taken for everything.
    pub(crate) fn approve(&self) -> Result<Approve, Refusal> {
        if self.scopes.is_empty() {
            return Err(Refusal::new(
                Code::InvalidParameter,
                "Nothing is ticked. Tick what the agent may do, or refuse.",
            ));
        }
        if self.others && !self.scopes.iter().any(|scope| scope.starts_with("queue:")) {
            let message =
                "Requests of others are ticked, but no kind of request the agent may answer. Tick one, or untick this.";
            return Err(Refusal::new(Code::InvalidParameter, message));
        }
        // A token of the app's own sign-in proves whose record it is; an id alone is an owner's word.
        let given = self.app_record.clone();
        let (app_token, app_record) = match given {
            Some(token) if app_token::is_one(&token) => (Some(token), None),
            record => (None, record),
        };
        Ok(Approve {
            code: None,
            scopes: Some(self.scopes.clone()),
            others_requests: self.others,
            plain_token: self.plain,
            app_record,
            app_token,
            password: self.password.clone(),
        })
    }
}
