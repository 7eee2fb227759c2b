//! Files of records: received with a form, served at `/api/files/…`, opened by tokens (PocketBase notes, section F).

mod body;
mod kept;
mod parts;
mod place;
mod receive;
mod serve;
mod stream;
mod token;

pub(super) use body::{RecordBody, batch_body, record_body};
pub(super) use serve::{head, serve};
pub(super) use token::take as take_token;
