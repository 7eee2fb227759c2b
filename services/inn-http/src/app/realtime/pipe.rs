//! What is on its way to one client: a bounded queue between the teller and the socket.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Bytes that may wait, whatever their number.
const MOST_BYTES: usize = 1 << 20;

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Properly: the client comes again when it wants to.
    Over,
    /// In the middle: it was too slow, and what it has read so far is all it gets.
    CutOff,
}

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Bytes>,
    bytes: usize,
    end: Option<End>,
    reader: Option<Waker>,
}

pub(super) struct Pipe {
    most: usize,
    waiting: Mutex<Waiting>,
    /// Something was read.
    room: Notify,
}

impl Pipe {
    pub(super) fn new(most: usize) -> Self {
        Self { most, waiting: Mutex::default(), room: Notify::new() }
    }

    /// `false`: there is no room. One message always fits, whatever its size.
    pub(super) fn push(&self, message: Bytes) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.end.is_some() {
            return true;
        }
        let full = waiting.queue.len() >= self.most || waiting.bytes + message.len() > MOST_BYTES;
        if full && !waiting.queue.is_empty() {
            return false;
        }
        waiting.bytes += message.len();
        waiting.queue.push_back(message);
        wake(waiting.reader.take());
        true
    }

    /// Waits for half of the room.
    pub(super) async fn room(&self) {
        loop {
            let read = self.room.notified();
            tokio::pin!(read);
            read.as_mut().enable();
            {
                let waiting = self.waiting.lock();
                let has_room = waiting.queue.len() * 2 <= self.most && waiting.bytes * 2 <= MOST_BYTES;
                if has_room || waiting.end.is_some() {
                    return;
                }
            }
            read.await;
        }
    }

    pub(super) fn end(&self, end: End) {
        let mut waiting = self.waiting.lock();
        waiting.queue = VecDeque::new();
        waiting.bytes = 0;
        waiting.end.get_or_insert(end);
        wake(waiting.reader.take());
        drop(waiting);
        self.room.notify_waiters();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.waiting.lock().end.is_some()
    }

    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Result<Bytes, End>> {
        let mut waiting = self.waiting.lock();
        if let Some(message) = waiting.queue.pop_front() {
            waiting.bytes -= message.len();
            drop(waiting);
            self.room.notify_waiters();
            return Poll::Ready(Ok(message));
        }
        if let Some(end) = waiting.end {
            return Poll::Ready(Err(end));
        }
        waiting.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

fn wake(reader: Option<Waker>) {
    if let Some(reader) = reader {
        reader.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(pipe: &Pipe) -> Poll<Result<Bytes, End>> {
        pipe.poll(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_is_pushed_is_read_in_order_and_more_than_its_room_is_not_taken() {
        let pipe = Pipe::new(2);
        let message = Bytes::from_static;
        assert!(pipe.push(message(b"a")) && pipe.push(message(b"b")) && !pipe.push(message(b"c")));
        assert_eq!(next(&pipe), Poll::Ready(Ok(message(b"a"))));
        assert!(pipe.push(message(b"c")));
        pipe.end(End::CutOff);
        pipe.end(End::Over);
        assert_eq!(next(&pipe), Poll::Ready(Err(End::CutOff)), "what waited is gone, and the first reason counts");
    }

    #[test]
    fn one_large_message_fits_and_a_second_one_does_not() {
        let pipe = Pipe::new(10);
        let large = Bytes::from(vec![b'x'; MOST_BYTES * 2]);
        assert!(pipe.push(large.clone()) && !pipe.push(large));
    }
}
