//! What a form sent.

use inn_protocol::{Code, Refusal};

/// More pairs than any form of ours has.
const MAX_PAIRS: usize = 600;

/// The pairs of an `application/x-www-form-urlencoded` body, decoded, in order.
#[derive(Debug)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    pub(crate) fn parse(content_type: Option<&str>, body: &[u8]) -> Result<Self, Refusal> {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Refusal::new(
                Code::UnsupportedMediaType,
                "This address takes the console's own form. Programs use the API below /v1.",
            ));
        }
        let pairs: Vec<_> = url::form_urlencoded::parse(body).into_owned().take(MAX_PAIRS + 1).collect();
        if pairs.len() > MAX_PAIRS {
            return Err(Refusal::new(Code::InvalidBody, format!("The form has more than {MAX_PAIRS} fields.")));
        }
        Ok(Self(pairs))
    }

    /// Refuses fields the form does not have: they would be ignored silently otherwise.
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), Refusal> {
        match self.0.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(60).collect();
                Err(Refusal::new(Code::UnknownField, format!("The form has no field \"{name}\".")))
            }
        }
    }

    /// The one value of a field; `None` when it is absent or empty.
    pub(crate) fn one<'f>(&'f self, name: &'f str) -> Result<Option<&'f str>, Refusal> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(Refusal::new(
                Code::InvalidBody,
                format!("The form says \"{name}\" twice; which one counts is not clear."),
            ));
        }
        Ok(first.filter(|value| !value.is_empty()))
    }

    pub(crate) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a box was ticked. A ticked box says `yes`, and nothing else is taken for a yes.
    pub(crate) fn ticked(&self, name: &str) -> Result<bool, Refusal> {
        match self.one(name)? {
            None => Ok(false),
            Some("yes") => Ok(true),
            Some(_) => Err(Refusal::new(Code::InvalidBody, format!("\"{name}\" must be yes, or left out."))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URLENCODED: Option<&str> = Some("application/x-www-form-urlencoded; charset=UTF-8");

    fn form(body: &str) -> Form {
        Form::parse(URLENCODED, body.as_bytes()).unwrap()
    }

    #[test]
    fn only_a_form_is_read_as_a_form() {
        for kind in
            [None, Some(""), Some("application/json"), Some("multipart/form-data; boundary=x"), Some("text/plain")]
        {
            assert_eq!(Form::parse(kind, b"a=1").unwrap_err().code, Code::UnsupportedMediaType, "{kind:?}");
        }
    }

    #[test]
    fn a_field_said_twice_or_unknown_is_refused_and_not_guessed() {
        let form = form("a=1&a=2&b=+x%2By&c=");
        assert_eq!(form.one("a").unwrap_err().code, Code::InvalidBody);
        assert_eq!(form.one("b").unwrap(), Some(" x+y"));
        assert_eq!((form.one("c").unwrap(), form.one("d").unwrap()), (None, None));
        assert_eq!(form.only(&["a", "b"]).unwrap_err().code, Code::UnknownField);
        assert!(form.only(&["a", "b", "c"]).is_ok());
    }

    #[test]
    fn a_tick_is_yes_and_nothing_else() {
        assert!(form("x=yes").ticked("x").unwrap());
        assert!(!form("y=yes").ticked("x").unwrap());
        for body in ["x=on", "x=no", "x=true", "x=yes&x=yes"] {
            assert!(form(body).ticked("x").is_err(), "{body}");
        }
    }

    #[test]
    fn a_form_with_too_many_fields_is_refused() {
        let body = "scope=x&".repeat(MAX_PAIRS + 1);
        assert_eq!(Form::parse(URLENCODED, body.as_bytes()).unwrap_err().code, Code::InvalidBody);
    }
}
