//! Grammar (section A.3): a machine of four states in which a group is accepted in any state.

use super::ast::{Ast, Compared, Item, Join, Node, Sign, Term};
use super::error::FilterError;
use super::scan::{Scanner, Token};
use super::{MAX_COMPARISONS, MAX_FILTER_BYTES};

/// Reads a filter. Blank text is an error here: an empty parameter or rule never gets this far.
pub fn parse(text: &str) -> Result<Ast, FilterError> {
    if text.len() > MAX_FILTER_BYTES {
        let reason = format!("the filter is longer than {MAX_FILTER_BYTES} bytes");
        return Err(FilterError::invalid(MAX_FILTER_BYTES, reason));
    }
    // Groups may be nested as deep as the text is long, so there is a stack of our own instead of recursion.
    let mut stack = vec![Frame::new(text, 0, text.len())];
    let mut comparisons = 0_usize;
    while let Some(frame) = stack.last_mut() {
        match frame.scanner.next()? {
            Some(Token::Blank) => {}
            Some(Token::Group { from, to }) => {
                // Whatever was left dangling before the group is dropped, as PocketBase does.
                frame.state = State::Join;
                stack.push(Frame::new(text, from, to));
            }
            Some(token) => {
                let at = frame.scanner.at;
                comparisons += usize::from(frame.step(token, at)?);
            }
            None => {
                let items = frame.finish()?;
                stack.pop();
                match stack.last_mut() {
                    None if comparisons > MAX_COMPARISONS => {
                        let reason = format!("more than {MAX_COMPARISONS} comparisons");
                        return Err(FilterError::invalid(text.len(), reason));
                    }
                    None => return Ok(Ast { items }),
                    Some(outer) => outer.push_group(items),
                }
            }
        }
    }
    Err(FilterError::invalid(0, "the filter is empty"))
}

#[derive(Debug)]
enum State {
    Left,
    Operator(Term),
    Right(Term, Sign),
    Join,
}

/// One group being read.
#[derive(Debug)]
struct Frame<'a> {
    scanner: Scanner<'a>,
    state: State,
    /// The last join seen, which is also what an adjacent group is joined with.
    join: Join,
    items: Vec<Item>,
}

impl<'a> Frame<'a> {
    fn new(text: &'a str, from: usize, to: usize) -> Self {
        Self { scanner: Scanner::new(text, from, to), state: State::Left, join: Join::And, items: Vec::new() }
    }

    /// Takes one token that is not a group; `true` when it completed a comparison.
    fn step(&mut self, token: Token, at: usize) -> Result<bool, FilterError> {
        let state = std::mem::replace(&mut self.state, State::Join);
        let (next, done) = match (state, token) {
            (State::Left, Token::Operand(left)) => (State::Operator(left), false),
            (State::Operator(left), Token::Sign(sign)) => (State::Right(left, sign), false),
            (State::Right(left, sign), Token::Operand(right)) => {
                let node = Node::Compare(Compared { left, sign, right });
                self.items.push(Item { join: self.join, node });
                (State::Join, true)
            }
            (State::Join, Token::Join(join)) => {
                self.join = join;
                (State::Left, false)
            }
            (state, _) => return Err(FilterError::invalid(at, format!("expected {} before here", state.expects()))),
        };
        self.state = next;
        Ok(done)
    }

    fn push_group(&mut self, mut items: Vec<Item>) {
        let node = match (items.len(), items.pop()) {
            // A group of one item is that item: keeps the tree as deep as it has to be and no deeper.
            (1, Some(only)) => only.node,
            (_, last) => {
                items.extend(last);
                Node::Group(items)
            }
        };
        self.items.push(Item { join: self.join, node });
    }

    fn finish(&mut self) -> Result<Vec<Item>, FilterError> {
        let at = self.scanner.at;
        match self.state {
            State::Join => Ok(std::mem::take(&mut self.items)),
            State::Left if self.items.is_empty() => Err(FilterError::invalid(at, "nothing to compare")),
            _ => Err(FilterError::invalid(at, format!("expected {} here", self.state.expects()))),
        }
    }
}

impl State {
    const fn expects(&self) -> &'static str {
        match self {
            Self::Left => "a field or value",
            Self::Operator(_) => "an operator",
            Self::Right(..) => "a value to compare with",
            Self::Join => "`&&` or `||`",
        }
    }
}
