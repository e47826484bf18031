//! Finds a record inside a line, and reduces what surrounds it, the frame, to a key.
//!
//! A log collector writes the same text around every record, but for times and counters. A frame
//! without these is a key, of which a log has a few; what a key means is decided once, by Python.
//! Times become numbers, in slots.

use std::collections::HashMap;

use memchr::memmem::Finder;

/// How many times and clocks of a frame are kept.
pub const SLOTS: usize = 3;

/// What a slot has that was not used.
pub const EMPTY: i64 = i64::MIN;

/// The most keys of a chunk. Where each line has its own, there is nothing to gain.
const KEYS: usize = 512;

/// Longer frames are left to Python.
const LONGEST: usize = 1 << 13;

/// Where in a frame a record was, a time, and a text that changes.
const RECORD: u8 = 1;
const TIME: u8 = 2;
const SKIPPED: u8 = 3;

/// What may follow a record on its line: the rest of a JSON string, or of a quoted one.
const CLOSING: [u8; 2] = *b"\"\\";

/// How Go's encoder of JSON writes `>`.
const ESCAPED: &[u8] = b"\\u003e";

const DAY_US: i64 = 86_400_000_000;

/// Digits of a second that count.
const MICROS: usize = 6;

/// What a text is that changes from line to line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Up to the next quote mark.
    Quoted,
    /// Digits that mean nothing.
    Digits,
    /// Digits of a clock, in microseconds.
    Clock,
}

/// The most shapes that the next line is compared with.
const SHAPES: usize = 8;

/// What changes in a frame.
#[derive(Clone, Debug)]
pub struct Layouts {
    /// Each a sequence of `Y m d e b L H M S` and literals; see `time`.
    times: Vec<Vec<u8>>,
    /// What changes after a literal; one that begins with `^` is at the begin of the line.
    changes: Vec<(Vec<u8>, Change)>,
    /// The first two bytes behind the quote mark of these literals.
    names: Vec<[u8; 2]>,
    head: Finder<'static>,
    escaped: Finder<'static>,
}

/// A kind of frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The frame, without what changes.
    pub text: Vec<u8>,
    /// How many lines have it.
    pub lines: u32,
    /// Some of these lines: the first, the second, the fourth and so on, and the last.
    pub some: Vec<u32>,
}

/// The frames of a chunk.
#[derive(Debug, Default)]
pub struct Frames {
    known: HashMap<Vec<u8>, usize>,
    pub keys: Vec<Key>,
    text: Vec<u8>,
    /// Of the last lines, the last one first.
    shapes: Vec<Shape>,
}

/// How something is read that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Quoted,
    Digits,
    Clock,
    /// Its form.
    Epoch(u8),
    /// The number of its layout.
    Layout(usize),
}

/// What changes in a frame: where it ends, and its value.
struct Changing {
    end: usize,
    value: Option<Time>,
}

/// Microseconds, and how many digits of a second are shown.
pub type Time = (i64, usize);

/// What a frame is: its key, and its times.
pub type Frame = (usize, [Time; SLOTS]);

/// A frame as its line has it: the next line mostly has the same text between what changes.
#[derive(Debug)]
struct Shape {
    key: usize,
    before: Side,
    behind: Side,
}

/// What is on one side of a record: texts, each followed by something that changes, and the rest.
#[derive(Debug, Default)]
struct Side {
    changes: Vec<(Vec<u8>, Way, Second)>,
    rest: Vec<u8>,
}

/// A time that was read, without its fraction: many lines are of the same second.
#[derive(Debug, Default)]
struct Second {
    text: Vec<u8>,
    micros: i64,
}

impl Layouts {
    /// Takes the layouts of times, what changes after which literal, and how records begin.
    #[must_use]
    pub fn new(times: Vec<Vec<u8>>, changes: Vec<(Vec<u8>, Change)>, head: &[u8]) -> Self {
        let mut names: Vec<_> = changes
            .iter()
            .filter_map(|(literal, _)| literal.strip_prefix(b"\"")?.first_chunk().copied())
            .collect();
        names.dedup();
        Self {
            times,
            changes,
            names,
            head: Finder::new(head).into_owned(),
            escaped: Finder::new(ESCAPED),
        }
    }

