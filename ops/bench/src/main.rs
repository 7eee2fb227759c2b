//! The benchmark: what one machine does, who calls, and what it costs. See `ops/bench/README.md`.

mod cards;
mod claims;
mod face;
mod inn;
mod load;
mod machine;
mod plan;
mod pocketbase;
mod realtime;
mod report;
mod server;
mod verify;
mod wire;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;

use crate::face::Case;
use crate::inn::Inn;
use crate::machine::Processes;
use crate::plan::Plan;
use crate::pocketbase::PocketBase;
use crate::report::at_most;

const MIB: f64 = 1024.0 * 1024.0;

/// Measures Innkeeper over HTTP, beside PocketBase when it is there. Prints Markdown.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 120)]
struct Options {
    /// The binary under test, from a release build
    #[arg(long, value_name = "FILE")]
    inn: PathBuf,
    /// PocketBase to compare with
    #[arg(long, value_name = "FILE")]
    pocketbase: Option<PathBuf>,
    /// Folder of the kanban demo
    #[arg(long, value_name = "DIR", default_value = "ops/demo/kanban")]
    kanban: PathBuf,
    /// Where the run's data goes; removed at the end. Take a real disk: memory makes fsync free
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Measured seconds a row
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Connections
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    connections: Vec<usize>,
    /// Cards in the table before the first measurement
    #[arg(long, default_value_t = 10_000)]
    cards: usize,
    /// Open streams of events
    #[arg(long, default_value_t = 5_000)]
    streams: usize,
    /// Keep the index that the app declares on its cards, on both sides
    #[arg(long)]
    indexed: bool,
    /// Measure only these: verify, view, list, skip, any, every, update, create, claim, realtime; async: the same cases again
    /// without waiting for the disk
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tell(&error.into()),
    };
    match runtime.block_on(measure(&options, &mut std::io::stdout())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => tell(&error),
    }
}

fn tell(error: &anyhow::Error) -> ExitCode {
    // Nobody is left to tell when even this stream is closed.
    writeln!(std::io::stderr(), "inn-bench: {error:#}").ok();
    ExitCode::from(2)
}

/// True when no row failed. A missed target is a figure, not a failure.
async fn measure(options: &Options, out: &mut dyn Write) -> anyhow::Result<bool> {
    ensure!((0.1..=20.0).contains(&options.seconds), "--seconds must be 0.1 to 20: a signature lives for a minute");
    let below = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let home = server::folder(&std::path::absolute(&below)?)?;
    let dir = home.path();
    head(options, dir, out)?;
    if options.wants("verify") {
        verification(out)?;
    }

    let (bundle, schema) = inn::bundle(&options.kanban, options.indexed)?;
    let mut inn = Inn::start(&options.inn, dir, true).await?;
    let papers = inn.furnish(bundle).await?;
    let callers = inn.callers(&papers).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    memory("idle, nothing sent yet", inn.processes(), out)?;
    let stock = callers.session.seed(options.cards).await.context("seeding inn")?;
    let rival = match &options.pocketbase {
        Some(binary) => Some(PocketBase::start(binary, dir, &schema).await?),
        None => None,
    };
    let theirs = match &rival {
        Some(rival) => {
            let stock = rival.face.seed(options.cards).await.context("seeding PocketBase")?;
            Some((&rival.face, stock))
        }
        None => None,
    };
    let rival_side = || theirs.as_ref().map(|(face, stock)| (*face, stock));
    if let Some((face, rows)) = rival_side() {
        for case in Case::LISTS {
            let (own, other) = (callers.signed.first_page(case, &stock).await?, face.first_page(case, rows).await?);
            ensure!(own == other, "the two sides answer the same list ({case:?}) differently: {own:?} and {other:?}");
        }
    }

    writeln!(out, "\nfsync {}, synchronous_commit on:\n\n{}", inn.fsync()?, report::HEAD)?;
    let time = Duration::from_secs_f64(options.seconds);
    let before = callers.session.count().await?;
    let mut plan =
        Plan { connections: &options.connections, time, out, made: 0, created: 0, met: 0, missed: 0, failed: 0 };
    let both = [("signed agent", &callers.signed), ("session", &callers.session)];
    let all = [both[0], both[1], ("loopback token", &callers.loopback)];
    for case in Case::ALL.into_iter().filter(|case| options.wants(case.word())) {
        let ours = if case.is_write() { &all[..] } else { &both[..] };
        plan.records(case, true, ours, &stock, rival_side()).await?;
    }
    if options.wants("claim") {
        plan.claims(&callers, &stock.board, true, 1).await?;
        plan.claims(&callers, &stock.board, true, 100).await?;
    }
    let after = callers.session.count().await?;
    if options.wants("realtime") {
        let listening = realtime::callers(&callers.session, inn.sessions(realtime::PRINCIPALS).await?);
        writeln!(plan.out)?;
        realtime::measure(&listening, &callers.session, &stock, options.streams, plan.out).await?;
    }
    writeln!(plan.out)?;
    memory("idle, after the load", inn.processes(), plan.out)?;
    peak(inn.processes(), rival_side().map(|(face, _)| face.target.processes), plan.out)?;
    let found = usize::try_from(after.saturating_sub(before))?;
    writeln!(
        plan.out,
        "- creates that were answered: {}; cards that are there now and were not before: {found}",
        plan.created
    )?;
    ensure!(plan.failed > 0 || found == plan.created, "what was answered is not what was stored");
    inn.stop()?;

    if options.wants("async") {
        let mut inn = Inn::start(&options.inn, dir, false).await?;
        let callers = inn.callers(&papers).await?;
        writeln!(plan.out, "\nfsync {}, synchronous_commit off:\n\n{}", inn.fsync()?, report::HEAD)?;
        let both = [("signed agent", &callers.signed), ("loopback token", &callers.loopback)];
        for case in Case::ALL.into_iter().filter(|case| options.wants(case.word()) || options.only.len() == 1) {
            plan.records(case, false, &both, &stock, rival_side()).await?;
        }
        plan.claims(&callers, &stock.board, false, 1).await?;
        plan.claims(&callers, &stock.board, false, 100).await?;
        inn.stop()?;
    }
    let Plan { met, missed, failed, .. } = plan;
    drop(theirs);
    if let Some(rival) = rival {
        rival.stop()?;
    }
    writeln!(
        out,
        "\nTargets met: {met}, missed: {missed}; rows failed: {failed}. Load at the end: {}",
        machine::load()
    )?;
    Ok(failed == 0)
}

