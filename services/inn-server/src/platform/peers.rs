//! Clients that are gone without a word: a cable that was pulled, a laptop that was closed, a network that drops packets.
//!
//! Nothing tells a server that such a connection is dead. What is sent to it waits for its answer for a quarter of an hour,
//! and a stream of events that has nothing to say waits for ever. So the kernel asks in the silence whether the other end
//! is still there, and gives up what is not answered in time; the stream then leaves its place to somebody else.

use std::net::TcpListener;
use std::time::Duration;

use rustix::io::Result;
use rustix::net::sockopt;

/// When the kernel gives a peer up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// Silence after which it asks, and the time between two questions.
    ask: Duration,
    /// How long anything may stay unanswered: what was sent, a question, or that there is no room to send more.
    answer: Duration,
}

/// Longer than most tunnels and pauses in a film; whoever is given up all the same comes again, with a range or a cursor.
pub(super) const USUAL: Patience = Patience { ask: Duration::from_secs(30), answer: Duration::from_mins(2) };

impl Patience {
    /// For every connection that will be accepted: they inherit it.
    pub(super) fn watch(self, listener: &TcpListener) -> Result<()> {
        sockopt::set_socket_keepalive(listener, true)?;
        sockopt::set_tcp_keepidle(listener, self.ask)?;
        sockopt::set_tcp_keepintvl(listener, self.ask)?;
        #[cfg(target_os = "linux")]
        sockopt::set_tcp_user_timeout(listener, u32::try_from(self.answer.as_millis()).unwrap_or(u32::MAX))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn every_accepted_connection_is_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        USUAL.watch(&listener).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap(), USUAL.ask);
        assert_eq!(sockopt::tcp_keepintvl(&accepted).unwrap(), USUAL.ask);
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&accepted).unwrap(), 120_000);
    }

    /// A peer that takes nothing looks to the kernel like one that is gone: nothing more is acknowledged.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_peer_that_answers_no_more_is_given_up_and_one_that_answers_is_not() {
        let quick = Patience { ask: Duration::from_secs(1), answer: Duration::from_millis(1_500) };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        quick.watch(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let _silent = TcpStream::connect(address).unwrap();
        let (mut to_silent, _) = listener.accept().unwrap();
        let mut reading = TcpStream::connect(address).unwrap();
        let (mut to_reading, _) = listener.accept().unwrap();
        let reader = std::thread::spawn(move || {
            let (mut buffer, mut read) = ([0; 1024], 0);
            while let Ok(count @ 1..) = reading.read(&mut buffer) {
                read += count;
            }
            read
        });
        let given_up = loop {
            to_reading.write_all(b"still there?").unwrap();
            if let Err(error) = to_silent.write_all(&vec![b'x'; 64 << 10]) {
                break error;
            }
        };
        assert_eq!(given_up.kind(), ErrorKind::TimedOut);
        to_reading.write_all(b"!").unwrap();
        drop(to_reading);
        assert!(reader.join().unwrap() > 12);
    }
}
