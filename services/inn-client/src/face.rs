//! An app's API at `<platform>/apps/<slug>`, for a person or for an agent under a grant.

use reqwest::Method;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::answer::Answer;
use crate::client::Client;
use crate::error::ClientError;
use crate::outgoing::{Outgoing, query, segment};
use crate::person::Person;

type Answered = Result<Answer, ClientError>;

/// One app, seen by one caller.
#[derive(Debug, Clone)]
pub struct AppFace {
    caller: Caller,
    slug: String,
}

#[derive(Debug, Clone)]
enum Caller {
    Person(Box<Person>),
    Agent { agent: Box<Agent>, grant: String },
}

impl AppFace {
    pub(crate) fn person(person: Person, slug: &str) -> Self {
        Self { caller: Caller::Person(Box::new(person)), slug: slug.to_owned() }
    }

    pub(crate) fn agent(agent: Agent, slug: &str, grant: &str) -> Self {
        Self { caller: Caller::Agent { agent: Box::new(agent), grant: grant.to_owned() }, slug: slug.to_owned() }
    }

    pub fn slug(&self) -> &str {
        &self.slug
    }

    pub fn client(&self) -> &Client {
        match &self.caller {
            Caller::Person(person) => person.client(),
            Caller::Agent { agent, .. } => agent.client(),
        }
    }

    /// The path of something below the app, for [`Self::call`].
    pub fn path(&self, below: &str) -> String {
        format!("/apps/{}{below}", segment(&self.slug))
    }

    /// Any call as this caller; see [`Self::path`].
    pub async fn call(&self, outgoing: &Outgoing) -> Answered {
        match &self.caller {
            Caller::Person(person) => person.call(outgoing).await,
            Caller::Agent { agent, grant } => agent.call_under(grant, outgoing).await,
        }
    }

    async fn get(&self, below: &str) -> Answered {
        self.call(&Outgoing::get(self.path(below))).await
    }

    pub async fn identity(&self) -> Answered {
        self.get("/api/_a2app").await
    }

    pub async fn describe(&self) -> Answered {
        self.get("/api/_a2app/describe").await
    }

    pub async fn operations(&self) -> Answered {
        self.get("/api/_ops").await
    }

    pub async fn whoami(&self) -> Answered {
        self.get("/api/_a2app/whoami").await
    }

    /// One page of records. `params` are PocketBase's: `filter`, `sort`, `page`, `perPage`, `expand`, `fields`.
    pub async fn list(&self, entity: &str, params: &[(&str, &str)]) -> Answered {
        self.get(&format!("{}{}", records(entity), query(params.iter().copied()))).await
    }

    pub async fn view(&self, entity: &str, id: &str) -> Answered {
        self.get(&record(entity, id)).await
    }

    /// Adds a record. With a key it is added once, however often it is sent.
    pub async fn create(&self, entity: &str, body: &Value, key: Option<&str>) -> Answered {
        self.call(&keyed(Outgoing::post(self.path(&records(entity)), body), key)).await
    }

    pub async fn update(&self, entity: &str, id: &str, body: &Value, key: Option<&str>) -> Answered {
        let outgoing = Outgoing::new(Method::PATCH, self.path(&record(entity, id))).json(body);
        self.call(&keyed(outgoing, key)).await
    }

    pub async fn delete(&self, entity: &str, id: &str, key: Option<&str>) -> Answered {
        self.call(&keyed(Outgoing::delete(self.path(&record(entity, id))), key)).await
    }

    /// Several writes of records that stand or fall together: `{method, url, body}` each, as PocketBase has them. With a
    /// key they are done once, however often they are sent.
    pub async fn batch(&self, writes: &[Value], key: Option<&str>) -> Answered {
        let body = json!({"requests": writes});
        self.call(&keyed(Outgoing::post(self.path("/api/batch"), &body), key)).await
    }

    /// Runs an operation by its name.
    pub async fn run(&self, operation: &str, params: &Value, key: Option<&str>) -> Answered {
        let path = self.path(&format!("/api/ops/{}", segment(operation)));
        self.call(&keyed(Outgoing::post(path, params), key)).await
    }

    /// How the job of an operation is doing.
    pub async fn job(&self, id: &str) -> Answered {
        self.get(&format!("/api/_jobs/{}", segment(id))).await
    }

    pub async fn cancel_job(&self, id: &str) -> Answered {
        let path = self.path(&format!("/api/_jobs/{}/cancel", segment(id)));
        self.call(&Outgoing::post(path, &json!({}))).await
    }

    /// Asks agents for work.
    pub async fn ask(&self, capability: &str, payload: &Value, key: Option<&str>) -> Answered {
        let body = json!({"capability": capability, "payload": payload});
        self.call(&keyed(Outgoing::post(self.path("/api/_a2app/tasks"), &body), key)).await
    }

    pub async fn tasks(&self, status: Option<&str>) -> Answered {
        self.get(&format!("/api/_a2app/tasks{}", query(status.map(|status| ("status", status))))).await
    }

    pub async fn task(&self, id: &str) -> Answered {
        self.get(&format!("/api/_a2app/tasks/{}", segment(id))).await
    }

    pub async fn cancel_task(&self, id: &str) -> Answered {
        let path = self.path(&format!("/api/_a2app/tasks/{}/cancel", segment(id)));
        self.call(&Outgoing::post(path, &json!({}))).await
    }
}

fn keyed(outgoing: Outgoing, key: Option<&str>) -> Outgoing {
    match key {
        Some(key) => outgoing.key(key),
        None => outgoing,
    }
}

fn records(entity: &str) -> String {
    format!("/api/collections/{}/records", segment(entity))
}

fn record(entity: &str, id: &str) -> String {
    format!("{}/{}", records(entity), segment(id))
}