    /// Returns whether a record may begin in a line.
    #[must_use]
    pub fn has_head(&self, line: &[u8]) -> bool {
        self.head.find(line).is_some()
    }

    /// Writes a line of JSON with `>` where Docker and other programs in Go escape it; returns
    /// whether there is any.
    pub fn unescape(&self, line: &[u8], text: &mut Vec<u8>) -> bool {
        let first = (line.first() == Some(&b'{')).then(|| self.escaped.find(line));
        let Some(mut at) = first.flatten() else {
            return false;
        };
        let mut from = 0;
        text.clear();
        loop {
            text.extend_from_slice(&line[from..at]);
            text.push(b'>');
            from = at + ESCAPED.len();
            match self.escaped.find(&line[from..]) {
                Some(next) => at = from + next,
                None => break,
            }
        }
        text.extend_from_slice(&line[from..]);
        true
    }

    /// Returns where records may begin inside a line, which is not at its begin.
    pub fn places<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let places = self.head.find_iter(line);
        places.filter(|at| *at > 0 && !line[at - 1].is_ascii_alphanumeric())
    }

    /// Returns whether a record may end before this rest of its line.
    #[must_use]
    pub fn may_end(rest: &[u8]) -> bool {
        rest.first().is_none_or(|byte| CLOSING.contains(byte))
    }

    /// Returns what changes at `at`: where, and how it is read.
    fn change(&self, part: &[u8], at: usize, begin: bool) -> Option<(usize, Way, Changing)> {
        let byte = part[at];
        let named = part
            .get(at + 1..at + 3)
            .is_some_and(|name| self.names.iter().any(|known| known == name));
        if byte == b'"' && named || begin && at == 0 {
            for (literal, change) in &self.changes {
                let (literal, here) = match literal.strip_prefix(b"^") {
                    Some(rest) => (rest, begin && at == 0),
                    None => (literal.as_slice(), true),
                };
                if here && part[at..].starts_with(literal) {
                    let way = match change {
                        Change::Quoted => Way::Quoted,
                        Change::Digits => Way::Digits,
                        Change::Clock => Way::Clock,
                    };
                    let from = at + literal.len();
                    return Some((from, way, self.changing(way, part, from, None)?));
                }
            }
        }
        let before = at.checked_sub(1).map(|before| part[before]);
        if before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'.') {
            return None;
        }
        if byte.is_ascii_digit() {
            if let Some((end, value, form)) = epoch(part, at) {
                let value = Some((value, MICROS));
                return Some((at, Way::Epoch(form), Changing { end, value }));
            }
        } else if !byte.is_ascii_uppercase() {
            return None;
        }
        let ways = (0..self.times.len()).map(Way::Layout);
        let found = |way| Some((at, way, self.changing(way, part, at, None)?));
        ways.into_iter().find_map(found)
    }

    /// Returns what changes at `at` and is read in this way.
    #[inline]
    fn changing(
        &self,
        way: Way,
        part: &[u8],
        at: usize,
        known: Option<&mut Second>,
    ) -> Option<Changing> {
        let rest = &part[at..];
        let digits = || rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (end, value) = match way {
            Way::Quoted => (at + memchr::memchr(b'"', rest)?, None),
            Way::Digits => (at + Some(digits()).filter(|count| *count > 0)?, None),
            Way::Clock => {
                let count = digits();
                let is_clock = (1..=17).contains(&count);
                let value = is_clock.then(|| number(&rest[..count]))?;
                (at + count, Some((value, 0)))
            }
            Way::Epoch(known) => {
                let (end, value, _) = epoch(part, at).filter(|found| found.2 == known)?;
                (end, Some((value, MICROS)))
            }
            Way::Layout(layout) => {
                let (end, digits, value) = time(&self.times[layout], part, at, known)?;
                (end, Some((value, digits.min(MICROS))))
            }
        };
        Some(Changing { end, value })
    }

    /// Returns the times of a frame of this shape.
    ///
    /// The same text around what changes means the same frame, because of two layouts only one
    /// fits at a place, and none begins in a text and ends in what follows it.
    fn fits(&self, shape: &mut Shape, before: &[u8], behind: &[u8]) -> Option<[Time; SLOTS]> {
        let (mut slots, mut used) = ([(EMPTY, 0); SLOTS], 0);
        let sides = [(&mut shape.before, before), (&mut shape.behind, behind)];
        for (side, part) in sides {
            let mut from = 0;
            for (text, way, second) in &mut side.changes {
                if !is_at(part, from, text) {
                    return None;
                }
                from += text.len();
                let change = self.changing(*way, part, from, Some(second))?;
                if let Some(value) = change.value {
                    slots[used] = value;
                    used += 1;
                }
                from = change.end;
            }
            if part.len() - from != side.rest.len() || !is_at(part, from, &side.rest) {
                return None;
            }
        }
        Some(slots)
    }
}

