//! Several writes of one call that stand or fall together. Each is decided, guarded and registered as if it had come
//! alone; only the transaction is shared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use chrono::{DateTime, Utc};
use inn_ports::{Batch, BatchDone, BatchFailed, BatchLook, BatchStep, Plan, Seen, StoreError};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::{Action, Call, RequestFacts};
use inn_protocol::caller::Caller;
use inn_protocol::receipt::Verb;
use inn_protocol::register::CallRecord;
use inn_protocol::{CallId, Code, Digest, Refusal, Retry};
use inn_rules::access::Permit;
use inn_rules::files::Upload;
use inn_rules::filter::Expr;
use serde_json::Value;
use tokio::sync::oneshot;

use super::account::AccountWrite;
use super::{Admitted, Gateway, MAX_DECISIONS};
use crate::account::Account;
use crate::admission::Slot;
use crate::app::{BatchEnd, RunBatch};
use crate::plan::{WriteInput, plan};

/// One write of a batch, not decided yet.
#[derive(Debug, Clone)]
pub struct BatchWrite {
    /// Collection name as the model spells it.
    pub entity: String,
    pub verb: BatchVerb,
    pub body: Value,
    /// What the app's rules may ask about it: the parameters of its URL, and the headers that are its own.
    pub query: BTreeMap<String, String>,
    pub headers: BTreeMap<String, String>,
    /// Files that came along with it.
    pub form: Option<Vec<Upload>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchVerb {
    Create,
    Update(String),
    Delete(String),
    /// Changes the record of that id, or makes it when there is none.
    Upsert(String),
}

impl BatchWrite {
    fn verb(&self, there: bool) -> Verb {
        match &self.verb {
            BatchVerb::Update(_) => Verb::Update,
            BatchVerb::Delete(_) => Verb::Delete,
            BatchVerb::Upsert(_) if there => Verb::Update,
            BatchVerb::Create | BatchVerb::Upsert(_) => Verb::Create,
        }
    }

    fn id(&self) -> Option<&String> {
        match &self.verb {
            BatchVerb::Create => None,
            BatchVerb::Update(id) | BatchVerb::Delete(id) | BatchVerb::Upsert(id) => Some(id),
        }
    }

    /// PocketBase's view of it: the headers of the whole under its own, and the method that it comes to.
    fn facts(&self, admitted: &Admitted, there: bool) -> RequestFacts {
        let mut headers = admitted.permit.auth.request.headers.clone();
        headers.extend(self.headers.clone());
        let method = match self.verb(there) {
            Verb::Create => "POST",
            Verb::Update => "PATCH",
            Verb::Delete => "DELETE",
        };
        RequestFacts {
            context: "batch".to_owned(),
            method: method.to_owned(),
            query: self.query.clone(),
            headers,
            body: self.body.as_object().cloned().unwrap_or_default(),
        }
    }

