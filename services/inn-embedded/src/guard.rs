//! The shell between us and PostgreSQL.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Arguments: what to remove afterwards (0 or more paths), `--`, then the server's command line.
///
/// - Standard input is a pipe whose other end only we hold; its end means that we are gone or want the server gone.
///   SIGINT is PostgreSQL's fast shutdown: sessions end, a checkpoint is written.
/// - The watcher is a child of its own, so that the shell can wait for the server at the same time. It must not outlive
///   the server, or it would signal a stranger who got the number.
/// - Signals for our process group do not reach us here: the guard runs in a group of its own.
const SCRIPT: &str = r#"
trash=
while [ "$1" != -- ]; do
  quoted=$(printf '%s' "$1" | sed "s/'/'\\\\''/g")
  trash="$trash '$quoted'"
  shift
done
shift
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
( while read -r _ <&3; do :; done; kill -INT "$server" 2>/dev/null ) </dev/null &
watcher=$!
exec 3<&-
wait "$server"
code=$?
kill "$watcher" 2>/dev/null
if [ -n "$trash" ]; then eval "rm -rf -- $trash"; fi
exit "$code"
"#;

/// The guard's command; add the server's program and arguments after it.
pub(crate) fn command<'p>(remove: impl Iterator<Item = &'p PathBuf>) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(SCRIPT).arg("inn-postgres-guard").args(remove).arg("--");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    command
}