impl Frames {
    /// Returns the frame of a line around a record, which is between `at` and `end`.
    ///
    /// There is none if it has more times than slots, or if there are too many keys.
    pub fn of(&mut self, layouts: &Layouts, line: &[u8], at: usize, end: usize) -> Option<Frame> {
        let (before, behind) = (&line[..at], &line[end..]);
        for number in 0..self.shapes.len() {
            if let Some(slots) = layouts.fits(&mut self.shapes[number], before, behind) {
                self.shapes[..=number].rotate_right(1);
                return Some((self.shapes[0].key, slots));
            }
        }
        if before.len() + behind.len() > LONGEST {
            return None;
        }
        let (mut slots, mut used) = ([(EMPTY, 0); SLOTS], 0);
        let mut sides = [Side::default(), Side::default()];
        self.text.clear();
        for (side, (part, begin)) in sides.iter_mut().zip([(before, true), (behind, false)]) {
            let (mut from, mut text) = (0, 0);
            while from < part.len() {
                let Some((at, way, change)) = layouts.change(part, from, begin) else {
                    from = next_place(part, from);
                    continue;
                };
                if let Some(value) = change.value {
                    *slots.get_mut(used)? = value;
                    used += 1;
                }
                let text_before = part[text..at].to_vec();
                self.text.extend_from_slice(&text_before);
                self.text.extend_from_slice(&[TIME, way.mark()]);
                side.changes.push((text_before, way, Second::default()));
                (from, text) = (change.end, change.end);
            }
            side.rest = part[text..].to_vec();
            self.text.extend_from_slice(&side.rest);
            if begin {
                self.text.push(RECORD);
            }
        }
        let key = self.key()?;
        let [before, behind] = sides;
        self.shapes.truncate(SHAPES - 1);
        let shape = Shape {
            key,
            before,
            behind,
        };
        self.shapes.insert(0, shape);
        Some((key, slots))
    }

    fn key(&mut self) -> Option<usize> {
        if let Some(number) = self.known.get(&self.text) {
            return Some(*number);
        }
        let number = self.keys.len();
        if number == KEYS {
            return None;
        }
        self.known.insert(self.text.clone(), number);
        self.keys.push(Key {
            text: self.text.clone(),
            lines: 0,
            some: vec![],
        });
        Some(number)
    }

    /// Counts a line of a key.
    pub fn count(&mut self, key: usize, line_no: u32) {
        let key = &mut self.keys[key];
        key.lines += 1;
        if key.lines > 2 && !(key.lines - 1).is_power_of_two() {
            key.some.pop();
        }
        key.some.push(line_no);
    }
}

impl Way {
    /// Returns what stands for it in a key.
    fn mark(self) -> u8 {
        match self {
            Self::Quoted | Self::Digits | Self::Clock => SKIPPED,
            Self::Epoch(form) => form,
            Self::Layout(number) => b'A' + u8::try_from(number).unwrap_or_default(),
        }
    }
}

