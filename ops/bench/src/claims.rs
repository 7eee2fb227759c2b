//! Claim and complete: two signed calls a unit. The claims are signed ahead; the answer names what is to be completed,
//! so that call is signed in the measured time.

use anyhow::{Context as _, bail};
use inn_client::Outgoing;
use serde_json::{Value, json};

use crate::face::{Face, text};
use crate::inn::{CAPABILITY, Callers};
use crate::load::{Job, Supply, slice};
use crate::wire::{Connection, ready};

#[derive(Clone)]
pub(crate) struct Claims {
    supply: Supply,
    key: Face,
    /// Requests of one claim.
    batch: usize,
}

impl Claims {
    /// Puts `count` requests into the queue, as the person whom the agent acts for, and prepares as many claims and some
    /// more, for those that find nothing left.
    pub(crate) async fn fill(
        callers: &Callers,
        board: &str,
        count: usize,
        spare: usize,
        batch: usize,
    ) -> anyhow::Result<Self> {
        let path = format!("{}/api/_a2app/tasks", callers.session.prefix);
        let body = json!({"capability": CAPABILITY, "payload": {"board": board}});
        let asks = vec![Outgoing::post(path, &body); count];
        let supply = Supply::new(callers.session.prepare(&asks)?);
        let asked = slice(callers.session.target, 8, std::time::Duration::from_mins(1), supply).await?;
        if let Some(failure) = asked.failure {
            bail!("requests could not be asked: {failure}");
        }
        let claim = Outgoing::post("/v1/requests/claim", &json!({"max": batch, "waitSeconds": 0}));
        // A claim may bring fewer than it asks for; none must be left for the next fill.
        let wanted = if batch > 1 { 2 * count / batch } else { count };
        let claims = callers.key.prepare(&vec![claim; wanted + spare])?;
        Ok(Self { supply: Supply::new(claims), key: callers.key.clone(), batch })
    }
}

impl Job for Claims {
    async fn once(&self, connection: &mut Connection) -> anyhow::Result<bool> {
        let Some(claim) = self.supply.next() else { return Ok(false) };
        let answer = connection.json(claim).await.context("claim")?;
        let items = answer.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if self.batch > 1 {
            return self.complete_all(connection, items).await;
        }
        let Some(request) = items.first() else { return Ok(false) };
        let epoch = request.get("epoch").and_then(Value::as_i64).context("a claim without an epoch")?;
        let body = json!({"epoch": epoch, "result": {"summary": "Nothing is late."}});
        let path = format!("/v1/requests/{}/complete", text(request, "id")?);
        let complete = self.key.client.prepare(&Outgoing::post(path, &body), &self.key.papers)?;
        connection.send_ok(ready(&complete)?).await.context("complete")?;
        Ok(true)
    }
}

impl Claims {
    async fn complete_all(&self, connection: &mut Connection, items: &[Value]) -> anyhow::Result<bool> {
        if items.is_empty() {
            return Ok(false);
        }
        let result = json!({"summary": "Nothing is late."});
        let done: Vec<Value> = items
            .iter()
            .map(|request| json!({"id": request["id"], "epoch": request["epoch"], "result": result}))
            .collect();
        let body = json!({ "items": done });
        let complete = self.key.client.prepare(&Outgoing::post("/v1/requests/complete", &body), &self.key.papers)?;
        let answer = connection.json(ready(&complete)?).await.context("complete")?;
        let stored = answer.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if stored.iter().filter(|item| item["state"] == "completed").count() != items.len() {
            bail!("not all results were stored: {answer}");
        }
        Ok(true)
    }
}
