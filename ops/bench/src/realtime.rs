//! Open streams: how soon all of them hear of one event, and what one of them costs in memory.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use inn_client::{Outgoing, Papers};
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::face::{Face, Stock};
use crate::report::at_most;

/// Callers that share the streams.
pub(crate) const PRINCIPALS: usize = 50;
/// Events that are timed, one after the other.
const EVENTS: usize = 30;
/// An event that does not come within this time fails the measurement.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the readers have found.
#[derive(Default)]
struct Heard {
    /// When the event under way was asked for.
    sent: Mutex<Option<Instant>>,
    delays: Mutex<Vec<Duration>>,
    count: AtomicUsize,
}

/// `callers` are told of each card that `author` makes, over so many streams in turn.
#[allow(clippy::cast_precision_loss)]
pub(crate) async fn measure(
    callers: &[Face],
    author: &Face,
    stock: &Stock,
    streams: usize,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let processes = author.target.processes;
    let before = processes.resident()?;
    let heard = Arc::<Heard>::default();
    let mut readers = Vec::with_capacity(streams);
    for (number, caller) in (0..streams).zip(callers.iter().cycle()) {
        let (socket, client) =
            open(author.target.address, &caller.prefix).await.with_context(|| format!("stream {number}"))?;
        let body = json!({"clientId": client, "subscriptions": ["cards/*"]});
        let post = Outgoing::post(format!("{}/api/realtime", caller.prefix), &body);
        let answer = caller.client.call_once(&post, &caller.papers).await?;
        ensure!(answer.is_success(), "subscribing answered {}", answer.status);
        readers.push(tokio::spawn(read(socket, Arc::clone(&heard))));
    }
    let each = processes.resident()?.saturating_sub(before) as f64 / streams.max(1) as f64 / 1024.0;
    let list = stock.lists.first().map_or("", String::as_str);
    let cpu = processes.cpu()?;
    for number in 0..EVENTS {
        heard.count.store(0, Ordering::Release);
        *heard.sent.lock() = Some(Instant::now());
        let card = json!({"title": format!("Told {number}"), "list": list});
        author.call(&Outgoing::post(format!("{}/api/collections/cards/records", author.prefix), &card)).await?;
        let began = Instant::now();
        while heard.count.load(Ordering::Acquire) < streams {
            if began.elapsed() > PATIENCE {
                let count = heard.count.load(Ordering::Acquire);
                bail!("{count} of {streams} streams have heard of a card after {} s", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let cpu = processes.cpu()?.since(cpu);
    readers.iter().for_each(tokio::task::JoinHandle::abort);
    let mut delays = std::mem::take(&mut *heard.delays.lock());
    delays.sort();
    let at = |part: usize| {
        let place = delays.len() * part / 100;
        delays.get(place).or(delays.last()).map_or(0.0, |delay| delay.as_secs_f64() * 1000.0)
    };
    writeln!(
        out,
        "- realtime, {streams} streams of {PRINCIPALS} callers, {EVENTS} cards made one after the other: heard after {:.1} ms (median), \
         {:.1} ms (p99) from sending the create, reading them all with one thread included; target ≤ 100 ms p99 {}",
        at(50),
        at(99),
        at_most(at(99), 100.0)
    )?;
    writeln!(
        out,
        "- realtime, memory a stream: {each:.1} KiB of inn; target ≤ 30 KiB {}; CPU an event and 1,000 streams: {:.2} ms of inn, \
         {:.2} ms of PostgreSQL, {:.2} ms of the readers. The limit is the writing and reading of sockets",
        at_most(each, 30.0),
        cpu.server.as_secs_f64() * 1e6 / (EVENTS * streams) as f64,
        cpu.database.as_secs_f64() * 1e6 / (EVENTS * streams) as f64,
        cpu.client.as_secs_f64() * 1e6 / (EVENTS * streams) as f64,
    )?;
    Ok(())
}

/// Opens a stream with as little around it as possible; answers its socket and its client's id.
async fn open(address: SocketAddr, prefix: &str) -> anyhow::Result<(TcpStream, String)> {
    let mut socket = TcpStream::connect(address).await?;
    let request = format!("GET {prefix}/api/realtime HTTP/1.1\r\nhost: localhost:{}\r\n\r\n", address.port());
    socket.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    let mut piece = [0; 1024];
    loop {
        if let Some(id) = text.split_once("\"clientId\":\"").and_then(|(_, rest)| rest.get(..40)) {
            return Ok((socket, id.to_owned()));
        }
        let read = socket.read(&mut piece).await?;
        ensure!(read > 0 && text.len() < 8192, "no stream: {text}");
        text.push_str(&String::from_utf8_lossy(piece.get(..read).unwrap_or_default()));
    }
}

/// Notes when each event was there. One event at a time is under way, so the first of its name in a piece is it.
async fn read(mut socket: TcpStream, heard: Arc<Heard>) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = socket.read(&mut piece).await {
        let bytes = piece.get(..read).unwrap_or_default();
        let is_event = bytes.windows(13).any(|window| window == b"event:cards/*");
        let Some(sent) = heard.sent.lock().filter(|_| is_event) else { continue };
        heard.delays.lock().push(sent.elapsed());
        heard.count.fetch_add(1, Ordering::AcqRel);
    }
}

/// The callers: sessions of one person, each a caller of its own.
pub(crate) fn callers(face: &Face, sessions: Vec<String>) -> Vec<Face> {
    sessions.into_iter().map(|session| face.with(Papers::Session(session.into()))).collect()
}
