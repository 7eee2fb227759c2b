//! Does the release work on the stored data? Asked inside the transaction that activates it.

use deadpool_postgres::Transaction;
use inn_ports::StoreResult;
use inn_protocol::app::AppDefinition;
use inn_protocol::auth_options::AuthOptions;
use inn_protocol::model::{Collection, Model};
use inn_protocol::{AppId, Code, Refusal};
use inn_rules::filter::{AuthFacts, Scope, check_rule, compile};

use crate::columns::{row_json, table};
use crate::error::chain;
use crate::filter_sql::{SqlParams, render};

/// Reads a row of every collection and runs every rule once. The first thing that does not work is the refusal.
pub(super) async fn check(tx: &Transaction<'_>, app: AppId, definition: &AppDefinition) -> StoreResult<()> {
    let model = &definition.model;
    for collection in &model.collections {
        let table = table(app, collection);
        let read = format!("SELECT {} FROM {table} AS t LIMIT 1", row_json(collection, "t"));
        tx.query(&read, &[]).await.map_err(|error| failed(&collection.name, &error))?;
        for (name, rule) in rules(collection) {
            check_one(tx, app, &table, collection, model, &format!("{}.{name}", collection.name), rule).await?;
        }
        for (name, rule) in sign_in_rules(collection) {
            check_one(tx, app, &table, collection, model, &format!("{}.{name}", collection.name), &rule).await?;
        }
    }
    Ok(())
}

async fn check_one(
    tx: &Transaction<'_>,
    app: AppId,
    table: &str,
    collection: &Collection,
    model: &Model,
    place: &str,
    rule: &str,
) -> StoreResult<()> {
    check_rule(rule, collection, model).map_err(|error| error.into_rule_refusal(place))?;
    let auth = AuthFacts::nobody();
    let scope = Scope { collection, model, now: chrono::DateTime::UNIX_EPOCH, auth: &auth, see_hidden: true };
    let expr = compile(rule, &scope).map_err(|error| error.into_rule_refusal(place))?;
    let mut params = SqlParams::starting_at(1);
    let condition = render(&expr, app, "t", &mut params);
    let run = format!("SELECT 1 FROM {table} AS t WHERE {condition} LIMIT 1");
    tx.query_typed(&run, &params.typed()).await.map_err(|error| failed(place, &error))?;
    Ok(())
}

/// Rules that say something; none and empty ones need no check.
fn rules(collection: &Collection) -> impl Iterator<Item = (&'static str, &str)> {
    [
        ("listRule", &collection.list_rule),
        ("viewRule", &collection.view_rule),
        ("createRule", &collection.create_rule),
        ("updateRule", &collection.update_rule),
        ("deleteRule", &collection.delete_rule),
    ]
    .into_iter()
    .filter_map(|(name, rule)| Some((name, rule.as_deref().filter(|rule| !rule.is_empty())?)))
}

/// Those of an auth collection that are about signing in.
fn sign_in_rules(collection: &Collection) -> impl Iterator<Item = (&'static str, String)> {
    let options = if collection.is_auth() { collection.auth_options() } else { AuthOptions::default() };
    [
        ("authRule", options.auth_rule),
        ("manageRule", options.manage_rule),
        ("mfa.rule", options.mfa.enabled.then_some(options.mfa.rule)),
    ]
    .into_iter()
    .filter_map(|(name, rule)| Some((name, rule.filter(|rule| !rule.is_empty())?)))
}

fn failed(place: &str, error: &tokio_postgres::Error) -> Refusal {
    tracing::error!(place, error = %chain(error), "the health check of a release failed");
    let message = format!(
        "The release could not be activated: {place} does not work on the stored records; the log of the host has the cause."
    );
    Refusal::new(Code::DeployFailed, message)
}
