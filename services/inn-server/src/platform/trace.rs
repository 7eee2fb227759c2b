//! One span an HTTP request, a child of the caller's when it sent a `traceparent` (W3C Trace Context).

use actix_web::dev::ServiceRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Path without query: what stands behind a `?` may be a one-time code.
pub(super) fn span(request: &ServiceRequest) -> Span {
    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        http.request.method = %request.method(),
        url.path = request.path(),
        http.response.status_code = Empty,
        innkeeper.call = Empty,
    );
    if request.headers().contains_key("traceparent") {
        let parent = TraceContextPropagator::new().extract(&Headers(request.headers()));
        // Fails when nobody collects traces: then there is nothing to belong to.
        span.set_parent(parent).ok();
    }
    span
}

/// What the answer adds.
pub(super) fn answered(span: &Span, status: StatusCode, headers: Option<&HeaderMap>) {
    span.record("http.response.status_code", status.as_u16());
    if let Some(call) = headers.and_then(|headers| headers.get(&inn_http::error::CALL_HEADER)?.to_str().ok()) {
        span.record("innkeeper.call", call);
    }
}

struct Headers<'h>(&'h HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(actix_web::http::header::HeaderName::as_str).collect()
    }
}
