//! One page per error code, in the crate so that it can neither drift from the code nor be missing on a machine.

use inn_protocol::Code;

/// All pages in one file: a heading per code, then what it means and what to do.
const PAGES: &str = include_str!("../help/codes.md");

/// The page of a code, heading included.
pub fn page(code: Code) -> Option<&'static str> {
    let heading = format!("## {}\n", code.as_str());
    let start = PAGES.find(&heading)?;
    let rest = PAGES.get(start..)?;
    let end =
        rest.get(heading.len()..).and_then(|after| after.find("\n## ")).map_or(rest.len(), |at| at + heading.len());
    rest.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_that_says_what_to_do() {
        let missing: Vec<&str> = Code::ALL
            .iter()
            .filter(|code| page(**code).is_none_or(|page| page.lines().filter(|line| !line.is_empty()).count() < 2))
            .map(|code| code.as_str())
            .collect();
        assert!(missing.is_empty(), "write a page in services/inn-http/help/codes.md for: {missing:?}");
    }

    #[test]
    fn every_page_belongs_to_a_code() {
        for heading in PAGES.lines().filter_map(|line| line.strip_prefix("## ")) {
            assert!(Code::ALL.iter().any(|code| code.as_str() == heading), "{heading}");
        }
    }
}