/// Returns whether a text stands at `at`; most are too short to be worth a call of `memcmp`.
#[inline(always)]
fn is_at(part: &[u8], at: usize, text: &[u8]) -> bool {
    let Some(found) = part.get(at..at + text.len()) else {
        return false;
    };
    match (found.last_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(found_end), Some(text_end)) => {
            let pairs = found.chunks_exact(8).zip(text.chunks_exact(8));
            found_end == text_end && pairs.into_iter().all(|(one, other)| one == other)
        }
        _ => found.iter().zip(text).all(|(one, other)| one == other),
    }
}

/// Returns where something that changes may begin behind `at`: at a quote mark, or where letters
/// and digits begin with a digit or a capital letter.
fn next_place(part: &[u8], at: usize) -> usize {
    let mut before = part[at];
    for (place, byte) in part.iter().enumerate().skip(at + 1) {
        let inside = before.is_ascii_alphanumeric() || before == b'.';
        let begins = (byte.is_ascii_digit() || byte.is_ascii_uppercase()) && !inside;
        if begins || *byte == b'"' {
            return place;
        }
        before = *byte;
    }
    part.len()
}

/// Returns the number that digits are; there are at most 18.
fn number(digits: &[u8]) -> i64 {
    digits
        .iter()
        .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}

/// Returns `count` digits at `at` as a number.
fn digits(part: &[u8], at: usize, count: usize) -> Option<i64> {
    let found = part.get(at..at + count)?;
    found.iter().all(u8::is_ascii_digit).then(|| number(found))
}