fn head(options: &Options, dir: &std::path::Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let sync = machine::sync_cost(dir)?;
    writeln!(out, "- date: {}", chrono::Utc::now().format("%Y-%m-%d %H:%M UTC"))?;
    writeln!(out, "- machine: {}; load before: {}", machine::describe(), machine::load())?;
    writeln!(out, "- disk: an 8 KiB append made durable takes {:.2} ms (median)", sync.as_secs_f64() * 1000.0)?;
    writeln!(out, "- settings of inn beside the defaults: {}", inn::SETTINGS)?;
    let rival = match &options.pocketbase {
        Some(binary) => format!("{}, defaults, public rules, no fsync a commit", PocketBase::version(binary)?),
        None => "NOT MEASURED: no binary given, so there are no ratios".to_owned(),
    };
    writeln!(out, "- PocketBase: {rival}")?;
    let index = if options.indexed { "with" } else { "without" };
    writeln!(
        out,
        "- data: kanban demo {index} the index it declares on cards, {} cards; {} s a row in two slices, sides taking turns",
        options.cards, options.seconds
    )?;
    writeln!(out, "- all calls are signed and written out before the clock starts, except completing a claim")?;
    Ok(())
}

fn verification(out: &mut dyn Write) -> anyhow::Result<()> {
    let cost = verify::measure()?;
    writeln!(
        out,
        "- verifying one signed call, token seen before: {:.0} µs of CPU (median), {:.0} µs p99; target ≤ 150 µs p99 {}",
        cost.warm_p50,
        cost.warm_p99,
        at_most(cost.warm_p99, 150.0)
    )?;
    writeln!(out, "- reading and verifying a token for the first time: {:.0} µs of CPU (median)", cost.cold_p50)?;
    Ok(())
}

/// The most memory each server ever held; PostgreSQL's is in the lines above.
#[allow(clippy::cast_precision_loss)]
fn peak(own: Processes, rival: Option<Processes>, out: &mut dyn Write) -> anyhow::Result<()> {
    let own = own.peak()? as f64 / MIB;
    match rival {
        Some(rival) => {
            let rival = rival.peak()? as f64 / MIB;
            let met = at_most(own, rival / 2.0);
            writeln!(out, "- memory, peak: inn {own:.0} MiB, PocketBase {rival:.0} MiB; target ≤ half of it {met}")?;
        }
        None => writeln!(out, "- memory, peak: inn {own:.0} MiB")?,
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)]
fn memory(when: &str, processes: Processes, out: &mut dyn Write) -> anyhow::Result<()> {
    let own = processes.resident()? as f64 / MIB;
    let database = match processes.database_memory() {
        Ok(bytes) => format!("{:.0} MiB with PostgreSQL (shared pages counted once)", own + bytes as f64 / MIB),
        Err(error) => format!("PostgreSQL's cannot be read ({error:#})"),
    };
    writeln!(out, "- memory, {when}: inn {own:.0} MiB, target ≤ 120 MiB {}; {database}", at_most(own, 120.0))?;
    Ok(())
}
