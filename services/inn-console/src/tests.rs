//! What holds for every page.

use crate::samples::{HOSTILE, every_page, write_to};

/// The start tags of a page: `("input", "name=\"x\" …")`.
fn tags(page: &str) -> Vec<(&str, &str)> {
    let starts = page.split('<').skip(1).filter(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic()));
    starts.filter_map(|tag| tag.split_once('>')).map(|(tag, _)| tag.split_once(' ').unwrap_or((tag, ""))).collect()
}

fn attribute<'t>(attributes: &'t str, name: &str) -> Option<&'t str> {
    let rest = attributes.split_once(&format!("{name}=\""))?.1;
    rest.split_once('"').map(|(value, _)| value)
}

#[test]
fn a_hostile_name_is_text_on_every_page() {
    for (name, page) in every_page(HOSTILE) {
        assert!(!page.contains("<script"), "{name}");
        assert!(!page.contains("onload=\"x"), "{name}: a quote ended an attribute");
        assert!(page.contains("&#60;script&#62;"), "{name}: the name is there, escaped");
        for (tag, attributes) in tags(&page) {
            assert!(!["script", "style", "iframe", "object"].contains(&tag), "{name}: <{tag}>");
            // Between the quotes is text; what stands outside is an attribute.
            let mut names = attributes.split('"').step_by(2).flat_map(str::split_whitespace);
            assert!(!names.any(|part| part.starts_with("on")), "{name}: <{tag} {attributes}>");
            assert!(!attributes.contains("style="), "{name}: the policy forbids inline style");
        }
    }
}

#[test]
fn every_page_has_a_language_a_title_one_heading_and_a_way_past_the_header() {
    for (name, page) in every_page("Ada") {
        assert!(page.contains("<html lang=\"en\">"), "{name}");
        assert!(page.contains("width=device-width"), "{name}");
        assert!(page.contains(" · Innkeeper</title>") && !page.contains("<title> "), "{name}");
        assert_eq!(page.matches("<h1>").count(), 1, "{name}");
        assert!(page.contains("href=\"#main\"") && page.contains("id=\"main\""), "{name}");
    }
}

#[test]
fn every_field_has_a_label_and_every_form_ends_on_this_origin() {
    for (name, page) in every_page("Ada") {
        for (tag, attributes) in tags(&page) {
            let hidden = attributes.contains("type=\"hidden\"") || attributes.contains("type=\"checkbox\"");
            // For password managers only; it has no name and is never sent.
            let hidden = hidden || (attributes.contains("aria-hidden") && attribute(attributes, "name").is_none());
            if ["input", "select"].contains(&tag) && !hidden {
                let id = attribute(attributes, "id").unwrap_or_else(|| panic!("{name}: <{tag} {attributes}>"));
                assert!(page.contains(&format!("<label for=\"{id}\"")), "{name}: {id}");
            }
            if tag == "form" {
                assert!(attribute(attributes, "action").is_some_and(|to| to.starts_with('/')), "{name}");
            }
        }
        let ticks = page.matches("type=\"checkbox\"").count();
        assert_eq!(page.matches("<label class=\"tick\"><input type=\"checkbox\"").count(), ticks, "{name}");
    }
}

#[test]
fn times_can_be_read_by_machines() {
    for (name, page) in every_page("Ada") {
        assert_eq!(page.matches(" UTC</time>").count(), page.matches("<time datetime=\"2026-").count(), "{name}");
    }
}

#[test]
fn a_name_an_agent_gave_itself_is_marked_as_claimed() {
    for (name, page) in every_page("Ada") {
        if ["home", "consent", "grants", "grant", "audit"].contains(&name) {
            assert!(page.contains(">claimed"), "{name}");
        }
    }
}

/// `INN_CONSOLE_PAGES=<folder>` keeps the pages to be looked at in a browser.
#[test]
fn pages_can_be_written_down_to_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("INN_CONSOLE_PAGES").map(std::path::PathBuf::from);
    let folder = kept.as_deref().unwrap_or(folder.path());
    let pages = every_page("Ada");
    write_to(folder, &pages);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), pages.len() + 2);
}
