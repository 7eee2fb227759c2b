//! Receives a form: texts into memory, files into the object store, never more than one piece of a file in memory.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::BytesMut;
use futures_util::StreamExt as _;
use inn_grants::signature;
use inn_ports::{FileKey, NewFile, PIECE_BYTES, ReceivedFile};
use inn_protocol::app::AppSnapshot;
use inn_protocol::{Code, Digest, FileId, Refusal, canonical};
use inn_rules::files::{self, MediaType, RANDOM_BYTES, SNIFFED_BYTES, Upload};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout, timeout_at};

use super::kept::Kept;
use super::place::{self, Place, Target};
use crate::form::{Event, Fields, Parser, PartHead, UnreadForm};
use crate::incoming::Incoming;

/// How long a form waits for others to be received.
const PATIENCE: Duration = Duration::from_secs(5);
/// A client that sends nothing for this long has gone.
const SILENCE: Duration = Duration::from_secs(30);
/// The whole form must have arrived within this time: well before its files are swept away as forgotten.
const FORM_WITHIN: Duration = Duration::from_mins(10);

/// A refusal anywhere in a form is one of the whole form.
type Received<T> = Result<T, Refusal>;

/// A form that has arrived.
pub(super) struct Form {
    pub(super) body: Value,
    pub(super) uploads: Vec<Upload>,
    pub(super) text_bytes: usize,
    /// Of its parts, which are the same from one attempt to the next, as boundaries are not.
    pub(super) digest: Digest,
    pub(super) kept: Kept,
}

pub(super) async fn form(
    incoming: &Incoming,
    unread: UnreadForm,
    app: &AppSnapshot,
    target: Target<'_>,
) -> Received<Form> {
    let limit = match target {
        Target::Record(entity) => {
            let collection = app.definition.model.collection(entity).ok_or_else(Refusal::not_found)?;
            files::body_limit(collection).min(incoming.state.config.max_upload)
        }
        Target::Batch => incoming.state.config.max_upload,
    };
    if unread.declared.is_some_and(|declared| declared > limit) {
        return Err(too_large(limit));
    }
    let turn = timeout(PATIENCE, incoming.state.uploads.acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        let busy = "Many forms are being received at the moment; nothing was kept. Send it again.";
        return Err(Refusal::new(Code::Overloaded, busy).after(5));
    };
    let room = match incoming.state.config.app_file_bytes {
        0 => u64::MAX,
        most => most.saturating_sub(incoming.state.store.file_bytes(app.id).await?),
    };
    let receiver = Receiver {
        incoming,
        app,
        target,
        requests: None,
        room,
        kept: Kept::new(incoming.state.clone(), app.id),
        fields: Fields::default(),
        text_bytes: 0,
        uploads: Vec::new(),
        early: Vec::new(),
        contents: Vec::new(),
        open: None,
    };
    receiver.run(unread, limit).await
}

struct Receiver<'a> {
    incoming: &'a Incoming,
    app: &'a AppSnapshot,
    target: Target<'a>,
    requests: Option<Arc<Value>>,
    /// Bytes that the app's files may still take.
    room: u64,
    kept: Kept,
    fields: Fields,
    text_bytes: usize,
    uploads: Vec<Upload>,
    /// Of these files it is not known yet what they are for: their places among the uploads.
    early: Vec<(usize, FileId)>,
    /// Key, client's name and digest of each file.
    contents: Vec<Value>,
    open: Option<Open>,
}

/// The part that is being read.
enum Open {
    Text { name: String, bytes: Vec<u8> },
    File(Box<FilePart>),
}

