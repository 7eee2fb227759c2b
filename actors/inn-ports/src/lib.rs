//! Traits to the outside: what the inside may ask of the world. Adapters in `services/` implement them;
//! [`memory`] holds doubles for tests of the inside.

mod app_auth;
mod apps;
mod batch;
mod blobs;
mod bus;
mod changes;
mod clock;
mod directory;
mod error;
mod files;
mod grants;
mod jobs;
mod ledger;
mod mail;
mod people;
mod records;
mod register;
mod requests;

pub mod memory;

pub use app_auth::{AccountChange, AppAuth, AppUsers, NewMail, NewTicket, Ticket, TicketKind};
pub use apps::{Apps, DeployPlan, Deployed, InstalledApp, ReleaseInfo};
pub use batch::{Batch, BatchDone, BatchFailed, BatchLook, BatchStep, Seen, batch_sentence, batch_stored};
pub use blobs::Blobs;
pub use bus::{Bus, PolicyHints, Topic};
pub use changes::{Change, Changes, Live, NewChanges, Standing};
pub use clock::Clock;
pub use directory::{AgentState, Directory, GrantState, MemberState, SessionState};
pub use error::{StoreError, StoreResult};
pub use files::{
    DueFile, FileKey, FileTokenHolder, FileTokenPapers, FileTokenState, Files, NewFile, NewFileToken, Objects,
    PIECE_BYTES, ReceivedFile, StoredFile, Thumb,
};
pub use grants::{Consent, Grants, NewAgent, NewGrantRequest};
pub use jobs::Jobs;
pub use ledger::Ledger;
pub use mail::{Mail, MailError, Message, ShownMail};
pub use people::{NewSession, People, UserSecret};
pub use records::{ListPlan, Page, PageText, RecordTexts, Records, Referrer, ReferrersPlan, ViewPlan};
pub use register::Register;
pub use requests::{AskReceipt, Requests};

/// A compiled plan: `inn-rules` says what the rule is, the store renders it.
pub type Plan = inn_protocol::plan::Plan<inn_rules::filter::Expr>;

/// What the gateway and the app actors themselves need.
pub trait Core: AppUsers + Directory + Ledger + Records {}

impl<T: AppUsers + Directory + Ledger + Records> Core for T {}

/// Everything that is kept. One type implements it all; the pieces are cut by noun.
pub trait Store:
    Core + RecordTexts + Changes + AppAuth + Apps + Files + People + Grants + Requests + Jobs + Register
{
}

impl<T: Core + RecordTexts + Changes + AppAuth + Apps + Files + People + Grants + Requests + Jobs + Register> Store
    for T
{
}
