//! Filters as trees: made at random, written out, made smaller.

use std::fmt;

use super::category::Category::{
    self, BackRelationFilter, CollectionFilter, JsonFilter, ManyFilter, ModifierFilter, PlainFilter, RelationFilter,
    RequestFilter,
};
use super::dice::Dice;
use super::paths::{self, Kind, Path, Voice};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filter {
    Compare {
        left: Operand,
        operator: &'static str,
        right: Operand,
    },
    /// Items with a join before each but the first.
    Row(Vec<(bool, Filter)>),
    Group(Box<Filter>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Path(Path),
    /// Quoted when written.
    Text(String),
    /// Number, `null`, `true`, `false` or a macro: written as it is.
    Word(&'static str, Category),
    Call(&'static str, Vec<Operand>),
}

/// What filters are made of.
pub(crate) struct Maker<'a> {
    pub(crate) dice: &'a mut Dice,
    pub(crate) collection: &'a str,
    pub(crate) voice: Voice,
}

const EQUALITY: &[&str] = &["=", "!=", "?=", "?!="];
const ORDER: &[&str] = &[">", ">=", "<", "<=", "?>", "?>=", "?<", "?<="];
const LIKE: &[&str] = &["~", "!~", "?~", "?!~"];

const FORMATS: &[&str] = &[
    "%Y",
    "%Y-%m",
    "%m",
    "%d",
    "%e",
    "%H:%M",
    "%s",
    "%w",
    "%u",
    "%j",
    "%W",
    "%U",
    "%V",
    "%G",
    "%g",
    "%f",
    "%F",
    "%T",
    "%R",
    "%I",
    "%l%p",
    "%k%P",
    "%S",
    "%J",
    "%Q",
    "x%%y",
    "",
    "plain",
    "%",
    "100%",
    "%Y-%m-%d %H:%M:%f",
    "_%d_",
    "\u{e4}%m",
];
const TIMES: &[&str] = &[
    "2024-02-29",
    "2024-02-31",
    "2024-02-29 23:59:59.999",
    "2024-03-05T07:08:09Z",
    "2024-03-05 07:08+02:00",
    "12:34",
    "24:00",
    "2460000.5",
    "1709622489",
    " 10 ",
    "",
    "nonsense",
    "-0001-01-01",
    "2024-13-01",
    "2024-1-1",
    "0000-01-01",
    "9999-12-31 23:59:59.9999",
];
const NUMBERS: &[&str] =
    &["0", "2460310.5", "1709622489", "-5", "5373484.5", "null", "true", "false", "@yearStart", "@year"];
const MODIFIERS: &[&str] = &[
    "+1 day",
    "-2 months",
    "+1.5 years",
    "start of month",
    "start of year",
    "start of day",
    "weekday 0",
    "weekday 3",
    "unixepoch",
    "auto",
    "julianday",
    "subsec",
    "floor",
    "ceiling",
    "utc",
    "+0001-02-03",
    "-0000-01-00 12:30",
    "+12:30",
    "-00:00:01.5",
    "nonsense",
    "",
    "10 seconds",
    "+1 DAYS",
];

impl Maker<'_> {
    pub(crate) fn filter(&mut self) -> Filter {
        self.row(2)
    }

    fn row(&mut self, depth: usize) -> Filter {
        let length = *self.dice.of(&[1, 1, 1, 2, 2, 3]);
        let mut items: Vec<(bool, Filter)> = (0..length)
            .map(|_| {
                let and = self.dice.chance(60);
                if depth > 0 && self.dice.chance(20) {
                    (and, Filter::Group(Box::new(self.row(depth - 1))))
                } else {
                    (and, self.compare())
                }
            })
            .collect();
        if items.len() == 1 { items.remove(0).1 } else { Filter::Row(items) }
    }

    fn compare(&mut self) -> Filter {
        let (left, kind) = self.left();
        if matches!(&left, Operand::Path(path) if is_change(path)) {
            let right = Operand::Word(self.dice.pick(&["true", "false"]), PlainFilter);
            return Filter::Compare { left, operator: self.dice.pick(&["=", "!="]), right };
        }
        let operators = match self.dice.below(10) {
            0..5 => EQUALITY,
            5..8 => ORDER,
            _ => LIKE,
        };
        let operator = *self.dice.of(operators);
        let right = match self.dice.below(100) {
            0..12 => match self.path() {
                path if is_change(&path) => self.literal(kind),
                path => Operand::Path(path),
            },
            12..18 if kind == Kind::User && self.voice == Voice::Rule => {
                Operand::Path(Path { name: "user", kind, category: PlainFilter })
            }
            12..30 => {
                let other = *self.dice.of(paths::KINDS);
                self.literal(other)
            }
            _ => self.literal(kind),
        };
        if self.dice.chance(6) {
            return Filter::Compare { left: right, operator, right: left };
        }
        Filter::Compare { left, operator, right }
    }

    fn left(&mut self) -> (Operand, Kind) {
        if self.dice.chance(5) {
            return self.call();
        }
        let path = self.path();
        let kind = path.kind;
        (Operand::Path(path), kind)
    }

    fn path(&mut self) -> Path {
        let all = paths::of(self.collection, self.voice);
        // The category first, so that it does not depend on how many paths each has.
        let wanted = *self.dice.of(&[
            PlainFilter,
            PlainFilter,
            PlainFilter,
            PlainFilter,
            PlainFilter,
            JsonFilter,
            ModifierFilter,
            ModifierFilter,
            RelationFilter,
            RelationFilter,
            ManyFilter,
            ManyFilter,
            BackRelationFilter,
            BackRelationFilter,
            RequestFilter,
            CollectionFilter,
        ]);
        // `@request` and `@collection` refuse the whole filter of somebody who is no superuser: a few of them are enough.
        let often = matches!(self.voice, Voice::Rule | Voice::WriteRule) && self.dice.chance(35);
        let wanted = if often { RequestFilter } else { wanted };
        let wanted = if self.voice != Voice::Visitor || wanted < RequestFilter {
            wanted
        } else {
            *self.dice.of(&[PlainFilter, wanted])
        };
        let mut fitting: Vec<&Path> = all.iter().filter(|path| path.category == wanted).collect();
        if fitting.is_empty() {
            fitting = all.iter().collect();
        }
        (*self.dice.of(&fitting)).clone()
    }

    fn call(&mut self) -> (Operand, Kind) {
        if self.collection == "ships" && self.dice.chance(30) {
            let point = |name| Operand::Path(Path { name, kind: Kind::Number, category: JsonFilter });
            let to = if self.dice.chance(50) { [word("23.5"), word("42")] } else { [word("-179"), word("-89.5")] };
            let [lon, lat] = to;
            let mut points = vec![point("berth.lon"), point("berth.lat"), lon, lat];
            if self.dice.chance(30) {
                let at = self.dice.below(4);
                points[at] = self.argument();
            }
            return (Operand::Call("geoDistance", points), Kind::Distance);
        }
        let mut arguments = vec![Operand::Text(self.dice.pick(FORMATS).to_owned())];
        if self.dice.chance(4) {
            // Of now: what differs from one second to the next is left out.
            arguments[0] = Operand::Text("%Y".to_owned());
            return (Operand::Call("strftime", arguments), Kind::Date);
        }
        arguments.push(match self.dice.below(10) {
            0..5 if self.collection == "ships" => {
                Operand::Path(Path { name: "launched", kind: Kind::Date, category: PlainFilter })
            }
            0..2 => Operand::Text(self.dice.pick(TIMES).to_owned()),
            2..4 => word(self.dice.pick(NUMBERS)),
            _ => self.argument(),
        });
        for _ in 0..self.dice.below(6).saturating_sub(3) {
            arguments.push(Operand::Text(self.dice.pick(MODIFIERS).to_owned()));
        }
        (Operand::Call("strftime", arguments), Kind::Date)
    }

    /// A path as an argument. A condition is none.
    fn argument(&mut self) -> Operand {
        match self.path() {
            path if is_change(&path) => word("null"),
            path => Operand::Path(path),
        }
    }

    fn literal(&mut self, kind: Kind) -> Operand {
        if self.dice.chance(12) {
            let words = ["null", "true", "false", "NULL", "True"];
            return Operand::Word(self.dice.pick(&words), PlainFilter);
        }
        if self.dice.chance(2) {
            // Times of day differ between the two calls; what lies in the past or future of all rows does not.
            let macros = ["@now", "@yesterday", "@tomorrow", "@yearStart", "@todayEnd", "@year", "@month"];
            return Operand::Word(self.dice.pick(&macros), Category::MacroFilter);
        }
        if kind.is_number() && self.dice.chance(85) {
            return Operand::Word(self.dice.pick(kind.numbers()), PlainFilter);
        }
        let text = *self.dice.of(kind.texts());
        // Such a filter is refused, which is right for a caller's; a rule of that kind would refuse the whole app.
        let refused = text.ends_with('\\') && matches!(self.voice, Voice::Rule | Voice::WriteRule);
        Operand::Text(if refused { String::new() } else { text.to_owned() })
    }
}

impl Filter {
    /// The hardest thing in it.
    pub(crate) fn category(&self) -> Category {
        match self {
            Self::Compare { left, right, .. } => left.category().max(right.category()),
            Self::Row(items) => items.iter().map(|(_, item)| item.category()).max().unwrap_or(PlainFilter),
            Self::Group(inner) => inner.category(),
        }
    }

    /// Everything one step simpler, most promising first.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        match self {
            Self::Compare { left, operator, right } => {
                let (left, right) = (left, right);
                let plain = operator.strip_prefix('?').and_then(known);
                let others = plain.into_iter().map(|operator| (left.clone(), operator, right.clone()));
                let lefts = left.smaller().into_iter().map(|left| (left, *operator, right.clone()));
                let rights = right.smaller().into_iter().map(|right| (left.clone(), *operator, right));
                others
                    .chain(lefts)
                    .chain(rights)
                    .map(|(left, operator, right)| Self::Compare { left, operator, right })
                    .collect()
            }
            Self::Group(inner) => {
                let within = inner.smaller().into_iter().map(|inner| Self::Group(Box::new(inner)));
                std::iter::once((**inner).clone()).chain(within).collect()
            }
            Self::Row(items) => {
                let mut found: Vec<Self> = items.iter().map(|(_, item)| item.clone()).collect();
                for index in 0..items.len() {
                    if items.len() > 2 {
                        let mut fewer = items.clone();
                        fewer.remove(index);
                        found.push(Self::Row(fewer));
                    }
                    for smaller in items[index].1.smaller() {
                        let mut changed = items.clone();
                        changed[index].1 = smaller;
                        found.push(Self::Row(changed));
                    }
                }
                found
            }
        }
    }
}