impl Receiver<'_> {
    async fn run(mut self, mut unread: UnreadForm, limit: u64) -> Received<Form> {
        let mut parser = Parser::new(&unread.boundary);
        let mut whole = Sha256::new();
        let mut total: u64 = 0;
        let until = Instant::now() + FORM_WITHIN;
        loop {
            let next = timeout_at(until.min(Instant::now() + SILENCE), unread.payload.next()).await;
            let Some(chunk) = next.map_err(|_| late())? else { break };
            let chunk = chunk.map_err(|_| cut_off())?;
            total = total.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
            if total > limit {
                return Err(too_large(limit));
            }
            if unread.signed_digest.is_some() {
                whole.update(&chunk);
            }
            parser.push(&chunk);
            while let Some(event) = parser.next()? {
                self.take(event).await?;
            }
        }
        if !parser.is_done() {
            return Err(cut_off());
        }
        if let Some(signed) = &unread.signed_digest {
            signature::check_content_sha256(signed, Digest(whole.finalize().into()))?;
        }
        self.settle().await?;
        let facts = json!({"fields": self.fields.texts(), "files": self.contents});
        let digest = Digest::of(canonical::to_string(&facts).as_bytes());
        let body = Value::Object(self.fields.body()?);
        Ok(Form { body, uploads: self.uploads, text_bytes: self.text_bytes, digest, kept: self.kept })
    }

    async fn take(&mut self, event: Event) -> Received<()> {
        match (event, &mut self.open) {
            (Event::Part(PartHead { file_name: None, .. }), _) if self.requests.is_some() => {
                let order = "In the form of a batch no value comes after @jsonPayload and a file; nothing was kept.";
                return Err(Refusal::new(Code::InvalidBody, order));
            }
            (Event::Part(PartHead { name, file_name: None }), _) => {
                self.text(name.len())?;
                self.open = Some(Open::Text { name, bytes: Vec::new() });
            }
            (Event::Part(PartHead { name, file_name: Some(sent_as) }), _) => {
                self.text(name.len() + sent_as.len())?;
                let early = matches!(self.target, Target::Batch) && !self.fields.has_payload();
                let place = if early {
                    place::not_yet(self.incoming, self.app, &name).await?
                } else {
                    let requests = self.requests()?;
                    self.target.place(self.incoming, self.app, &requests, &name).await?
                };
                self.open = Some(Open::File(Box::new(FilePart::new(place, early, name, sent_as))));
            }
            (Event::Data(content), Some(Open::Text { .. })) => {
                self.text(content.len())?;
                if let Some(Open::Text { bytes, .. }) = &mut self.open {
                    bytes.extend_from_slice(&content);
                }
            }
            (Event::Data(content), Some(Open::File(part))) => {
                part.add(&content);
                if !part.is_too_large() {
                    let taken = u64::try_from(content.len()).unwrap_or(u64::MAX);
                    self.room = self.room.checked_sub(taken).ok_or_else(full)?;
                }
                while part.piece.len() >= PIECE_BYTES {
                    let piece = part.piece.split_to(PIECE_BYTES);
                    part.write(piece, false, self.incoming, self.app, &mut self.kept).await?;
                }
            }
            (Event::PartEnd, _) => self.end().await?,
            (Event::Data(_), None) | (Event::End, _) => {}
        }
        Ok(())
    }

    async fn end(&mut self) -> Received<()> {
        match self.open.take() {
            Some(Open::Text { name, bytes }) => {
                // As PocketBase reads other bodies: what is no UTF-8 is replaced.
                self.fields.push(name, String::from_utf8_lossy(&bytes).into_owned());
            }
            Some(Open::File(mut part)) => {
                let upload = part.finish(self.incoming, self.app, &mut self.kept).await?;
                self.contents.push(json!([upload.0.key, upload.0.sent_as, upload.1]));
                if part.early {
                    self.early.push((self.uploads.len(), part.id));
                }
                self.uploads.push(upload.0);
            }
            None => {}
        }
        Ok(())
    }

    /// Files that came before what they are for. Those that cannot go there are as if they had been too large for their field
    /// all along: no record names them, and what is wrong with them is told with the rest.
    async fn settle(&mut self) -> Received<()> {
        if self.early.is_empty() {
            return Ok(());
        }
        let requests = self.requests()?;
        for (number, file) in std::mem::take(&mut self.early) {
            let Some(upload) = self.uploads.get_mut(number) else { continue };
            let place = self.target.place(self.incoming, self.app, &requests, &upload.key).await?;
            match place.filter(|place| upload.size <= place.most && !upload.name.is_empty()) {
                Some(place) => {
                    self.incoming.state.store.place_file(file, &place.collection, &place.field).await?;
                }
                None => *upload = not_kept(&upload.key, &upload.sent_as, upload.size),
            }
        }
        Ok(())
    }

    /// What the files of a batch are for: read once, when the first of them comes that needs it.
    fn requests(&mut self) -> Received<Arc<Value>> {
        if let (Target::Batch, None) = (self.target, &self.requests) {
            let requests = self.fields.body()?.remove("requests").unwrap_or_default();
            self.requests = Some(Arc::new(requests));
        }
        Ok(self.requests.clone().unwrap_or_default())
    }

    /// Texts are bodies like any other: in memory, and so within the host's limit for those.
    fn text(&mut self, bytes: usize) -> Received<()> {
        let most = self.incoming.state.config.max_body;
        self.text_bytes += bytes;
        if self.text_bytes <= most {
            return Ok(());
        }
        Err(Refusal::new(
            Code::TooLarge,
            format!("The values of the form are larger than {most} bytes; nothing was kept."),
        ))
    }
}