    fn action(&self, there: bool) -> Action {
        let (entity, id) = (self.entity.clone(), self.id().cloned().unwrap_or_default());
        match self.verb(there) {
            Verb::Create => Action::CreateRecord { entity },
            Verb::Update => Action::UpdateRecord { entity, id },
            Verb::Delete => Action::DeleteRecord { entity, id },
        }
    }
}

/// Why nothing of a batch was done.
#[derive(Debug)]
pub struct BatchRefused {
    /// The write that was refused; `None` when it was the whole.
    pub write: Option<usize>,
    pub refusal: Refusal,
}

impl BatchRefused {
    /// The write whose own mistake it is. What is nobody's, or about the papers of the whole, is refused as for every
    /// other call.
    pub fn at_fault(&self) -> Option<usize> {
        let status = self.refusal.code.status();
        self.write.filter(|_| status < 500 && status != 401 && self.refusal.retry != Retry::After)
    }
}

impl From<Refusal> for BatchRefused {
    fn from(refusal: Refusal) -> Self {
        Self { write: None, refusal }
    }
}

impl Gateway {
    /// Carries out all the writes that `prepare` makes out of the call, or none of them. One that cannot be made out is
    /// refused in its place.
    pub async fn batch(
        &self,
        call: Call,
        prepare: impl Fn(&Admitted) -> Result<Vec<Result<BatchWrite, Refusal>>, Refusal>,
    ) -> Result<(Arc<Admitted>, BatchDone), BatchRefused> {
        let call = Arc::new(call);
        for _ in 0..MAX_DECISIONS {
            let admitted = self.admit_or_register(&call).await?;
            let writes = match prepare(&admitted) {
                Ok(writes) => writes,
                Err(refusal) => return Err(self.turn_down(&admitted, None, None, refusal.into()).await),
            };
            let mut steps = Vec::with_capacity(writes.len());
            for (index, write) in writes.into_iter().enumerate() {
                let write = match write {
                    Ok(write) => write,
                    Err(refusal) => return Err(self.turn_down(&admitted, Some(index), None, refusal.into()).await),
                };
                let mut step = Step::new(&admitted, write, self.shared.clock.now())?;
                step.account = self.account_of(&step).await?;
                let step = Arc::new(step);
                let allowed = self.shared.rates.take(&admitted.caller, &step.write.action(false));
                if let Err(refusal) = allowed {
                    return Err(self.turn_down(&admitted, Some(index), Some(&step), refusal.into()).await);
                }
                steps.push(step);
            }
            if Instant::now() > call.deadline {
                let late = "The call waited longer than its deadline; nothing was done. Send it again.";
                return Err(self.turn_down(&admitted, None, None, Refusal::new(Code::Timeout, late).into()).await);
            }
            let (admitted, end) = self.run(admitted, &steps).await?;
            match end {
                Ok(done) => return Ok((Arc::new(admitted), done)),
                Err(BatchFailed { error: StoreError::Stale, .. }) => {
                    self.shared.snapshots.forget(&admitted.record.live);
                }
                Err(BatchFailed { step, error }) => {
                    let made = step.and_then(|index| steps.get(index));
                    return Err(self.turn_down(&admitted, step, made, error).await);
                }
            }
        }
        Err(Refusal::from(StoreError::Stale).into())
    }

    async fn run(
        &self,
        admitted: Admitted,
        steps: &[Arc<Step>],
    ) -> Result<(Admitted, Result<BatchDone, BatchFailed>), Refusal> {
        let app = Arc::clone(admitted.app()?);
        let id = app.id;
        let steps = steps.iter().map(|step| Arc::clone(step) as Arc<dyn BatchStep>).collect();
        let batch = Batch { record: admitted.record.clone(), app, steps };
        let (reply, answer) = oneshot::channel();
        let Admitted { caller, app, record, permit, now, host, proof, _slot: slot } = admitted;
        self.shared.registry.send(id, RunBatch { batch: Box::new(batch), slot, reply })?;
        // A reply that never comes means the actor or the task died: it may have committed.
        let BatchEnd(end) = answer.await.unwrap_or_else(|_| BatchEnd(Err(StoreError::Unknown.into())));
        let spent = Slot::spent();
        Ok((Admitted { caller, app, record, permit, now, host, proof, _slot: spent }, end))
    }

