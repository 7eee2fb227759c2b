//! Runs a program for one request: input in, progress and result out, nothing of it left behind.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::super::out::{Out, clean};
use super::output::{self, MAX_REASON, Progress, shorten};

/// Most bytes of standard output, progress lines included.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// Longest line of the log.
const MAX_LOG_LINE: usize = 4096;
/// Time to end after SIGTERM, before SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// How long the pipes may stay open after the program itself has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// A program and what it finds in its environment.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(&'static str, String)>,
}

/// How a run ended.
#[derive(Debug, PartialEq)]
pub(super) enum Ended {
    Result(Value),
    Failed(String),
    /// Stopped by us.
    Stopped,
}

impl Program {
    /// Runs it. `tag` marks its lines in the log.
    pub(super) async fn run(
        &self,
        input: &Value,
        more_env: &[(&str, &str)],
        tag: &str,
        progress: watch::Sender<Option<Progress>>,
        stop: &CancellationToken,
    ) -> Ended {
        let mut child = match self.spawn(more_env) {
            Ok(child) => child,
            Err(error) => {
                let name = self.argv.first().map_or("", String::as_str);
                return Ended::Failed(format!("{name} cannot be started: {error}"));
            }
        };
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Ended::Failed("the program has no pipes".to_owned());
        };
        let text = input.to_string();
        // A program that does not read its input is free not to.
        let writer = tokio::spawn(async move {
            let _ = stdin.write_all(text.as_bytes()).await;
        });
        let too_much = CancellationToken::new();
        let group = child.id();
        let results = tokio::spawn(read_results(stdout, progress, too_much.clone()));
        let log = tokio::spawn(read_log(stderr, tag.to_owned()));
        let status = tokio::select! {
            status = child.wait() => Some(status),
            () = stop.cancelled() => None,
            () = too_much.cancelled() => None,
        };
        let Some(status) = status else {
            terminate(&mut child, group).await;
            writer.abort();
            results.abort();
            log.abort();
            return if too_much.is_cancelled() { cut_off() } else { Ended::Stopped };
        };
        // What the program left running in the background ends with it: it would hold the pipes open for ever.
        let (pipes, more) = (results.abort_handle(), log.abort_handle());
        let closer = tokio::spawn(async move {
            tokio::time::sleep(DRAIN).await;
            signal(group, Signal::KILL);
            tokio::time::sleep(DRAIN).await;
            pipes.abort();
            more.abort();
        });
        let text = results.await.unwrap_or_default();
        let last = log.await.unwrap_or_default();
        closer.abort();
        writer.abort();
        if too_much.is_cancelled() {
            // It ended before we could end it: by itself, or because nobody reads its output any more.
            return cut_off();
        }
        judge(status, &text, &last)
    }

    fn spawn(&self, more_env: &[(&str, &str)]) -> std::io::Result<Child> {
        let Some((name, args)) = self.argv.split_first() else {
            return Err(std::io::Error::other("no program was named"));
        };
        let mut command = Command::new(name);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.envs(self.env.iter().map(|(name, value)| (*name, value))).envs(more_env.iter().copied());
        // A group of its own: Ctrl-C at the terminal is for us, and stopping reaches everything it started.
        command.process_group(0).spawn()
    }
}

fn cut_off() -> Ended {
    Ended::Failed(format!("the program wrote more than {MAX_OUTPUT} bytes"))
}

fn judge(status: std::io::Result<ExitStatus>, text: &str, last: &str) -> Ended {
    let status = match status {
        Ok(status) => status,
        Err(error) => return Ended::Failed(format!("the program's end is not known: {error}")),
    };
    if status.success() {
        return output::result(text).map_or_else(Ended::Failed, Ended::Result);
    }
    Ended::Failed(if last.is_empty() { format!("the program ended with {status}") } else { last.to_owned() })
}

/// Reads progress lines as they come and gives back everything else.
async fn read_results(
    stdout: impl AsyncRead + Unpin,
    progress: watch::Sender<Option<Progress>>,
    too_much: CancellationToken,
) -> String {
    let mut reader = BufReader::new(stdout.take(MAX_OUTPUT + 1));
    let (mut text, mut line, mut total) = (String::new(), Vec::new(), 0_u64);
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line).await {
            Ok(read) if read > 0 => total += read as u64,
            _ => return text,
        }
        if total > MAX_OUTPUT {
            too_much.cancel();
            return String::new();
        }
        let said = String::from_utf8_lossy(&line);
        match Progress::parse(said.trim_end()) {
            Some(step) => progress.send_modify(|newest| *newest = Some(step)),
            None => text.push_str(&said),
        }
    }
}

/// Passes the log on, a line at a time, and gives back the last one.
async fn read_log(stderr: impl AsyncRead + Unpin, tag: String) -> String {
    let out = Out::new(false);
    let mut reader = BufReader::new(stderr);
    let (mut last, mut line) = (String::new(), Vec::new());
    loop {
        line.clear();
        let mut limited = (&mut reader).take(MAX_LOG_LINE as u64);
        match limited.read_until(b'\n', &mut line).await {
            Ok(read) if read > 0 => {}
            _ => return last,
        }
        let said = String::from_utf8_lossy(&line);
        let said = said.trim_end();
        if !said.is_empty() {
            out.say(format!("[{tag}] {}", clean(said)));
            last = shorten(said, MAX_REASON);
        }
    }
}

/// Asks the whole group to end, then makes it.
async fn terminate(child: &mut Child, group: Option<u32>) {
    signal(group, Signal::TERM);
    if tokio::time::timeout(TERM_GRACE, child.wait()).await.is_err() {
        signal(group, Signal::KILL);
        let _ = child.wait().await;
    } else {
        // Members that outlived their leader.
        signal(group, Signal::KILL);
    }
}

fn signal(group: Option<u32>, signal: Signal) {
    let group = group.and_then(|group| i32::try_from(group).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // A group that is gone already has nothing to be told.
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(test)]
mod tests;