/// Returns where a time since 1970 at `at` ends, its microseconds, and its form (its digits, and one
/// if there is a fraction): those of the years 2001 to 2033 in seconds, with a fraction or without,
/// in milliseconds, microseconds or nanoseconds.
fn epoch(part: &[u8], at: usize) -> Option<(usize, i64, u8)> {
    let count = part[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if part.get(at) != Some(&b'1') {
        return None;
    }
    let value = || number(&part[at..at + count]);
    let end = at + count;
    let (end, value, form) = match count {
        10 => {
            let (behind, _, micros) = fraction(part, end, b".");
            let form = if behind == end { 10 } else { 11 };
            (behind, value() * 1_000_000 + micros, form)
        }
        13 => (end, value() * 1_000, 13),
        16 => (end, value(), 16),
        19 => (end, digits(part, at, 16)?, 19),
        _ => return None,
    };
    // A point or a letter behind it shows that it is something else.
    let next = part.get(end).copied().unwrap_or(b' ');
    let ends = !next.is_ascii_alphanumeric() && next != b'.' && next != b'-';
    ends.then_some((end, value, form))
}

/// Returns where a fraction of a second at `at` ends, how many digits it has, and microseconds.
fn fraction(part: &[u8], at: usize, points: &[u8]) -> (usize, usize, i64) {
    let point = part.get(at).is_some_and(|byte| points.contains(byte));
    let rest = part.get(at + 1..).unwrap_or_default();
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !point || count == 0 || count > 9 {
        return (at, 0, 0);
    }
    let shown = count.min(MICROS);
    let scale = 10_i64.pow(u32::try_from(MICROS - shown).unwrap_or_default());
    (at + 1 + count, count, number(&rest[..shown]) * scale)
}

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// The year of a time without one, as in `timestamps.py`.
const YEARLESS: i64 = 2000;

/// Returns where a time at `at` ends, the digits of its fraction, and its microseconds since 1970
/// by its own clock.
///
/// In a layout, `Y` is a year of four digits, `m d H M S` are two digits, `e` is a day of one or
/// two, `b` an English month, and `L` a letter of glog's levels; all else is itself.
fn time(
    layout: &[u8],
    part: &[u8],
    at: usize,
    mut known: Option<&mut Second>,
) -> Option<(usize, usize, i64)> {
    let same = known
        .as_ref()
        .filter(|known| !known.text.is_empty() && is_at(part, at, &known.text))
        .map(|known| (at + known.text.len(), known.micros));
    let (to, second) = if let Some(same) = same {
        same
    } else {
        let (to, micros) = second_of(layout, part, at)?;
        if let Some(known) = known.as_mut() {
            known.text.clear();
            known.text.extend_from_slice(&part[at..to]);
            known.micros = micros;
        }
        (to, micros)
    };
    let (end, count, micros) = fraction(part, to, b".,");
    if part.get(end).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    Some((end, count, second + micros))
}

/// Returns where a time at `at` ends that has no fraction, and its microseconds since 1970.
fn second_of(layout: &[u8], part: &[u8], at: usize) -> Option<(usize, i64)> {
    let (mut to, mut year, mut month, mut day) = (at, YEARLESS, 0, 0);
    let (mut hour, mut minute, mut second) = (0, 0, 0);
    for step in layout {
        let two = |to: usize| digits(part, to, 2);
        match step {
            b'Y' => year = digits(part, to, 4)?,
            b'm' => month = two(to)?,
            b'd' => day = two(to)?,
            b'H' => hour = two(to)?,
            b'M' => minute = two(to)?,
            b'S' => second = two(to)?,
            b'b' => {
                let name = part.get(to..to + 3)?;
                let at = MONTHS.iter().position(|month| *month == name)?;
                month = i64::try_from(at).ok()? + 1;
            }
            b'e' if part.get(to) == Some(&b' ') => day = digits(part, to + 1, 1)?,
            b'e' => day = two(to)?,
            b'L' if b"IWEF".contains(part.get(to)?) => {}
            literal if part.get(to) == Some(literal) && *literal != b'L' => {}
            _ => return None,
        }
        to += match step {
            b'Y' => 4,
            b'b' => 3,
            b'm' | b'd' | b'e' | b'H' | b'M' | b'S' => 2,
            _ => 1,
        };
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let most = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => 0,
    };
    let possible = (1..=most).contains(&day) && (2000..2100).contains(&year);
    if !possible || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    Some((to, days(year, month, day) * DAY_US + seconds * 1_000_000))
}

/// Returns the days from 1970 to a date of the years 2000 to 2099.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the day of the leap year is the last one.
    let (year, month) = if month < 3 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let before = year - 1600;
    before * 365 + before / 4 - before / 100 + before / 400 + (153 * month + 2) / 5 + day
        - 1
        - 135_080
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> Layouts {
        let times = ["Y-m-dTH:M:S", "Y/m/d H:M:S", "b e H:M:S", "Lmd H:M:S"];
        let changes = [
            ("\"__CURSOR\":\"", Change::Quoted),
            ("\"__MONOTONIC_TIMESTAMP\":\"", Change::Clock),
            ("^[", Change::Digits),
        ];
        Layouts::new(
            times.map(Vec::from).into(),
            changes.map(|(text, change)| (text.into(), change)).into(),
            b"gc",
        )
    }

    /// The frames of lines with `gc` for a record, as key and times.
    fn frames(lines: &[&str]) -> Vec<(usize, Vec<i64>)> {
        let (mut frames, layouts) = (Frames::default(), layouts());
        let mut found = Vec::new();
        for line in lines {
            let at = layouts.places(line.as_bytes()).next().unwrap();
            let (key, slots) = frames.of(&layouts, line.as_bytes(), at, at + 2).unwrap();
            let used = slots.into_iter().map(|(micros, _)| micros);
            found.push((key, used.filter(|micros| *micros != EMPTY).collect()));
        }
        found
    }

    #[test]
    fn times_are_microseconds_and_no_part_of_the_key() {
        let second = 1_000_000;
        for (one, other, begin, apart) in [
            (
                "2026-11-20T08:00:00Z gc",
                "2026-11-20T08:00:01Z gc",
                1_795_161_600,
                second,
            ),
            (
                "2026/11/20 08:00:00 gc",
                "2026/11/21 08:00:00 gc",
                1_795_161_600,
                DAY_US,
            ),
            (
                "Nov 20 08:00:00 host gc",
                "Nov  9 08:00:00 host gc",
                974_707_200,
                -11 * DAY_US,
            ),
            (
                "I1120 08:00:00.000001 7 a.go:1] gc",
                "I1120 08:00:00.000003 7 a.go:1] gc",
                974_707_200,
                2,
            ),
            (
                "{\"ts\":1795161600.5,\"msg\":\"gc\"}",
                "{\"ts\":1795161601.25,\"msg\":\"gc\"}",
                1_795_161_600,
                750_000,
            ),
        ] {
            let found = frames(&[one, other]);
            assert_eq!(found[0].0, found[1].0, "{one}");
            assert_eq!(found[0].1[0] / second, begin, "{one}");
            assert_eq!(found[1].1[0] - found[0].1[0], apart, "{one}");
        }
    }

    #[test]
    fn what_differs_else_is_another_key() {
        for (one, other) in [
            ("pod-1 gc", "pod-2 gc"),
            ("2026-11-20T08:00:00Z gc", "2026-11-20T08:00:00+01:00 gc"),
            ("2026-11-20T08:00:00Z gc", "2026-13-20T08:00:00Z gc"),
            ("api[1234]: gc", "api[1235]: gc"),
            ("\"gc\"", "\"gc\\n\""),
        ] {
            let found = frames(&[one, other]);
            assert_ne!(found[0].0, found[1].0, "{one} {other}");
        }
    }

    #[test]
    fn counters_and_clocks_are_no_part_of_the_key() {
        let found = frames(&[
            "{\"__CURSOR\":\"s=a\",\"__MONOTONIC_TIMESTAMP\":\"12\",\"MESSAGE\":\"gc\"}",
            "{\"__CURSOR\":\"s=b1\",\"__MONOTONIC_TIMESTAMP\":\"345\",\"MESSAGE\":\"gc\"}",
        ]);
        assert_eq!(found, [(0, vec![12]), (0, vec![345])]);
        let found = frames(&["[1] a: gc", "[23] a: gc", "a [1]: gc"]);
        assert_eq!(
            found.iter().map(|frame| frame.0).collect::<Vec<_>>(),
            [0, 0, 1]
        );
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(days(2000, 1, 1), 10_957);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(days(2026, 11, 20), 20_777);
        assert_eq!(days(2099, 12, 31), 47_481);
    }

    #[test]
    fn some_lines_of_a_key_are_remembered() {
        let mut frames = Frames::default();
        frames.text = b"a".to_vec();
        let key = frames.key().unwrap();
        for line_no in 1..=100 {
            frames.count(key, line_no);
        }
        assert_eq!(frames.keys[0].lines, 100);
        assert_eq!(frames.keys[0].some, [1, 2, 4, 8, 16, 32, 64, 100]);
    }

    #[test]
    fn escaped_signs_are_those_that_they_stand_for() {
        let unescaped = |line: &str| {
            let mut text = Vec::new();
            let any = layouts().unescape(line.as_bytes(), &mut text);
            any.then_some(text)
        };
        let line = "{\"log\":\"4-\\u003e5-\\u003e3 MB\"}";
        assert_eq!(unescaped(line).unwrap(), b"{\"log\":\"4->5->3 MB\"}");
        assert_eq!(unescaped("{\"log\":\"4->5\"}"), None);
        assert_eq!(unescaped("4-\\u003e5"), None);
    }

    #[test]
    fn a_record_begins_behind_no_letter() {
        let places = |line: &str| layouts().places(line.as_bytes()).collect::<Vec<_>>();
        assert_eq!(places("gc a gc agc (gc"), [5, 13]);
        assert!(Layouts::may_end(b"") && Layouts::may_end(b"\\n\"}"));
        assert!(!Layouts::may_end(b" (forced)"));
    }
}
