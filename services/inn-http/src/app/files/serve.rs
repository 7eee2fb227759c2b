//! `GET /api/files/{entity}/{id}/{name}`: a file or a thumb of it.

use std::sync::Arc;
use std::time::SystemTime;

use actix_web::body::SizedStream;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap, HttpDate};
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use chrono::SubsecRound as _;
use inn_ports::{FileKey, Store, StoredFile, ViewPlan};
use inn_protocol::Refusal;
use inn_protocol::app::{AppSnapshot, AuthMode};
use inn_protocol::call::{Action, Call, Place, RequestFacts};
use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind};
use inn_rules::files::{self, Part, Span, ThumbSpec};
use inn_rules::filter::Expr;
use serde::Deserialize;
use serde_json::Value;

use super::parts::Parts;
use super::stream;
use crate::error::{ApiError, CALL_HEADER};
use crate::incoming::Incoming;

#[derive(Deserialize)]
pub(in crate::app) struct FilePath {
    entity: String,
    id: String,
    name: String,
}

/// A file that some record names, whoever may see it.
struct Found {
    key: FileKey,
    file: StoredFile,
    /// Id of the field that shows it, in the collection it was asked of.
    field: String,
    protected: bool,
    thumb: Option<ThumbSpec>,
    /// Nobody has to be signed in.
    public: bool,
}

/// What is sent.
enum Content {
    Stored { key: FileKey, size: u64 },
    Thumb(Bytes),
}

pub(in crate::app) async fn serve(
    incoming: Incoming,
    path: Path<FilePath>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let found = locate(&incoming, &path).await.map_err(|refusal| incoming.fail(refusal))?;
    // What is not there is decided like what is protected, so that nobody can tell them apart.
    let protected = found.as_ref().is_none_or(|found| found.protected);
    let (entity, id, name) = (path.entity.clone(), path.id.clone(), path.name.clone());
    let action = Action::ReadFile { entity, id, name, protected };
    let (store, here, path) = (&*incoming.state.store, &found, &*path);
    let call = incoming.call(action, Value::Null);
    // What rules see in `@request.context`.
    let facts = RequestFacts { context: "protectedFile".to_owned(), ..(*call.request).clone() };
    let call = Call { request: Arc::new(facts), ..call };
    let read = incoming.state.gateway.read(call, |admitted| async move {
        let app = admitted.app()?;
        let found = here.as_ref().filter(|found| found.key.app == app.id).ok_or_else(Refusal::not_found)?;
        let collection = app.definition.model.collection(&path.entity).ok_or_else(Refusal::not_found)?;
        let field = collection.fields.iter().find(|field| field.id == found.field);
        // A release that came meanwhile may protect what was public a moment ago.
        if field.is_none_or(|field| is_protected(field) && !found.protected) {
            return Err(Refusal::not_found());
        }
        if found.protected {
            let rule = admitted.permit.rule.stored().cloned().unwrap_or(Expr::Always);
            let plan =
                ViewPlan { app: Arc::clone(app), entity: collection.name.clone(), ids: vec![path.id.clone()], rule };
            store.view(&plan).await?.pop().ok_or_else(Refusal::not_found)?;
        }
        Ok(())
    });
    read.await.map_err(|refusal| incoming.fail(refusal))?;
    let Some(found) = found else { return Err(incoming.fail(Refusal::not_found())) };
    answer(&incoming, &request, path, found).await.map_err(|refusal| incoming.fail(refusal))
}

/// The same without the bytes.
pub(in crate::app) async fn head(
    incoming: Incoming,
    path: Path<FilePath>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    serve(incoming, path, request).await
}

