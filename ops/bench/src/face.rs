//! One side of the comparison: where records are and who asks. The same for Innkeeper and for PocketBase.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use hyper::Method;
use inn_client::{Client, Outgoing, Papers, query};
use serde_json::Value;

use crate::cards;
use crate::load::{Supply, Target, slice};
use crate::wire::{Ready, ready};

/// A caller at an address.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    pub(crate) client: Client,
    /// Path in front of `/api`.
    pub(crate) prefix: String,
    pub(crate) papers: Papers,
    pub(crate) target: Target,
}

/// Ids of what was put in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stock {
    pub(crate) board: String,
    pub(crate) lists: Vec<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) cards: Vec<String>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    View,
    List,
    /// The list without its total.
    Skip,
    /// Cards with any label of a name: a join over a relation to many.
    AnyLabel,
    /// Cards whose labels all have the name.
    EveryLabel,
    Update,
    Create,
}

impl Case {
    pub(crate) const ALL: [Self; 7] =
        [Self::View, Self::List, Self::Skip, Self::AnyLabel, Self::EveryLabel, Self::Update, Self::Create];
    /// Those that answer a page.
    pub(crate) const LISTS: [Self; 4] = [Self::List, Self::Skip, Self::AnyLabel, Self::EveryLabel];

    /// What `--only` calls it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::List => "list",
            Self::Skip => "skip",
            Self::AnyLabel => "any",
            Self::EveryLabel => "every",
            Self::Update => "update",
            Self::Create => "create",
        }
    }

    pub(crate) const fn is_write(self) -> bool {
        matches!(self, Self::Update | Self::Create)
    }
}

impl Face {
    pub(crate) fn with(&self, papers: Papers) -> Self {
        Self { papers, ..self.clone() }
    }

    fn records(&self, entity: &str) -> String {
        format!("{}/api/collections/{entity}/records", self.prefix)
    }

    /// One call outside of any measurement.
    pub(crate) async fn call(&self, outgoing: &Outgoing) -> anyhow::Result<Value> {
        let answer = self.client.call_once(outgoing, &self.papers).await?;
        if !answer.is_success() {
            bail!("{} answered {}: {}", answer.url, answer.status, String::from_utf8_lossy(&answer.body));
        }
        Ok(answer.json()?)
    }

    async fn add(&self, entity: &str, body: &Value) -> anyhow::Result<String> {
        let record = self.call(&Outgoing::post(self.records(entity), body)).await?;
        text(&record, "id")
    }

    /// Number of cards that are really there.
    pub(crate) async fn count(&self) -> anyhow::Result<u64> {
        let page = self.call(&Outgoing::get(format!("{}?perPage=1", self.records("cards")))).await?;
        page.get("totalItems").and_then(Value::as_u64).context("a list without totalItems")
    }

    /// One board, its lists and labels, and so many cards, through the API.
    pub(crate) async fn seed(&self, cards: usize) -> anyhow::Result<Stock> {
        let board = self.add("boards", &serde_json::json!({"name": "Measured"})).await?;
        let mut stock = Stock { board, ..Stock::default() };
        for number in 0..cards::LISTS {
            let list =
                serde_json::json!({"title": format!("List {number}"), "board": stock.board, "position": number + 1});
            stock.lists.push(self.add("lists", &list).await?);
        }
        for number in 0..cards::LABELS {
            let label = serde_json::json!({"name": format!("lb{number}"), "board": stock.board});
            stock.labels.push(self.add("labels", &label).await?);
        }
        let path = self.records("cards");
        let bodies = (0..cards).map(|number| {
            let list = stock.lists.get(cards::list_of(number)).map_or("", String::as_str);
            Outgoing::post(path.clone(), &cards::card(number, list, &stock.labels))
        });
        let supply = Supply::new(self.prepare(&bodies.collect::<Vec<_>>())?);
        let tally = slice(self.target, 8, Duration::from_mins(2), supply).await?;
        if let Some(failure) = tally.failure {
            bail!("seeding failed: {failure}");
        }
        let mut page = 1;
        while stock.cards.len() < cards {
            let path = format!("{path}?perPage=500&sort=id&fields=id&page={page}");
            let answer = self.call(&Outgoing::get(path)).await?;
            let items = answer.get("items").and_then(Value::as_array).filter(|items| !items.is_empty());
            let items = items.ok_or_else(|| anyhow!("only {} of {cards} cards are there", stock.cards.len()))?;
            for item in items {
                stock.cards.push(text(item, "id")?);
            }
            page += 1;
        }
        Ok(stock)
    }

