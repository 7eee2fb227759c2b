//! Passwords: from a file, from the environment, or typed without being shown.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::{env, fs};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::error::{CliError, CliResult};

/// No password is longer, in bytes.
const MAX_BYTES: usize = 1024;

/// Reads a password: the file (`-` for standard input), `INN_PASSWORD_FILE`, `INN_PASSWORD`, or a prompt at a terminal.
pub(crate) fn password(file: Option<&Path>, prompt: &str) -> CliResult<String> {
    let from_env = env::var_os("INN_PASSWORD_FILE").filter(|path| !path.is_empty());
    let file = file.or_else(|| from_env.as_deref().map(Path::new));
    let text = match (file, env::var("INN_PASSWORD")) {
        (Some(file), _) => read_file(file)?,
        (None, Ok(text)) if !text.is_empty() => text,
        _ if io::stdin().is_terminal() => typed(prompt)?,
        _ => {
            return Err(CliError::Usage(
                "no terminal to ask for the password at: use --password-file FILE or INN_PASSWORD_FILE".to_owned(),
            ));
        }
    };
    let text = text.trim_end_matches(['\n', '\r']).to_owned();
    if text.is_empty() || text.len() > MAX_BYTES {
        return Err(CliError::Usage(format!("the password must have 1 to {MAX_BYTES} bytes")));
    }
    Ok(text)
}

/// A token in a file (`-` for standard input), alone on its first line.
pub(crate) fn token(file: &Path) -> CliResult<String> {
    let text = read_file(file)?.trim().to_owned();
    if text.is_empty() {
        return Err(CliError::Usage(format!("the first line of {} must be the token", file.display())));
    }
    Ok(text)
}

/// A line typed at the terminal, shown as it is typed.
pub(crate) fn line(prompt: &str) -> CliResult<String> {
    if !io::stdin().is_terminal() {
        return Err(CliError::Usage(format!("{prompt} is missing, and there is no terminal to ask at")));
    }
    Ok(ask(prompt)?.trim().to_owned())
}

fn read_file(file: &Path) -> CliResult<String> {
    if file == Path::new("-") {
        return first_line();
    }
    let text = fs::read_to_string(file)
        .map_err(|error| CliError::io(format!("the file {} cannot be read", file.display()), &error))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn typed(prompt: &str) -> CliResult<String> {
    let silent = Silence::start();
    let text = ask(prompt);
    if silent.is_some() {
        // The line break that was typed was not shown either.
        let _ = writeln!(io::stderr());
    }
    text
}

fn ask(prompt: &str) -> CliResult<String> {
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{prompt}: ").and_then(|()| stderr.flush());
    first_line()
}

fn first_line() -> CliResult<String> {
    let mut text = String::new();
    let mut input = io::Read::take(io::stdin().lock(), 4096);
    let read = input.read_line(&mut text);
    read.map_err(|error| CliError::io("standard input cannot be read", &error))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// The terminal without echo, until dropped.
struct Silence(Termios);

impl Silence {
    fn start() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet).ok()?;
        Some(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