/// A file that is being received.
struct FilePart {
    /// It is not known yet what it is for.
    early: bool,
    key: String,
    sent_as: String,
    /// `None` when files cannot go there, and then nothing is kept.
    place: Option<Place>,
    id: FileId,
    piece: BytesMut,
    next: u32,
    size: u64,
    hasher: Sha256,
    /// Once the first piece is complete.
    known: Option<(MediaType, String)>,
}

impl FilePart {
    fn new(place: Option<Place>, early: bool, key: String, sent_as: String) -> Self {
        Self {
            early,
            key,
            sent_as,
            place,
            id: FileId::new(),
            piece: BytesMut::new(),
            next: 0,
            size: 0,
            hasher: Sha256::new(),
            known: None,
        }
    }

    /// More than its field takes: read to the end, so that everything wrong with the form can be told, and not kept.
    fn is_too_large(&self) -> bool {
        self.place.as_ref().is_none_or(|place| self.size > place.most)
    }

    fn add(&mut self, content: &[u8]) {
        self.size = self.size.saturating_add(u64::try_from(content.len()).unwrap_or(u64::MAX));
        if self.is_too_large() {
            self.piece.clear();
            return;
        }
        self.hasher.update(content);
        self.piece.extend_from_slice(content);
    }

    fn learn(&mut self, start: &[u8], last: bool) -> (MediaType, String) {
        let whole = last && start.len() <= SNIFFED_BYTES;
        let media = files::sniff(start, whole);
        let random: [u8; RANDOM_BYTES] = rand::random();
        (media, files::stored_name(&self.sent_as, media.extension, &random))
    }

    /// Writes a piece. Before the first one the file's row is written, so that its bytes are never nameless.
    async fn write(
        &mut self,
        piece: BytesMut,
        last: bool,
        incoming: &Incoming,
        app: &AppSnapshot,
        kept: &mut Kept,
    ) -> Received<()> {
        let Some(place) = self.place.clone() else { return Ok(()) };
        if self.known.is_none() {
            let known = self.learn(&piece, last);
            kept.expect(self.id, known.1.clone());
            let file = NewFile {
                id: self.id,
                tenant: app.tenant,
                app: app.id,
                collection: place.collection,
                field: place.field,
                name: known.1.clone(),
            };
            incoming.state.store.expect_file(&file).await?;
            self.known = Some(known);
        }
        if !piece.is_empty() {
            let key = FileKey { app: app.id, file: self.id };
            incoming.state.objects.put_piece(key, self.next, piece.freeze()).await?;
            self.next += 1;
        }
        Ok(())
    }

    async fn finish(&mut self, incoming: &Incoming, app: &AppSnapshot, kept: &mut Kept) -> Received<(Upload, Digest)> {
        let digest = Digest(std::mem::take(&mut self.hasher).finalize().into());
        if self.is_too_large() {
            return Ok((not_kept(&self.key, &self.sent_as, self.size), digest));
        }
        let piece = self.piece.split();
        self.write(piece, true, incoming, app, kept).await?;
        let (media, name) = self.known.clone().ok_or_else(Refusal::internal)?;
        let received = ReceivedFile { id: self.id, size: self.size, media_type: media.name.to_owned(), digest };
        incoming.state.store.file_received(&received).await?;
        let upload = Upload {
            key: self.key.clone(),
            name,
            sent_as: self.sent_as.clone(),
            size: self.size,
            media_type: received.media_type,
        };
        Ok((upload, digest))
    }
}

/// A file that no record can name.
fn not_kept(key: &str, sent_as: &str, size: u64) -> Upload {
    let (key, sent_as) = (key.to_owned(), sent_as.to_owned());
    Upload { key, name: String::new(), sent_as, size, media_type: String::new() }
}

fn too_large(limit: u64) -> Refusal {
    Refusal::new(Code::TooLarge, format!("The form is larger than {limit} bytes; nothing was kept."))
}

fn full() -> Refusal {
    let message = "The files of this app take as much as this host lets them; nothing was kept. Delete some first.";
    Refusal::new(Code::TooLarge, message).fix("whoever runs this host, with the setting files.app-bytes")
}

fn late() -> Refusal {
    Refusal::new(Code::Timeout, "The form did not arrive in time; nothing was kept.")
}

fn cut_off() -> Refusal {
    Refusal::new(Code::InvalidBody, "The form ended before it was complete; nothing was kept.")
}
