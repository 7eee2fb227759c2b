//! What nodes say to each other: one line of text, `<node> <hint> <hint> …`.
//!
//! A hint is `*` (look at everything again) or a topic: `r:app_…` (requests of an app), `p:ten_…` (policy of a tenant),
//! `c:` (changes of records). Nodes of a release that knows a topic not yet pass the whole message over.

use std::collections::HashSet;

use inn_ports::Topic;
use uuid::Uuid;

/// Topics one message carries. More than that collapse into "everything": a hint costs its reader a query anyway.
pub(crate) const MAX_TOPICS: usize = 512;

/// A message longer than this is not one of ours.
const MAX_BYTES: usize = 64 * (MAX_TOPICS + 1);

/// What is to be looked at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    Topics(HashSet<Topic>),
    Everything,
}

impl Default for News {
    fn default() -> Self {
        Self::Topics(HashSet::new())
    }
}

impl News {
    pub(crate) fn add(&mut self, topic: Topic) {
        if let Self::Topics(topics) = self {
            if topics.len() >= MAX_TOPICS && !topics.contains(&topic) {
                *self = Self::Everything;
            } else {
                topics.insert(topic);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Topics(topics) if topics.is_empty())
    }
}

pub(crate) fn write(node: Uuid, news: &News) -> String {
    let mut text = node.simple().to_string();
    match news {
        News::Everything => text.push_str(" *"),
        News::Topics(topics) => {
            for topic in topics {
                let (kind, id) = match topic {
                    Topic::Requests(app) => (" r:", app.to_string()),
                    Topic::Policy(tenant) => (" p:", tenant.to_string()),
                    Topic::Changes => (" c:", String::new()),
                };
                text.push_str(kind);
                text.push_str(&id);
            }
        }
    }
    text
}

/// `None` when the text is not a message of a node.
pub(crate) fn read(text: &str) -> Option<(Uuid, News)> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut words = text.split(' ');
    let node = Uuid::try_parse(words.next()?).ok()?;
    let mut news = News::default();
    for word in words {
        if word == "*" {
            return Some((node, News::Everything));
        }
        let topic = match word.split_once(':')? {
            ("r", app) => Topic::Requests(app.parse().ok()?),
            ("p", tenant) => Topic::Policy(tenant.parse().ok()?),
            ("c", "") => Topic::Changes,
            _ => return None,
        };
        news.add(topic);
    }
    Some((node, news))
}

#[cfg(test)]
mod tests {
    use inn_protocol::{AppId, TenantId};

    use super::*;

    #[test]
    fn a_message_reads_back_what_was_written() {
        let node = Uuid::new_v4();
        let mut news = News::default();
        news.add(Topic::Requests(AppId::new()));
        news.add(Topic::Policy(TenantId::new()));
        news.add(Topic::Changes);
        assert_eq!(read(&write(node, &news)), Some((node, news)));
        assert_eq!(read(&write(node, &News::Everything)), Some((node, News::Everything)));
    }

    #[test]
    fn the_largest_message_is_still_read() {
        let node = Uuid::new_v4();
        let mut news = News::default();
        for _ in 0..MAX_TOPICS {
            news.add(Topic::Requests(AppId::new()));
        }
        assert_eq!(read(&write(node, &news)), Some((node, news)));
    }

    #[test]
    fn too_many_topics_become_everything() {
        let mut news = News::default();
        for _ in 0..=MAX_TOPICS {
            news.add(Topic::Requests(AppId::new()));
        }
        assert_eq!(news, News::Everything);
    }

    #[test]
    fn what_no_node_writes_is_not_a_message() {
        let node = Uuid::new_v4().simple();
        let app = AppId::new();
        for text in [
            String::new(),
            "hello".to_owned(),
            format!("{node} x:{app}"),
            format!("{node} p:{app}"),
            format!("{node} r:"),
            format!("{node} c:{app}"),
            format!("{node} r:{app} ?"),
            format!("{node}{}", format!(" r:{app}").repeat(MAX_TOPICS * 2)),
        ] {
            assert_eq!(read(&text), None, "{text}");
        }
    }
}
