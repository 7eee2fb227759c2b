//! The same questions to the real PocketBase and to ours: the answers must be the same.
//!
//! `INN_DIFFERENTIAL_SEED` makes other choices (default 1), `INN_DIFFERENTIAL_FILTERS` more or fewer of them. Every run writes
//! `differential/<suite>.txt` where cargo builds. What may differ is in `accepted.rs`.

mod accepted;
mod ask;
mod auth;
mod batch;
mod category;
mod clients;
mod dice;
mod filter;
mod lists;
mod paths;
mod realtime;
mod rows;
mod rules;
mod schema;
mod suite;
mod world;
mod writes;

use std::path::PathBuf;

use serde_json::Value;

use dice::Dice;
use rows::Row;
use rules::Set;
use suite::Report;
use world::World;

fn number(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text}")),
        Err(_) => usual,
    }
}

fn filters() -> u64 {
    number("INN_DIFFERENTIAL_FILTERS", 3_000)
}

fn seed() -> u64 {
    number("INN_DIFFERENTIAL_SEED", 1)
}

/// Both sides with these collections and rows, and everybody signed in if there are users.
async fn made(
    binary: PathBuf,
    slug: &'static str,
    mode: &str,
    collections: &[Value],
    rows: Vec<Row>,
) -> Result<World, String> {
    let mut world = World::new(binary, slug, mode, collections).await?;
    world.fill(rows::harbour()).await?;
    if mode == "multi-user" {
        world.fill(rows::users()).await?;
        world.sign_in().await?;
    }
    world.fill(rows).await?;
    Ok(world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_views_answer_as_pocketbase_does() {
    let Some(binary) = world::binary() else { return };
    let mut report = Report::new("lists", seed());
    let world = match made(binary, "lists", "none", &schema::harbour(), Vec::new()).await {
        Ok(world) => world,
        Err(why) => return report.refused(&why),
    };
    let mut dice = Dice::new(seed(), 1);
    report.run(&world, lists::all(&mut dice, filters())).await;
    report.finish(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_kept_and_refused_as_pocketbase_does() {
    let Some(binary) = world::binary() else { return };
    let mut report = Report::new("writes", seed());
    let world = match made(binary, "writes", "none", &schema::yard(), Vec::new()).await {
        Ok(world) => world,
        Err(why) => return report.refused(&why),
    };
    let mut dice = Dice::new(seed(), 2);
    report.tell(&world, writes::all(&mut dice, filters())).await;
    // These meet each other: one after the other, and on where they part.
    for case in writes::unique() {
        report.run(&world, vec![case]).await;
    }
    report.finish(&world).await;
}

/// Gates of one set, asked by everybody.
async fn behind_gates(set: Set, report: &'static str) {
    let Some(binary) = world::binary() else { return };
    let mut report = Report::new(report, seed());
    let mut dice = Dice::new(seed(), 3);
    let mut collections = schema::harbour();
    collections.push(schema::users());
    let gates = set.gates(&mut dice);
    for gate in &gates {
        let rules =
            ["listRule", "viewRule", "createRule", "updateRule", "deleteRule"].map(|rule| gate[rule].to_string());
        report.remark(&format!("{}\n    {}", gate["name"], rules.join("\n    ")));
    }
    collections.extend(gates);
    let world = match made(binary, report.name(), "multi-user", &collections, set.rows()).await {
        Ok(world) => world,
        Err(why) => return report.refused(&why),
    };
    report.run(&world, rules::reads(set, &mut dice)).await;
    report.shrink(&world).await;
    report.tell(&world, rules::writes(set, &mut dice)).await;
    report.finish(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_rules_let_the_same_people_do_the_same() {
    behind_gates(Set::Plain, "plain-rules").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_rules_let_the_same_people_do_the_same() {
    behind_gates(Set::All, "rules").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_answered_as_the_user_it_acts_for() {
    let Some(binary) = world::binary() else { return };
    let mut report = Report::new("agents", seed());
    let mut dice = Dice::new(seed(), 5);
    let mut collections = schema::harbour();
    collections.push(schema::users());
    collections.extend(Set::Plain.gates(&mut dice));
    let mut world = match made(binary, "agents", "multi-user", &collections, Set::Plain.rows()).await {
        Ok(world) => world,
        Err(why) => return report.refused(&why),
    };
    world.hire(&collections).await;
    report.run(&world, rules::by_agents(rules::reads(Set::Plain, &mut dice))).await;
    let stories = rules::writes(Set::Plain, &mut dice).into_iter().map(rules::by_agents).collect();
    report.tell(&world, stories).await;
    report.finish(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn view_collections_answer_as_pocketbases_do() {
    let Some(binary) = world::binary() else { return };
    let mut report = Report::new("views", seed());
    let mut collections = schema::harbour();
    collections.extend(schema::views());
    let world = match made(binary, "views", "none", &collections, Vec::new()).await {
        Ok(world) => world,
        Err(why) => return report.refused(&why),
    };
    let mut dice = Dice::new(seed(), 4);
    report.run(&world, lists::of_views(&mut dice, filters() / 30)).await;
    report.finish(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_land_or_fail_as_pocketbases_do() {
    let Some(binary) = world::binary() else { return };
    let mut report = Report::new("batch", seed());
    let world = match made(binary, "batch", "none", &schema::yard(), Vec::new()).await {
        Ok(world) => world,
        Err(why) => return report.refused(&why),
    };
    // Each sees what the one before has left.
    for case in batch::all() {
        report.run(&world, vec![case]).await;
    }
    report.finish(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_are_made_and_kept_as_pocketbases_are() {
    let Some(binary) = world::binary() else { return };
    let mut report = Report::new("auth", seed());
    let mut collections = schema::harbour();
    collections.extend([schema::users(), schema::pilots()]);
    let world = match made(binary, "auth", "multi-user", &collections, Vec::new()).await {
        Ok(world) => world,
        Err(why) => return report.refused(&why),
    };
    for case in auth::all() {
        report.run(&world, vec![case]).await;
    }
    report.finish(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_hears_what_pocketbase_would_tell() {
    let Some(binary) = world::binary() else { return };
    let mut report = Report::new("realtime", seed());
    let mut collections = schema::harbour();
    collections.push(schema::users());
    let world = match made(binary, "realtime", "multi-user", &collections, Vec::new()).await {
        Ok(world) => world,
        Err(why) => return report.refused(&why),
    };
    match realtime::compare(&world, &mut report).await {
        Ok(()) => report.finish(&world).await,
        Err(why) => report.refused(&why),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_difference_still_occurs() {
    let Some(binary) = world::binary() else { return };
    let mut collections = schema::yard();
    collections.push(schema::users());
    let world = made(binary, "accepted", "multi-user", &collections, Vec::new()).await.expect("ours takes the bundle");
    for accepted in accepted::ACCEPTED {
        let ask = (accepted.example)();
        let (theirs, ours) = world.ask(&ask).await;
        let found = ask::difference(&theirs, &ours).and_then(|_| accepted::reason(&ask, &theirs, &ours));
        let (name, reason) = (accepted.name, accepted.reason);
        assert_eq!(found, Some(name), "no longer so, take it out: {reason}\n{theirs:?}\n{ours:?}");
    }
}