fn word(text: &'static str) -> Operand {
    Operand::Word(text, PlainFilter)
}

/// `:changed` is a condition, and ours takes it as one only: compared with anything but `true` or `false` it is refused when
/// the app is deployed, with the place and the reason. PocketBase takes it and means something nobody would guess.
fn is_change(path: &Path) -> bool {
    path.name.ends_with(":changed")
}

fn known(operator: &str) -> Option<&'static str> {
    [EQUALITY, ORDER, LIKE].into_iter().flatten().copied().find(|known| *known == operator)
}

impl Operand {
    fn category(&self) -> Category {
        match self {
            Self::Path(path) => path.category,
            Self::Text(_) => PlainFilter,
            Self::Word(_, category) => *category,
            Self::Call(_, arguments) => {
                arguments.iter().map(Self::category).fold(Category::FunctionFilter, Category::max)
            }
        }
    }

    fn smaller(&self) -> Vec<Self> {
        match self {
            Self::Text(text) if text.is_empty() => Vec::new(),
            Self::Text(text) if text.chars().count() == 1 => vec![Self::Text(String::new())],
            Self::Text(text) => {
                let half = text.chars().count() / 2;
                let (head, tail) = (text.chars().take(half).collect(), text.chars().skip(half).collect());
                vec![Self::Text(String::new()), Self::Text(tail), Self::Text(head)]
            }
            Self::Word(..) => Vec::new(),
            Self::Path(path) => {
                let plain = path.name.split(':').next().unwrap_or_default();
                let simpler = [plain, "title", "tons", "name"].into_iter().filter(|name| name.len() < path.name.len());
                simpler
                    .map(|name| Self::Path(Path { name: intern(name), kind: path.kind, category: path.category }))
                    .collect()
            }
            Self::Call(name, arguments) => {
                let without = arguments.len() > 2 && *name == "strftime";
                let shorter = without.then(|| Self::Call(name, arguments[..2].to_vec()));
                shorter.into_iter().chain(arguments.iter().cloned()).collect()
            }
        }
    }
}

