//! Fields and options of `inn data`, whose names come from the app and so cannot be declared.

use super::super::error::{CliError, CliResult};

/// Options of every verb; a field of that name is written `name=value`.
const OPTIONS: [&str; 3] = ["url", "agent", "idempotency-key"];
const LIST_OPTIONS: [&str; 6] = ["filter", "sort", "limit", "page", "expand", "fields"];

pub(super) struct Parsed {
    ids: Vec<String>,
    options: Vec<(String, String)>,
    fields: Vec<(String, String)>,
}

impl Parsed {
    pub(super) fn new(verb: &str, rest: &[String]) -> CliResult<Self> {
        let reads = !matches!(verb, "add" | "create" | "set" | "update");
        let mut parsed = Self { ids: Vec::new(), options: Vec::new(), fields: Vec::new() };
        let mut rest = rest.iter().peekable();
        while let Some(arg) = rest.next() {
            if arg == "--json" {
                continue;
            }
            let Some(flag) = arg.strip_prefix("--") else {
                parsed.bare(arg, reads)?;
                continue;
            };
            let (name, value) = if let Some((name, value)) = flag.split_once('=') {
                (name, value.to_owned())
            } else {
                let next = rest.next_if(|next| !next.starts_with("--"));
                (flag, next.cloned().ok_or_else(|| no_value(flag))?)
            };
            let is_option = OPTIONS.contains(&name) || (reads && LIST_OPTIONS.contains(&name));
            if name.is_empty() || (reads && !is_option) {
                return Err(CliError::Usage(format!("`{arg}` is not an option of {verb}")));
            }
            let list = if is_option { &mut parsed.options } else { &mut parsed.fields };
            list.push((name.to_owned(), value));
        }
        Ok(parsed)
    }

    fn bare(&mut self, arg: &str, reads: bool) -> CliResult<()> {
        match arg.split_once('=') {
            Some((name, value)) if !reads => self.fields.push((name.to_owned(), value.to_owned())),
            _ if arg.starts_with('-') && arg.len() > 1 => {
                return Err(CliError::Usage(format!("`{arg}` is not understood: a field is written --name value")));
            }
            _ => self.ids.push(arg.to_owned()),
        }
        Ok(())
    }

    /// The value of an option; the last one counts.
    pub(super) fn option(&self, name: &str) -> Option<String> {
        self.options.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    pub(super) fn ids(&self, count: usize) -> CliResult<&[String]> {
        if self.ids.len() == count {
            return Ok(&self.ids);
        }
        let what = match (count, self.ids.get(count)) {
            (_, Some(surplus)) => format!("`{surplus}` is one word too many; a field is written --name value"),
            (_, None) => "which record? Its id is missing".to_owned(),
        };
        Err(CliError::Usage(what))
    }

    pub(super) fn one_id(&self) -> CliResult<&str> {
        Ok(self.ids(1)?.first().map_or("", String::as_str))
    }
}

fn no_value(flag: &str) -> CliError {
    CliError::Usage(format!("--{flag} has no value. A yes is written --{flag} true, nothing --{flag} \"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(verb: &str, args: &[&str]) -> CliResult<Parsed> {
        Parsed::new(verb, &args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn fields_come_in_three_spellings() {
        let parsed =
            parse("set", &["id1", "--title", "Eat chicken", "--due=tomorrow", "filter=x=y", "--json", "--n", "-3"])
                .unwrap();
        let fields: Vec<_> = parsed.fields().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(fields, [("title", "Eat chicken"), ("due", "tomorrow"), ("filter", "x=y"), ("n", "-3")]);
        assert_eq!(parsed.one_id().unwrap(), "id1");
    }

    #[test]
    fn a_flag_without_a_value_is_refused_and_never_a_yes() {
        for args in [&["--archived"][..], &["--archived", "--title", "x"], &["--title", "x", "--archived"]] {
            let error = parse("add", args).err().unwrap();
            assert!(error.text().contains("--archived true"), "{}", error.text());
            assert_eq!(error.exit(), 2);
        }
        assert_eq!(parse("add", &["--note", ""]).unwrap().fields(), [("note".to_owned(), String::new())]);
    }

    #[test]
    fn a_reading_verb_knows_its_options_and_nothing_else() {
        let parsed = parse("ls", &["--filter", "a=1", "--agent", "bot"]).unwrap();
        assert_eq!((parsed.option("filter").as_deref(), parsed.option("agent").as_deref()), (Some("a=1"), Some("bot")));
        assert!(parse("ls", &["--title", "x"]).is_err());
        assert!(parse("get", &["-x"]).is_err());
        assert!(parse("get", &[]).unwrap().one_id().is_err());
        assert!(parse("get", &["a", "b"]).unwrap().one_id().is_err());
    }
}
