//! Takes a multipart body apart as it comes in (RFC 2046 section 5.1, RFC 7578). Keeps no more than one delimiter's length
//! of a part, and no headers above [`LONGEST_HEAD`].

use bytes::{Buf as _, Bytes, BytesMut};
use inn_protocol::Refusal;

use super::head::{self, PartHead};
use super::{MOST_PARTS, broken};

/// Bytes of one part's headers.
const LONGEST_HEAD: usize = 8 << 10;
/// Blanks that may follow a delimiter on its line.
const LONGEST_PADDING: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A part begins.
    Part(PartHead),
    /// The next bytes of its content.
    Data(Bytes),
    /// The part is whole.
    PartEnd,
    /// So is the form; what follows is passed over.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble,
    /// A delimiter was read; is it the last one?
    Delimiter,
    Head,
    Content,
    Done,
}

pub(crate) struct Parser {
    /// `CRLF--boundary`
    delimiter: Vec<u8>,
    buffer: BytesMut,
    state: State,
    parts: usize,
}

impl Parser {
    pub(crate) fn new(boundary: &str) -> Self {
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        // The first delimiter needs no line break before it.
        Self { delimiter, buffer: BytesMut::from(&b"\r\n"[..]), state: State::Preamble, parts: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.state != State::Done {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// What the bytes so far make out; `None` when more are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, Refusal> {
        loop {
            match self.state {
                State::Done => return Ok(None),
                State::Preamble => match self.content() {
                    Found::Delimiter(before) => {
                        self.buffer.advance(before + self.delimiter.len());
                        self.state = State::Delimiter;
                    }
                    Found::Data(0) => return Ok(None),
                    Found::Data(length) => self.buffer.advance(length),
                },
                State::Delimiter => match self.after_delimiter() {
                    After::More => return Ok(None),
                    After::Last => {
                        self.buffer.clear();
                        self.state = State::Done;
                        return Ok(Some(Event::End));
                    }
                    After::Line(length) => {
                        self.buffer.advance(length);
                        self.state = State::Head;
                    }
                    After::Neither => return Err(broken("a boundary is followed by something else on its line")),
                },
                State::Head => {
                    let Some(head) = self.head()? else { return Ok(None) };
                    self.parts += 1;
                    if self.parts > MOST_PARTS {
                        return Err(broken(&format!("it has more than {MOST_PARTS} parts")));
                    }
                    self.state = State::Content;
                    return Ok(Some(Event::Part(head)));
                }
                State::Content => match self.content() {
                    Found::Delimiter(0) => {
                        self.buffer.advance(self.delimiter.len());
                        self.state = State::Delimiter;
                        return Ok(Some(Event::PartEnd));
                    }
                    Found::Data(0) => return Ok(None),
                    Found::Delimiter(length) | Found::Data(length) => {
                        return Ok(Some(Event::Data(self.buffer.split_to(length).freeze())));
                    }
                },
            }
        }
    }

    /// Whether the form is whole.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// How many bytes are certainly content, or where the delimiter begins.
    fn content(&self) -> Found {
        let buffer = &self.buffer[..];
        let mut from = 0;
        while let Some(place) = buffer.get(from..).and_then(|rest| rest.iter().position(|byte| *byte == b'\r')) {
            let start = from + place;
            let rest = buffer.get(start..).unwrap_or_default();
            if rest.len() < self.delimiter.len() {
                if self.delimiter.starts_with(rest) {
                    return Found::Data(start);
                }
            } else if rest.starts_with(&self.delimiter) {
                match ended(rest.get(self.delimiter.len()..).unwrap_or_default()) {
                    // The beginning of a longer line is content.
                    After::Neither => {}
                    After::More => return Found::Data(start),
                    After::Last | After::Line(_) => return Found::Delimiter(start),
                }
            }
            from = start + 1;
        }
        Found::Data(buffer.len())
    }

    fn after_delimiter(&self) -> After {
        ended(&self.buffer)
    }

    fn head(&mut self) -> Result<Option<PartHead>, Refusal> {
        // The line break of the delimiter's line was taken already, so an empty head begins with another one.
        if self.buffer.starts_with(b"\r\n") {
            return Err(broken("a part has no headers"));
        }
        let Some(end) = find(&self.buffer, b"\r\n\r\n") else {
            if self.buffer.len() > LONGEST_HEAD {
                return Err(broken(&format!("the headers of a part are longer than {LONGEST_HEAD} bytes")));
            }
            return Ok(None);
        };
        if end > LONGEST_HEAD {
            return Err(broken(&format!("the headers of a part are longer than {LONGEST_HEAD} bytes")));
        }
        let head = self.buffer.split_to(end);
        self.buffer.advance(4);
        head::part(&head).map(Some)
    }
}

enum Found {
    /// This many bytes are content.
    Data(usize),
    /// This many bytes are content, then comes the delimiter.
    Delimiter(usize),
}

enum After {
    More,
    Last,
    /// A line break, this many bytes on.
    Line(usize),
    Neither,
}

/// What follows `CRLF--boundary`.
fn ended(rest: &[u8]) -> After {
    if rest.starts_with(b"--") {
        return After::Last;
    }
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match rest.get(blanks..).unwrap_or_default() {
        [b'\r', b'\n', ..] => After::Line(blanks + 2),
        [] | [b'\r'] if blanks <= LONGEST_PADDING => After::More,
        [b'-'] if blanks == 0 => After::More,
        _ => After::Neither,
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
