//! How far a job is: a bar that redraws itself on a terminal, a line per step elsewhere. Always on standard error.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

use super::super::out::{Out, text};

const WIDTH: usize = 24;
/// Longest step shown, so that the bar stays on one line.
const STEP: usize = 48;

pub(crate) struct Bar {
    out: Out,
    terminal: bool,
    shown: String,
}

impl Bar {
    pub(crate) fn new(out: Out) -> Self {
        Self { out, terminal: io::stderr().is_terminal(), shown: String::new() }
    }

    /// Shows a job as it is now, `status` being its word.
    pub(crate) fn show(&mut self, status: &str, job: &Value) {
        let line = words(status, job, self.terminal);
        if line == self.shown {
            return;
        }
        if self.terminal {
            // The line is made of ours and of cleaned words alone.
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "\r\u{1b}[2K{line}").and_then(|()| stderr.flush());
        } else {
            self.out.say(&line);
        }
        self.shown = line;
    }

    /// Leaves the terminal's line to others.
    pub(crate) fn clear(&mut self) {
        if self.terminal && !self.shown.is_empty() {
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "\r\u{1b}[2K").and_then(|()| stderr.flush());
        }
        self.shown.clear();
    }
}

fn words(status: &str, job: &Value, drawn: bool) -> String {
    let percent = job.pointer("/progress/percent").and_then(Value::as_u64).map(|percent| percent.min(100));
    let step: String = Out::one_line(&text(job, "/progress/step")).chars().take(STEP).collect();
    let told = match percent {
        Some(percent) => format!("{percent:>3} %  {step}"),
        None => String::new(),
    };
    let line = match percent {
        Some(percent) if drawn => {
            let full = usize::try_from(percent).unwrap_or_default() * WIDTH / 100;
            format!("{status:<9} [{}{}] {told}", "#".repeat(full), ".".repeat(WIDTH - full))
        }
        _ => format!("{status:<9} {told}"),
    };
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bar_is_drawn_on_a_terminal_and_words_elsewhere() {
        let job = json!({"progress": {"step": "reading", "percent": 50}});
        assert_eq!(
            words("running", &job, true),
            format!("running   [{}{}]  50 %  reading", "#".repeat(12), ".".repeat(12))
        );
        assert_eq!(words("running", &job, false), "running    50 %  reading");
        assert_eq!(words("queued", &json!({"progress": null}), true), "queued");
    }

    #[test]
    fn a_step_cannot_steer_the_terminal_or_break_the_line() {
        let job = json!({"progress": {"step": format!("\u{1b}[2J\n{}", "x".repeat(500)), "percent": 900}});
        let line = words("running", &job, true);
        assert!(!line.contains(['\u{1b}', '\n']) && line.chars().count() < 120, "{line:?}");
    }
}
