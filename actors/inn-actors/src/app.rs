//! One actor per loaded app: decides what each write becomes and counts what is under way.
//!
//! The mailbox is not held while the database works: the handler makes the plan, hands it to the I/O runtime and takes
//! the next message. A client that hangs up does not cancel a commit.

use std::sync::Arc;

use actix::{Actor, AsyncContext as _, Context, Handler, Message, WrapFuture as _, fut::ActorFutureExt as _};
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
    in_flight: usize,
}

impl AppActor {
    pub(crate) fn new(app: AppId, store: Arc<dyn Core>, io: tokio::runtime::Handle) -> Self {
        Self { app, store, io, in_flight: 0 }
    }
}

impl Actor for AppActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        tracing::debug!(app = %self.app, in_flight = self.in_flight, panicking = std::thread::panicking(), "app actor stopped");
    }
}

impl Handler<RunWrite> for AppActor {
    type Result = ();

    fn handle(&mut self, message: RunWrite, ctx: &mut Context<Self>) {
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
        self.in_flight += 1;
        let store = Arc::clone(&self.store);
        let run = self.io.spawn(async move {
            let result = store.commit(&plan).await;
            drop(slot);
            reply.send(WriteEnd { record, result }).ok();
        });
        ctx.spawn(run.into_actor(self).map(|ended, actor, _| {
            actor.in_flight -= 1;
            if let Err(error) = ended {
                tracing::error!(app = %actor.app, %error, "a commit task died");
            }
        }));
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

    fn handle(&mut self, message: RunBatch, ctx: &mut Context<Self>) {
        let RunBatch { batch, slot, reply } = message;
        self.in_flight += 1;
        let store = Arc::clone(&self.store);
        let run = self.io.spawn(async move {
            let end = store.commit_all(&batch).await;
            drop(slot);
            // A receiver that is gone has hung up; there is nobody left to tell.
            reply.send(BatchEnd(end)).ok();
        });
        ctx.spawn(run.into_actor(self).map(|ended, actor, _| {
            actor.in_flight -= 1;
            if let Err(error) = ended {
                tracing::error!(app = %actor.app, %error, "a batch task died");
            }
        }));
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