async fn locate(incoming: &Incoming, path: &FilePath) -> Result<Option<Found>, Refusal> {
    let Place::App { slug, .. } = &incoming.place else { return Ok(None) };
    let Some(app) = incoming.state.gateway.app(slug).await? else { return Ok(None) };
    let Some(collection) = app.definition.model.collection(&path.entity) else { return Ok(None) };
    let store = &*incoming.state.store;
    let (file, field) = if collection.kind == CollectionKind::View {
        (store.file_shown(app.id, &path.name).await?, shown_by(store, &app, collection, path).await?)
    } else {
        let file = store.file(app.id, &collection.id, &path.id, &path.name).await?;
        let field = file.as_ref().and_then(|file| collection.fields.iter().find(|field| field.id == file.field));
        (file, field)
    };
    let (Some(file), Some(field)) = (file, field) else { return Ok(None) };
    let protected = is_protected(field);
    let thumb = incoming.param("thumb").and_then(|asked| ThumbSpec::declared(field, asked));
    Ok(Some(Found {
        key: FileKey { app: app.id, file: file.id },
        thumb: thumb.filter(|_| files::is_image(&file.media_type)),
        public: !protected && app.definition.auth_mode == AuthMode::MultiUser,
        field: field.id.clone(),
        file,
        protected,
    }))
}

/// The file field of a view in which one of its rows shows the name.
async fn shown_by<'c>(
    store: &dyn Store,
    app: &Arc<AppSnapshot>,
    view: &'c Collection,
    path: &FilePath,
) -> Result<Option<&'c Field>, Refusal> {
    let plan =
        ViewPlan { app: Arc::clone(app), entity: view.name.clone(), ids: vec![path.id.clone()], rule: Expr::Always };
    let Some(row) = store.view(&plan).await?.pop() else { return Ok(None) };
    let names_it = |value: &Value| match value {
        Value::String(name) => *name == path.name,
        Value::Array(names) => names.iter().any(|name| name.as_str() == Some(&path.name)),
        _ => false,
    };
    let mut files = view.fields.iter().filter(|field| matches!(field.kind, FieldKind::File { .. }));
    Ok(files.find(|field| row.get(&field.name).is_some_and(names_it)))
}

fn is_protected(field: &Field) -> bool {
    matches!(field.kind, FieldKind::File { protected: true, .. })
}

async fn answer(
    incoming: &Incoming,
    request: &HttpRequest,
    path: &FilePath,
    found: Found,
) -> Result<HttpResponse, Refusal> {
    let mut media_type = found.file.media_type.clone();
    let mut name = path.name.clone();
    let mut tag: String = found.file.digest.to_string().chars().take(32).collect();
    let mut content = Content::Stored { key: found.key, size: found.file.size };
    if let Some(spec) = found.thumb
        && let Some(thumb) = incoming.state.objects.thumb(found.key, found.file.size, spec).await?
    {
        thumb.media_type.clone_into(&mut media_type);
        name = format!("{}_{name}", spec.mark());
        tag = format!("{tag}-{}", spec.mark());
        content = Content::Thumb(thumb.bytes);
    }
    // Whole seconds, as the headers tell it.
    let modified = SystemTime::from(found.file.kept_at.trunc_subsecs(0));
    let headers = request.headers();
    let fresh = is_fresh(headers, &tag, modified);
    let size = match &content {
        Content::Stored { size, .. } => *size,
        Content::Thumb(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
    };
    let span = match text(headers, header::RANGE) {
        Some(range) if !fresh && range_counts(headers, &tag, modified) => files::span(range, size),
        _ => Span::Whole,
    };
    let mut response = HttpResponse::build(match &span {
        _ if fresh => StatusCode::NOT_MODIFIED,
        Span::Whole => StatusCode::OK,
        Span::Part(_) | Span::Parts(_) => StatusCode::PARTIAL_CONTENT,
        Span::Outside => StatusCode::RANGE_NOT_SATISFIABLE,
    });
    let shown = files::inline(&media_type) && !wants_download(incoming) && own_origin(incoming);
    response
        .insert_header((CALL_HEADER.clone(), incoming.id.to_string()))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CONTENT_SECURITY_POLICY, files::PAGE_POLICY))
        .insert_header((header::CACHE_CONTROL, lifetime(found.public)))
        .insert_header((header::CONTENT_DISPOSITION, disposition(shown, &name)))
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::ETAG, format!("\"{tag}\"")))
        .insert_header((header::LAST_MODIFIED, HttpDate::from(modified)))
        .insert_header((header::VARY, "Origin, Cookie, Authorization"));
    if fresh {
        return Ok(response.finish());
    }
    response.insert_header((header::CONTENT_TYPE, media_type.as_str()));
    match span {
        Span::Whole => with_bytes(&mut response, incoming, content, Part { first: 0, count: size }).await,
        Span::Part(part) => {
            response.insert_header((header::CONTENT_RANGE, part.named(size)));
            with_bytes(&mut response, incoming, content, part).await
        }
        Span::Parts(parts) => {
            let parts = Parts::new(&parts, &media_type, size);
            response.insert_header((header::CONTENT_TYPE, parts.media_type()));
            with_parts(&mut response, incoming, content, parts).await
        }
        Span::Outside => {
            response.insert_header((header::CONTENT_RANGE, format!("bytes */{size}")));
            response.insert_header((header::CACHE_CONTROL, "no-store"));
            Ok(response.finish())
        }
    }
}

