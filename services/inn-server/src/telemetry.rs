//! Logs on standard error and, when a collector is named, traces to it. Once a process.
//!
//! The exporter sends from a thread of its own with a blocking client: the asynchronous one needs a runtime that this
//! thread does not have, panics at the first export and then nothing is ever exported again.

use std::io::{self, IsTerminal as _};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt};
use url::Url;

use crate::config::{LogFormat, Settings};

/// Libraries whose chatter helps nobody who runs the platform.
const QUIET: [&str; 7] = ["actix_server", "h2", "hyper", "opentelemetry", "refinery_core", "reqwest", "tokio_postgres"];

/// Kept until the end of the process; [`Telemetry::finish`] sends what is still waiting.
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

/// Starts logging and tracing. Call it before any runtime exists, and once: a second call changes nothing.
pub fn start(settings: &Settings) -> anyhow::Result<Telemetry> {
    crate::tls::install();
    let traces = settings.telemetry.otlp_endpoint.as_ref().map(exporter).transpose()?;
    let spans = traces.as_ref().map(|provider| {
        tracing_opentelemetry::layer().with_tracer(provider.tracer("inn")).with_filter(levels(&settings.log.filter))
    });
    let log: Box<dyn Layer<_> + Send + Sync> = match settings.log.format {
        LogFormat::Human => fmt::layer()
            .with_ansi(io::stderr().is_terminal())
            .with_writer(io::stderr)
            .with_filter(levels(&settings.log.filter))
            .boxed(),
        LogFormat::Json => {
            fmt::layer().json().with_writer(io::stderr).with_filter(levels(&settings.log.filter)).boxed()
        }
    };
    if Registry::default().with(spans).with(log).try_init().is_err() {
        tracing::debug!("logging was started before");
    }
    Ok(Telemetry { traces })
}

impl Telemetry {
    /// Sends the spans that are still waiting. Blocks for a few seconds at most.
    pub fn finish(self) {
        if let Some(Err(error)) = self.traces.map(|traces| traces.shutdown()) {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// The given levels, over quieter ones for libraries.
fn levels(directives: &str) -> Targets {
    let quiet = Targets::new().with_targets(QUIET.map(|target| (target, LevelFilter::WARN)));
    // Checked when the setting was read.
    let wanted: Targets = directives.parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO));
    let default = wanted.default_level().unwrap_or(LevelFilter::OFF);
    quiet.with_targets(wanted.iter().map(|(target, level)| (target.to_owned(), level))).with_default(default)
}

fn exporter(endpoint: &Url) -> anyhow::Result<SdkTracerProvider> {
    let target = format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/'));
    let exporter = SpanExporter::builder().with_http().with_endpoint(target).build()?;
    let resource = Resource::builder().with_service_name("inn").build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn libraries_are_quiet_unless_they_are_named() {
        let info = levels("info");
        assert!(info.would_enable("inn_server", &Level::INFO) && !info.would_enable("inn_server", &Level::DEBUG));
        assert!(!info.would_enable("hyper::client", &Level::INFO) && info.would_enable("hyper::client", &Level::WARN));
        let named = levels("warn,hyper=debug,inn_store=trace");
        assert!(named.would_enable("hyper::client", &Level::DEBUG) && !named.would_enable("inn_server", &Level::INFO));
        assert!(named.would_enable("inn_store", &Level::TRACE));
    }
}
