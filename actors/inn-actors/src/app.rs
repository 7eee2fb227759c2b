//! One actor per loaded app: decides what each write becomes.
//!
//! The mailbox is not held while the database works: the handler makes the plan, hands it to the I/O runtime and takes
//! the next message. A client that hangs up does not cancel a commit.

use std::sync::Arc;

use actix::{Actor, Context, Handler, Message};
use inn_ports::{Batch, BatchDone, BatchFailed, Core, StoreError};
use inn_protocol::AppId;
use inn_protocol::plan::Committed;
use inn_protocol::register::CallRecord;
use tokio::sync::oneshot;

use crate::admission::Slot;
use crate::plan::{WriteInput, plan};

/// Second wall behind the app's permits (`AdmissionLimits::app`), twice as wide so that it is never the first.
const MAILBOX: usize = 256;

/// Decide and commit one write.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct RunWrite {
    pub(crate) input: Box<WriteInput>,
    pub(crate) slot: Slot,
    pub(crate) reply: oneshot::Sender<WriteEnd>,
}

/// How a write ended. The record comes back so that a refusal can be registered.
pub(crate) struct WriteEnd {
    pub(crate) record: CallRecord,
    pub(crate) result: Result<Committed, StoreError>,
}

pub(crate) struct AppActor {
    app: AppId,
    store: Arc<dyn Core>,
    io: tokio::runtime::Handle,
}

impl AppActor {
    pub(crate) fn new(app: AppId, store: Arc<dyn Core>, io: tokio::runtime::Handle) -> Self {
        Self { app, store, io }
    }
}

impl Actor for AppActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        tracing::debug!(app = %self.app, panicking = std::thread::panicking(), "app actor stopped");
    }
}

impl Handler<RunWrite> for AppActor {
    type Result = ();

    fn handle(&mut self, message: RunWrite, _: &mut Context<Self>) {
        let RunWrite { input, slot, reply } = message;
        let record = input.record.clone();
        let plan = match plan(*input) {
            Ok(plan) => plan,
            Err(refusal) => {
                // A receiver that is gone has hung up; there is nobody left to tell.
                reply.send(WriteEnd { record, result: Err(refusal.into()) }).ok();
                return;
            }
        };
        let store = Arc::clone(&self.store);
        // Nobody waits for the task here, which would wake this thread once more for every write: should it die, the
        // receiver is told by the sender's end, and the runtime's panic hook says why.
        self.io.spawn(async move {
            let result = store.commit(&plan).await;
            drop(slot);
            reply.send(WriteEnd { record, result }).ok();
        });
    }
}

/// Commit the writes of one batch, planned one by one inside the transaction.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct RunBatch {
    pub(crate) batch: Box<Batch>,
    pub(crate) slot: Slot,
    pub(crate) reply: oneshot::Sender<BatchEnd>,
}

/// How a batch ended.
pub(crate) struct BatchEnd(pub(crate) Result<BatchDone, BatchFailed>);

impl Handler<RunBatch> for AppActor {
    type Result = ();

    fn handle(&mut self, message: RunBatch, _: &mut Context<Self>) {
        let RunBatch { batch, slot, reply } = message;
        let store = Arc::clone(&self.store);
        self.io.spawn(async move {
            let end = store.commit_all(&batch).await;
            drop(slot);
            // A receiver that is gone has hung up; there is nobody left to tell.
            reply.send(BatchEnd(end)).ok();
        });
    }
}

/// Dies on receipt, as a bug would make it.
#[cfg(test)]
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Die;

#[cfg(test)]
impl Handler<Die> for AppActor {
    type Result = ();

    fn handle(&mut self, _: Die, _: &mut Context<Self>) {
        panic!("killed by a test");
    }
}