    /// Registers the refusal of a verified caller: of the write, and of the whole.
    async fn turn_down(
        &self,
        admitted: &Admitted,
        write: Option<usize>,
        step: Option<&Arc<Step>>,
        error: StoreError,
    ) -> BatchRefused {
        let unknown = matches!(error, StoreError::Unknown);
        if unknown || matches!(admitted.caller, Caller::Stranger) {
            return BatchRefused { write, refusal: error.into() };
        }
        let refusal = match step {
            Some(step) => self.refuse(step.record(step.there.load(Ordering::Relaxed)), error).await,
            None => Refusal::from(error),
        };
        let refused = BatchRefused { write, refusal };
        let whole = match refused.at_fault() {
            Some(_) => Refusal::new(Code::BatchFailed, "Batch transaction failed."),
            None => refused.refusal.clone(),
        };
        self.refuse(admitted.record.clone(), whole.into()).await;
        refused
    }
}

impl Gateway {
    /// Passwords are hashed and compared before the transaction opens; the plan makes sure inside it that the stored
    /// hash is still the one that was compared.
    async fn account_of(&self, step: &Step) -> Result<Account, Refusal> {
        let there = !matches!(step.write.verb, BatchVerb::Create);
        let Ok(permit) = step.permit(there) else { return Ok(Account::default()) };
        let mut current = None;
        if let (Some(id), true) = (step.write.id(), step.write.body.get("oldPassword").is_some()) {
            let plan = inn_ports::ViewPlan {
                app: Arc::clone(&step.app),
                entity: step.write.entity.clone(),
                ids: vec![id.clone()],
                rule: permit.rule.stored().cloned().unwrap_or(Expr::Always),
            };
            current = self.shared.store.view(&plan).await?.pop();
        }
        self.account(AccountWrite {
            app: &step.app,
            permit,
            verb: step.write.verb(there),
            entity: &step.write.entity,
            body: &step.write.body,
            form: step.write.form.as_deref(),
            id: step.write.id().map(String::as_str),
            current: current.as_ref(),
        })
        .await
    }
}

/// A write of the batch with what was decided about it.
struct Step {
    write: BatchWrite,
    app: Arc<AppSnapshot>,
    /// The record of the whole, of which this one's is made.
    of: CallRecord,
    call: CallId,
    body: Digest,
    create: Result<Permit, Refusal>,
    change: Result<Permit, Refusal>,
    see_hidden: bool,
    account: Account,
    random: [u8; 64],
    now: DateTime<Utc>,
    /// Whether the record was there, once it has been looked at.
    there: AtomicBool,
}

impl Step {
    fn new(admitted: &Admitted, write: BatchWrite, now: DateTime<Utc>) -> Result<Self, Refusal> {
        Ok(Self {
            app: Arc::clone(admitted.app()?),
            of: admitted.record.clone(),
            call: CallId::new(),
            body: Digest::of(inn_protocol::canonical::to_string(&write.body).as_bytes()),
            create: admitted.decide(&write.action(false), write.facts(admitted, false)),
            change: admitted.decide(&write.action(true), write.facts(admitted, true)),
            see_hidden: admitted.permit.see_hidden,
            account: Account::default(),
            random: rand::random(),
            now,
            there: AtomicBool::new(false),
            write,
        })
    }

    fn permit(&self, there: bool) -> Result<&Permit, Refusal> {
        let decided = if self.write.verb(there) == Verb::Create { &self.create } else { &self.change };
        decided.as_ref().map_err(Clone::clone)
    }

    /// A call of its own below the signature of the whole, whose nonce and key count once.
    fn record(&self, there: bool) -> CallRecord {
        let mut record = self.of.clone();
        let action = self.write.action(there);
        record.draft.call = self.call;
        record.draft.action = action.name();
        record.draft.target = action.target();
        record.draft.body = self.body;
        record.nonce = None;
        record.idempotency = None;
        record.live.claim = None;
        record
    }
}

impl BatchStep for Step {
    fn target(&self) -> Option<(String, String)> {
        // Who may not change the record may not hold it up for others either.
        self.change.as_ref().ok()?;
        Some((self.write.entity.clone(), self.write.id()?.clone()))
    }

    fn look(&self) -> Option<BatchLook> {
        // A record that is not there is told before what is wrong with the body.
        match self.write.verb {
            BatchVerb::Update(_) if self.change.is_ok() => {}
            BatchVerb::Upsert(_) if self.change.is_ok() || self.create.is_ok() => {}
            _ => return None,
        }
        // Without a permit nothing is shown, and the plan says why.
        let rule =
            self.change.as_ref().map_or(Expr::Never, |permit| permit.rule.stored().cloned().unwrap_or(Expr::Always));
        Some(BatchLook { entity: self.write.entity.clone(), id: self.write.id()?.clone(), rule })
    }

    fn plan(&self, seen: Option<Seen>) -> Result<Plan, Refusal> {
        let there = seen.is_some();
        self.there.store(there, Ordering::Relaxed);
        let permit = self.permit(there)?;
        let verb = self.write.verb(there);
        plan(WriteInput {
            record: self.record(there),
            app: Arc::clone(&self.app),
            verb,
            entity: self.write.entity.clone(),
            id: self.write.id().filter(|_| verb != Verb::Create).cloned(),
            body: self.write.body.clone(),
            form: self.write.form.clone(),
            rule: permit.rule.clone(),
            fixed: None,
            see_hidden: self.see_hidden,
            looked: self.look().is_some(),
            current: seen.and_then(|Seen(row)| row),
            account: self.account.clone(),
            random: self.random,
            now: self.now,
        })
    }
}