/// Names live as long as the tests run; there are few.
fn intern(name: &str) -> &'static str {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().expect("names");
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare { left, operator, right } => write!(f, "{left} {operator} {right}"),
            Self::Group(inner) => write!(f, "({inner})"),
            Self::Row(items) => {
                for (index, (and, item)) in items.iter().enumerate() {
                    let join = match (index, and) {
                        (0, _) => "",
                        (_, true) => " && ",
                        (_, false) => " || ",
                    };
                    write!(f, "{join}{item}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path.name),
            // Only the enclosing quote loses its backslash (`reference` notes on PocketBase, A.2).
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "\\'")),
            Self::Word(word, _) => f.write_str(word),
            Self::Call(name, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
                write!(f, "{name}({})", arguments.join(", "))
            }
        }
    }
}

/// One to three small damages: a sign dropped, doubled, swapped or put in.
pub(crate) fn broken(text: &str, dice: &mut Dice) -> String {
    const STRAY: &[&str] = &[
        "'", "\"", "(", ")", "&&", "||", "&", "=", "!", "?", "~", "<", ">", ".", ":", ",", "@", "#", "-", "_", "%",
        "\\", "/", "//", " ", "\n", "\t", "\r", "\u{a0}", "\u{e4}", "0", ".5", "1e3", "null", "()", "(tons=1)",
        "//x\n", "AND", "@now", "title", "`", ";", "--", "*", "{", "[", "\u{0}",
    ];
    let mut signs: Vec<char> = text.chars().collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(signs.len().max(1));
        match dice.below(4) {
            0 if !signs.is_empty() => drop(signs.remove(at)),
            1 if !signs.is_empty() => signs.insert(at, signs[at]),
            2 if signs.len() > 1 => signs.swap(at.saturating_sub(1), at),
            _ => {
                let stray: Vec<char> = dice.pick(STRAY).chars().collect();
                signs.splice(at..at, stray);
            }
        }
    }
    signs.into_iter().collect()
}

#[test]
fn a_filter_is_made_smaller_until_only_the_cause_is_left() {
    let mut dice = Dice::new(7, 0);
    for _ in 0..200 {
        let mut filter = Maker { dice: &mut dice, collection: "ships", voice: Voice::Superuser }.filter();
        // Say every filter with a `~` differs.
        let differs = |filter: &Filter| filter.to_string().contains('~');
        if !differs(&filter) {
            continue;
        }
        let mut steps = 0;
        while let Some(smaller) = filter.smaller().into_iter().find(|smaller| differs(smaller)) {
            filter = smaller;
            steps += 1;
            assert!(steps < 500, "this never ends: {filter}");
        }
        assert!(matches!(filter, Filter::Compare { .. }), "more than the cause is left: {filter}");
    }
}

#[test]
fn the_same_seed_makes_the_same_filters() {
    let made = |seed| {
        let mut dice = Dice::new(seed, 0);
        let mut filter = || Maker { dice: &mut dice, collection: "ships", voice: Voice::Rule }.filter().to_string();
        (0..50).map(|_| filter()).collect::<Vec<_>>()
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
}