async fn with_bytes(
    response: &mut HttpResponseBuilder,
    incoming: &Incoming,
    content: Content,
    part: Part,
) -> Result<HttpResponse, Refusal> {
    Ok(match content {
        Content::Stored { key, .. } => {
            let bytes = stream::bytes(Arc::clone(&incoming.state.objects), key, part.first, part.count).await?;
            response.body(SizedStream::new(part.count, bytes))
        }
        Content::Thumb(bytes) => {
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
            response.body(bytes.slice(at(part.first)..at(part.first.saturating_add(part.count))))
        }
    })
}

async fn with_parts(
    response: &mut HttpResponseBuilder,
    incoming: &Incoming,
    content: Content,
    parts: Parts,
) -> Result<HttpResponse, Refusal> {
    Ok(match content {
        Content::Stored { key, .. } => {
            let length = parts.length();
            let bytes = parts.stored(Arc::clone(&incoming.state.objects), key).await?;
            response.body(SizedStream::new(length, bytes))
        }
        Content::Thumb(bytes) => response.body(parts.within(&bytes)),
    })
}

/// Names are unique and their bytes never change, so a browser may keep them; others only where everybody may see them.
fn lifetime(public: bool) -> &'static str {
    if public {
        "max-age=2592000, stale-while-revalidate=86400"
    } else {
        "private, max-age=2592000, stale-while-revalidate=86400"
    }
}

/// `=` is the one character of a stored name that must be quoted.
fn disposition(shown: bool, name: &str) -> String {
    let kind = if shown { "inline" } else { "attachment" };
    if name.contains('=') { format!("{kind}; filename=\"{name}\"") } else { format!("{kind}; filename={name}") }
}

/// Go's `ParseBool`.
fn wants_download(incoming: &Incoming) -> bool {
    matches!(incoming.param("download"), Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

/// On the platform's own host nothing an app serves is shown in place (DESIGN section 6).
fn own_origin(incoming: &Incoming) -> bool {
    matches!(incoming.place, Place::App { own_origin: true, .. })
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether the client has these bytes already (RFC 9110 section 13).
fn is_fresh(headers: &HeaderMap, tag: &str, modified: SystemTime) -> bool {
    if let Some(tags) = text(headers, header::IF_NONE_MATCH) {
        return tags.trim() == "*" || tags.split(',').any(|listed| is_tag(listed, tag));
    }
    let since = text(headers, header::IF_MODIFIED_SINCE).and_then(|text| text.parse::<HttpDate>().ok());
    since.is_some_and(|since| HttpDate::from(modified) <= since)
}

/// A range of an older file would be worthless: `If-Range` must name this one.
fn range_counts(headers: &HeaderMap, tag: &str, modified: SystemTime) -> bool {
    match text(headers, header::IF_RANGE) {
        None => true,
        Some(condition) if condition.contains('"') => condition.trim() == format!("\"{tag}\""),
        Some(condition) => condition.parse::<HttpDate>().is_ok_and(|date| HttpDate::from(modified) == date),
    }
}

fn is_tag(listed: &str, tag: &str) -> bool {
    let listed = listed.trim();
    let strong = listed.strip_prefix("W/").unwrap_or(listed);
    strong.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(tag)
}