    /// What a filtered list answers, for comparing the sides: how many match and the positions on the first page.
    pub(crate) async fn first_page(
        &self,
        case: Case,
        stock: &Stock,
    ) -> anyhow::Result<(Option<u64>, Vec<Option<u64>>)> {
        let page = self.call(&self.outgoing(case, stock, 3)).await?;
        let items = page.get("items").and_then(Value::as_array).context("a list without items")?;
        // A number may be written as 1 or as 1.0.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = |value: &Value| value.as_f64().map(|number| number as u64);
        let positions = items.iter().map(|item| item.get("position").and_then(whole)).collect();
        Ok((page.get("totalItems").and_then(Value::as_u64), positions))
    }

    fn page(&self, filter: &str, skip_total: &str) -> Outgoing {
        let pairs = [("perPage", "30"), ("sort", "position"), ("skipTotal", skip_total), ("filter", filter)];
        Outgoing::get(format!("{}{}", self.records("cards"), query(pairs)))
    }

    /// Call number `number` of a case.
    pub(crate) fn outgoing(&self, case: Case, stock: &Stock, number: usize) -> Outgoing {
        let cycle = |of: &[String]| of.get(number % of.len().max(1)).cloned().unwrap_or_default();
        let one = || {
            // 7919 is prime: neighbours in time are no neighbours on disk.
            let place = number.wrapping_mul(7919) % stock.cards.len().max(1);
            let id = stock.cards.get(place).map_or("", String::as_str);
            format!("{}/{id}", self.records("cards"))
        };
        match case {
            Case::View => Outgoing::get(one()),
            Case::List => self.page(&format!("list='{}' && archived=false", cycle(&stock.lists)), "0"),
            Case::Skip => self.page(&format!("list='{}' && archived=false", cycle(&stock.lists)), "1"),
            Case::AnyLabel => self.page(&format!("labels.name?='lb{}'", number % cards::LABELS), "0"),
            Case::EveryLabel => self.page(&format!("labels.name='lb{}'", number % cards::LABELS), "0"),
            Case::Update => {
                let change = serde_json::json!({"position": number + 1, "title": format!("changed {number}")});
                Outgoing::new(Method::PATCH, one()).json(&change)
            }
            Case::Create => {
                let card = cards::new_card(number, &cycle(&stock.lists), &cycle(&stock.labels));
                Outgoing::post(self.records("cards"), &card)
            }
        }
    }

    /// Signs and writes out calls on all processors, before any clock starts.
    pub(crate) fn prepare(&self, calls: &[Outgoing]) -> anyhow::Result<Vec<Ready>> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let part = calls.len().div_ceil(threads).max(1);
        let one = |call: &Outgoing| ready(&self.client.prepare(call, &self.papers)?);
        std::thread::scope(|scope| {
            let parts: Vec<_> =
                calls.chunks(part).map(|calls| scope.spawn(|| calls.iter().map(one).collect::<Vec<_>>())).collect();
            let done = parts.into_iter().flat_map(|part| part.join().unwrap_or_default());
            done.collect::<anyhow::Result<Vec<_>>>()
        })
    }
}

pub(crate) fn text(value: &Value, name: &str) -> anyhow::Result<String> {
    let found = value.get(name).and_then(Value::as_str).map(str::to_owned);
    found.ok_or_else(|| anyhow!("an answer without {name}: {value}"))
}
