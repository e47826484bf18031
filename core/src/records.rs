//! Reads lines that are a record and nothing else, or one inside a frame.
//!
//! A template is what `grammar.py` says of a line format: literals and numbers, in order. A line
//! is read if it fits a template exactly and if each number is surely what any other reader makes
//! of it. All other lines are handed back, so this reader never decides that a line is damaged.

use std::{fmt, iter, mem};

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memmem::Finder;

use crate::columns::{Columns, Decimal, MOST, Row};
use crate::frames::{Frames, Layouts, SLOTS};

/// What stands at a place of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of at most 18 digits.
    Whole,
    /// A whole number of at most 32 bits.
    Whole32,
    /// A decimal number of at most 15 digits, which is a quotient of two exact floats.
    Decimal,
}

/// A number of a template, and the literal that follows it.
#[derive(Clone, Debug)]
struct Step {
    kind: Kind,
    literal: Literal,
}

/// A literal, whose bytes are compared eight at once.
#[derive(Clone, Debug)]
struct Literal {
    first: Word,
    more: Vec<Word>,
    text: Vec<u8>,
}

/// Eight bytes of a text, of which those in the mask count.
#[derive(Clone, Copy, Debug)]
struct Word {
    bytes: u64,
    mask: u64,
}

/// The order of literals and numbers in one line format.
#[derive(Clone, Debug)]
pub struct Template {
    head: Literal,
    steps: Vec<Step>,
}

/// Why a template cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct BadTemplate(pub &'static str);

impl fmt::Display for BadTemplate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

/// What a chunk contains.
#[derive(Debug, Default)]
pub struct Chunk {
    /// How many lines there are.
    pub lines: u32,
    /// The records, by template: their lines, and the numbers of the template.
    pub records: Vec<Columns>,
    /// Those inside a frame, by template: the same, the number of its key, and its times.
    pub framed: Vec<Columns>,
    /// Their frames.
    pub frames: Frames,
    /// The numbers of the other lines that may matter.
    pub rest_no: Vec<u32>,
    /// These lines, one after another, and after a zero where each ends.
    pub rest: Vec<u8>,
    pub rest_ends: Vec<u64>,
    /// The last line of JSON without escapes.
    plain: Vec<u8>,
}

/// Which lines may matter that are no records.
#[derive(Clone, Debug)]
pub struct Filter {
    words: Option<Words>,
    most: usize,
}

/// Searches for words: with vector instructions, where the processor has some.
#[derive(Clone, Debug)]
enum Words {
    Packed(Vec<Finder<'static>>, Vec<Searcher>),
    Plain(AhoCorasick),
}

const WORD: usize = 8;

/// Words that are searched with vector instructions at once.
const AT_ONCE: usize = 64;

/// Columns of a record in a frame in addition to its own: the number of the key, times, and the
/// units of their last digits in seconds.
pub const OF_FRAMES: usize = 1 + 2 * SLOTS;

/// So many bytes are looked at before it is seen whether one of them is odd.
const PART: usize = 1 << 12;

impl Word {
    fn new(part: &[u8]) -> Self {
        let (mut bytes, mut mask) = ([0; WORD], [0; WORD]);
        bytes[..part.len()].copy_from_slice(part);
        mask[..part.len()].fill(0xff);
        Self {
            bytes: u64::from_le_bytes(bytes),
            mask: u64::from_le_bytes(mask),
        }
    }

    #[inline(always)]
    fn fits(self, data: &[u8], at: usize) -> bool {
        word(data, at).is_some_and(|word| word & self.mask == self.bytes)
    }
}

impl Literal {
    fn new(text: &[u8]) -> Self {
        let mut words = text.chunks(WORD).map(Word::new);
        let first = words.next().unwrap_or(Word { bytes: 0, mask: 0 });
        Self {
            first,
            more: words.collect(),
            text: text.to_vec(),
        }
    }

    /// Returns where the literal ends if it begins at `at`.
    #[inline(always)]
    fn skip(&self, data: &[u8], at: usize) -> Option<usize> {
        let end = at + self.text.len();
        let mut from = at;
        let fits = self.first.fits(data, from)
            && self.more.iter().all(|word| {
                from += WORD;
                word.fits(data, from)
            });
        // At the end of the data there are no eight bytes left to compare.
        (fits || data.len() < end + WORD && data.get(at..end) == Some(&self.text)).then_some(end)
    }
}

/// Returns eight bytes as a number, the first one in the lowest digits.
#[inline(always)]
fn word(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// Returns the number at `at`, as the bits of its type, and where it ends.
#[inline(always)]
fn number(data: &[u8], at: usize, kind: Kind) -> Option<(u64, usize)> {
    let Some(found) = word(data, at) else {
        return long_number(data, at, kind);
    };
    // Digits become 0 to 9; every other byte sets the highest bit of its place, at least up to
    // the first one of them and up to the first one after a point.
    let digits = found ^ 0x3030_3030_3030_3030;
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    if others == 0 {
        return long_number(data, at, kind);
    }
    let whole = others.trailing_zeros() & !7;
    if kind != Kind::Decimal {
        let end = at + whole as usize / WORD;
        return (whole > 0).then(|| (value(digits, whole), end));
    }
    let point = (found >> whole) & 0xff == u64::from(b'.');
    let later = others & (others - 1);
    if point && later == 0 {
        return long_number(data, at, kind);
    }
    // Where the number ends, and how many of its bits are digits without and with decimals. No
    // branches, because it cannot be predicted which numbers have a point.
    let end = if point {
        later.trailing_zeros() & !7
    } else {
        whole
    };
    let below = (1_u64 << whole) - 1;
    let joined = if point {
        digits & below | (digits >> 8) & !below
    } else {
        digits
    };
    let bits = end - if point { 8 } else { 0 };
    let decimals = (bits - whole) as usize / WORD;
    if whole == 0 || point && decimals == 0 {
        return None;
    }
    let decimal = Decimal::new(value(joined, bits), decimals);
    Some((decimal.bits(), at + end as usize / WORD))
}

/// Returns the value of digits from 0 to 9, one per byte, the highest one first; `bits` is eight
/// times their number, and 8 to 64.
#[inline(always)]
fn value(digits: u64, bits: u32) -> u64 {
    let digits = digits << (64 - bits);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// Returns the same as `number`, for numbers that are long or at the end of the data.
#[inline(never)]
fn long_number(data: &[u8], at: usize, kind: Kind) -> Option<(u64, usize)> {
    let (mut value, mut end) = (0_u64, at);
    // Wraps around for very long numbers, which are not read by their value.
    let digit = |end: usize| Some(data.get(end)?.wrapping_sub(b'0')).filter(|digit| *digit < 10);
    while let Some(digit) = digit(end) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    let digits = end - at;
    if digits == 0 {
        return None;
    }
    match kind {
        Kind::Whole => (digits <= 18).then_some((value, end)),
        Kind::Whole32 => (digits <= 10 && value <= u64::from(u32::MAX)).then_some((value, end)),
        Kind::Decimal => {
            let mut decimals = 0;
            if data.get(end) == Some(&b'.') {
                let point = end;
                end += 1;
                while let Some(digit) = digit(end) {
                    value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
                    end += 1;
                }
                decimals = end - point - 1;
                if decimals == 0 {
                    return None;
                }
            }
            if digits + decimals > 15 {
                return None;
            }
            Some((Decimal::new(value, decimals).bits(), end))
        }
    }
}

impl Template {
    /// Makes a template of the literal before the first number, and of each number with the
    /// literal after it.
    ///
    /// # Errors
    ///
    /// Too many numbers, or a literal that is missing, begins with a digit or has a line end.
    pub fn new(head: &[u8], steps: &[(Kind, Vec<u8>)]) -> Result<Self, BadTemplate> {
        if steps.len() + OF_FRAMES >= MOST {
            return Err(BadTemplate("a template has too many numbers"));
        }
        let mut literals = steps.iter().map(|(_, text)| text.as_slice()).chain([head]);
        if literals.any(|text| text.is_empty() || text.contains(&b'\n')) {
            return Err(BadTemplate(
                "a literal of a template is empty or has a line end",
            ));
        }
        if steps
            .iter()
            .any(|(_, text)| text[0] == b'.' || text[0].is_ascii_digit())
        {
            return Err(BadTemplate("a literal of a template continues a number"));
        }
        Ok(Self {
            head: Literal::new(head),
            steps: steps
                .iter()
                .map(|(kind, text)| Step {
                    kind: *kind,
                    literal: Literal::new(text),
                })
                .collect(),
        })
    }

    /// Returns of each column whether its numbers are decimal; the first has the line numbers, and
    /// those of frames follow if there are some.
    fn are_decimal(&self, framed: bool) -> Vec<bool> {
        let kinds = self.steps.iter().map(|step| step.kind == Kind::Decimal);
        let others = (0..OF_FRAMES).map(|index| index > SLOTS);
        let others = others.take(if framed { OF_FRAMES } else { 0 });
        iter::once(false).chain(kinds).chain(others).collect()
    }

    /// Reads the record that begins at `at` to all values but the first; returns where it ends.
    #[inline(always)]
    fn values(&self, data: &[u8], at: usize, values: &mut Row) -> Option<usize> {
        let mut at = self.head.skip(data, at)?;
        for (step, value) in self.steps.iter().zip(&mut values[1..]) {
            let (bits, end) = number(data, at, step.kind)?;
            *value = bits;
            at = step.literal.skip(data, end)?;
        }
        Some(at)
    }

    /// Reads the line that begins at `at` to all values but the first; returns where the next one
    /// begins.
    #[inline(always)]
    fn read(&self, data: &[u8], at: usize, values: &mut Row) -> Option<usize> {
        let at = self.values(data, at, values)?;
        match data.get(at) {
            Some(b'\n') => Some(at + 1),
            None => Some(at),
            Some(_) => None,
        }
    }
}

impl Filter {
    /// Keeps lines that contain one of the words, or are longer than `most`; without words, it
    /// keeps all lines but empty ones.
    ///
    /// # Errors
    ///
    /// The words are too many to search for.
    pub fn new(words: &[Vec<u8>], most: usize) -> Result<Self, BadTemplate> {
        let words = (!words.is_empty()).then(|| Words::new(words)).transpose()?;
        Ok(Self { words, most })
    }

    fn keeps(&self, line: &[u8]) -> bool {
        let contains = |words: &Words| words.are_in(line) || line.len() > self.most;
        !line.is_empty() && self.words.as_ref().is_none_or(contains)
    }
}

impl Words {
    fn new(words: &[Vec<u8>]) -> Result<Self, BadTemplate> {
        let (short, long): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.len() < 3);
        // More words at once take the slow way.
        let at_once = long
            .len()
            .div_ceil(long.len().div_ceil(AT_ONCE).max(1))
            .max(1);
        let packed = long.chunks(at_once).map(|part| {
            let mut packed = Config::new().match_kind(MatchKind::LeftmostFirst).builder();
            packed.extend(part).build()
        });
        if let Some(searchers) = packed.collect() {
            let each = short
                .iter()
                .map(|word| Finder::new(word.as_slice()).into_owned());
            return Ok(Self::Packed(each.collect(), searchers));
        }
        let plain = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(words);
        plain
            .map(Self::Plain)
            .map_err(|_| BadTemplate("too many words"))
    }

    fn are_in(&self, line: &[u8]) -> bool {
        match self {
            Self::Packed(short, long) => {
                short.iter().any(|word| word.find(line).is_some())
                    || long.iter().any(|words| words.find(line).is_some())
            }
            Self::Plain(words) => words.is_match(line),
        }
    }
}

impl Chunk {
    /// Reads whole lines, which are numbered from 1; without layouts, no records inside a frame.
    #[must_use]
    pub fn read(
        templates: &[Template],
        filter: &Filter,
        layouts: Option<&Layouts>,
        data: &[u8],
    ) -> Self {
        let columns = |framed: bool| {
            let of = move |each: &Template| Columns::new(each.are_decimal(framed));
            templates.iter().map(of).collect()
        };
        let mut chunk = Self {
            records: columns(false),
            framed: columns(true),
            rest_ends: vec![0],
            ..Self::default()
        };
        chunk.add(templates, filter, layouts, data);
        chunk
    }

    fn add(
        &mut self,
        templates: &[Template],
        filter: &Filter,
        layouts: Option<&Layouts>,
        data: &[u8],
    ) {
        let (mut at, mut usual) = (0, 0);
        let mut begins = [false; 1 << 8];
        for template in templates {
            begins[usize::from(template.head.text[0])] = true;
        }
        let mut row = [0; MOST];
        while at < data.len() {
            self.lines += 1;
            // A log rarely has records of two formats, so the last one is tried first.
            let may_be_record = begins[usize::from(data[at])];
            let mut found = may_be_record
                .then(|| templates[usual].read(data, at, self.records[usual].next_row()))
                .flatten();
            if found.is_none() && may_be_record {
                let others = (0..templates.len()).filter(|other| *other != usual);
                let read = |other: usize| Some((other, templates[other].read(data, at, &mut row)?));
                if let Some((other, end)) = others.into_iter().find_map(read) {
                    *self.records[other].next_row() = row;
                    (usual, found) = (other, Some(end));
                }
            }
            if let Some(end) = found {
                let columns = &mut self.records[usual];
                columns.next_row()[0] = u64::from(self.lines);
                columns.add(end, data.len());
                at = end;
            } else {
                let end = line_end(data, at);
                let line = &data[at..end];
                let framed = layouts.filter(|_| !may_be_record);
                let framed = framed
                    .and_then(|layouts| self.framed(templates, layouts, usual, data, (at, end)));
                if let Some(template) = framed {
                    usual = template;
                } else if filter.keeps(line) {
                    self.rest_no.push(self.lines);
                    // As Polars splits lines.
                    let text = line.strip_suffix(b"\r").unwrap_or(line);
                    self.rest.extend_from_slice(text);
                    self.rest_ends.push(self.rest.len() as u64);
                }
                at = end + 1;
            }
        }
        for columns in self.records.iter_mut().chain(&mut self.framed) {
            columns.finish(data.len());
        }
    }

    /// Reads the record inside the line from `at` to `end`; returns its template, the usual one if
    /// that fits.
    fn framed(
        &mut self,
        templates: &[Template],
        layouts: &Layouts,
        usual: usize,
        data: &[u8],
        (at, end): (usize, usize),
    ) -> Option<usize> {
        let line = &data[at..end];
        if !layouts.has_head(line) {
            return None;
        }
        let mut plain = mem::take(&mut self.plain);
        // The bytes behind the line let its numbers be read eight bytes at once.
        let (text, length) = if layouts.unescape(line, &mut plain) {
            let length = plain.len();
            plain.extend_from_slice(&[b'\n'; WORD]);
            (plain.as_slice(), length)
        } else {
            (&data[at..], line.len())
        };
        let found = self.record_in(templates, layouts, usual, (text, length));
        self.plain = plain;
        let number = found?;
        self.framed[number].add(end, data.len());
        Some(number)
    }

    /// Reads the record inside the first `length` bytes, a line, to the next row of its template.
    fn record_in(
        &mut self,
        templates: &[Template],
        layouts: &Layouts,
        usual: usize,
        (text, length): (&[u8], usize),
    ) -> Option<usize> {
        let line = &text[..length];
        for begin in layouts.places(line) {
            let others = (0..templates.len()).filter(|other| *other != usual);
            let read = |number: usize| {
                let row = self.framed[number].next_row();
                let end = templates[number].values(text, begin, row)?;
                Layouts::may_end(line.get(end..)?).then_some((number, end))
            };
            let Some((number, end)) = iter::once(usual).chain(others).find_map(read) else {
                continue;
            };
            let (key, slots) = self.frames.of(layouts, line, begin, end)?;
            self.frames.count(key, self.lines);
            let row = self.framed[number].next_row();
            row[0] = u64::from(self.lines);
            let own = templates[number].steps.len() + 1;
            row[own] = key as u64;
            for (index, (micros, digits)) in slots.into_iter().enumerate() {
                row[own + 1 + index] = micros.cast_unsigned();
                row[own + 1 + SLOTS + index] = Decimal::new(1, digits).bits();
            }
            return Some(number);
        }
        None
    }
}

/// Returns where the line that begins at `at` ends.
fn line_end(data: &[u8], at: usize) -> usize {
    let rest = data.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(data.len().max(at), |found| at + found)
}

/// Returns whether there are only line ends, blanks and characters of ASCII that can be seen.
#[must_use]
pub fn is_plain(data: &[u8]) -> bool {
    let is_odd = |byte: &u8| byte.wrapping_sub(b' ') > b'~' - b' ' && *byte != b'\n';
    // Without a way out of the loop it takes vector instructions.
    let has_odd = |part: &[u8]| part.iter().fold(false, |found, byte| found | is_odd(byte));
    !data.chunks(PART).any(has_odd)
}

/// Returns lines by their numbers, which begin with 1 and rise, each with a line end.
///
/// `total` is the number of all lines. Those of the second half are searched from the end.
#[must_use]
pub fn lines(data: &[u8], total: u32, numbers: &[u32]) -> Vec<u8> {
    let middle = numbers.partition_point(|number| *number <= total / 2);
    let mut found = Vec::new();
    let (mut at, mut line_no) = (0, 1);
    for &number in &numbers[..middle] {
        while line_no < number && at < data.len() {
            at = line_end(data, at) + 1;
            line_no += 1;
        }
        found.push(at);
    }
    let mut last = Vec::new();
    let (mut at, mut line_no) = (data.len(), total + 1);
    for &number in numbers[middle..].iter().rev() {
        while line_no > number && at > 0 {
            at = memchr::memrchr(b'\n', &data[..at - 1]).map_or(0, |end| end + 1);
            line_no -= 1;
        }
        last.push(at);
    }
    let mut text = Vec::new();
    for at in found.into_iter().chain(last.into_iter().rev()) {
        text.extend_from_slice(data.get(at..line_end(data, at)).unwrap_or_default());
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Template {
        let steps = [
            (Kind::Whole32, b" @".to_vec()),
            (Kind::Decimal, b"s, in a literal of two words ".to_vec()),
            (Kind::Whole, b" P".to_vec()),
        ];
        Template::new(b"gc ", &steps).unwrap()
    }

    fn read(templates: &[Template], data: &[u8]) -> Chunk {
        Chunk::read(templates, &Filter::new(&[], 0).unwrap(), None, data)
    }

    fn one(line: &str) -> Option<(u64, f64, u64)> {
        let chunk = read(&[template()], line.as_bytes());
        assert_eq!(chunk.lines, 1);
        if chunk.records[0].is_empty() {
            assert_eq!(chunk.rest, line.trim_end_matches('\n').as_bytes());
            return None;
        }
        assert!(chunk.rest.is_empty());
        let number = |index| numbers(&chunk, 0, index)[0];
        assert_eq!(number(0), 1);
        Some((number(1), f64::from_bits(number(2)), number(3)))
    }

    /// The bits of the numbers of a column; the first column has the lines.
    fn numbers(chunk: &Chunk, template: usize, index: usize) -> Vec<u64> {
        let column = chunk.records[template].column(index).chunks_exact(8);
        column
            .map(|number| u64::from_ne_bytes(number.try_into().unwrap()))
            .collect()
    }

    fn line(seconds: &str, procs: &str) -> String {
        format!("gc 7 @{seconds}s, in a literal of two words {procs} P\n")
    }

    #[test]
    fn a_record_is_read_with_and_without_a_line_end() {
        assert_eq!(one(&line("0.012", "8")), Some((7, 0.012, 8)));
        assert_eq!(one(line("12", "8").trim_end()), Some((7, 12.0, 8)));
    }

    #[test]
    fn decimals_are_the_nearest_floats() {
        for text in [
            "0.1",
            "0.007",
            "123456789.123456",
            "999999999999999",
            "0.00000000000001",
        ] {
            assert_eq!(
                one(&line(text, "1")).unwrap().1,
                text.parse::<f64>().unwrap()
            );
        }
    }

    #[test]
    fn what_another_reader_may_read_differently_is_handed_back() {
        for text in [
            "",
            ".",
            ".5",
            "5.",
            "1.2.3",
            "-1",
            "+1",
            "1e3",
            "1234567890123456",
            "1 ",
        ] {
            assert_eq!(one(&line(text, "1")), None, "{text}");
        }
        for text in ["", "1.5", "-1", "1000000000000000000", "1 2"] {
            assert_eq!(one(&line("1", text)), None, "{text}");
        }
        assert_eq!(
            one("gc 4294967296 @1s, in a literal of two words 1 P"),
            None
        );
    }

    #[test]
    fn every_beginning_of_a_record_is_handed_back() {
        let whole = line("0.012", "8");
        for end in 1..whole.len() - 1 {
            assert_eq!(one(&whole[..end]), None);
        }
        assert_eq!(one(&whole.replace('\n', " (forced)\n")), None);
    }

    #[test]
    fn lines_are_counted_and_empty_ones_left_out() {
        let data = format!("\nfirst\n\n{}{}last", line("1", "2"), line("3", "4"));
        let chunk = read(&[template()], data.as_bytes());
        assert_eq!(chunk.lines, 6);
        assert_eq!(chunk.rest, b"firstlast");
        assert_eq!(chunk.rest_no, [2, 6]);
        assert_eq!(chunk.rest_ends, [0, 5, 9]);
        assert_eq!(numbers(&chunk, 0, 0), [4, 5]);
    }

    #[test]
    fn each_record_goes_to_its_own_template() {
        let other = Template::new(b"gc ", &[(Kind::Whole, b" P".to_vec())]).unwrap();
        let data = format!("gc 1 P\n{}gc 2 P\n", line("1", "2"));
        let chunk = read(&[template(), other], data.as_bytes());
        assert_eq!(numbers(&chunk, 0, 0), [2]);
        assert_eq!(numbers(&chunk, 1, 0), [1, 3]);
        assert_eq!(numbers(&chunk, 1, 1), [1, 2]);
    }

    #[test]
    fn records_inside_a_frame_have_its_key_and_times() {
        let layouts = Layouts::new(vec![b"H:M:S".to_vec()], vec![], b"gc ");
        let record = line("1", "2");
        let data = format!("a {record}no gc 1\nb 08:00:01 {record}a {record}");
        let filter = Filter::new(&[], 0).unwrap();
        let chunk = Chunk::read(&[template()], &filter, Some(&layouts), data.as_bytes());
        assert!(chunk.records[0].is_empty());
        assert_eq!(chunk.rest_no, [2]);
        let column = |index: usize| {
            let numbers = chunk.framed[0].column(index).chunks_exact(8);
            numbers
                .map(|bytes| i64::from_ne_bytes(bytes.try_into().unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            [column(0), column(1), column(4)],
            [[1, 3, 4], [7; 3], [0, 1, 0]]
        );
        assert_eq!(chunk.frames.keys[0].some, [1, 4]);
    }

    #[test]
    fn lines_that_cannot_matter_are_left_out() {
        let data = b"one\n\nno word\nlonger than most\ntwo words";
        let filter = Filter::new(&[b"one".to_vec(), b"two".to_vec()], 10).unwrap();
        let chunk = Chunk::read(&[template()], &filter, None, data);
        assert_eq!(chunk.lines, 5);
        assert_eq!(chunk.rest_no, [1, 4, 5]);
        assert_eq!(chunk.rest, b"onelonger than mosttwo words");
    }

    #[test]
    fn many_records_are_in_order() {
        let records: Vec<_> = (1..1000)
            .map(|procs| line("1", &procs.to_string()))
            .collect();
        let data = format!("{}{}", "x\n".repeat(5000), records.concat());
        let chunk = read(&[template()], data.as_bytes());
        assert_eq!(numbers(&chunk, 0, 0), (5001..6000).collect::<Vec<_>>());
        assert_eq!(numbers(&chunk, 0, 1), [7].repeat(999));
        assert_eq!(numbers(&chunk, 0, 3), (1..1000).collect::<Vec<_>>());
    }

    #[test]
    fn few_records_before_much_text_take_little_memory() {
        let data = format!("{}{}", line("1", "8").repeat(100), "x\n".repeat(100_000));
        let chunk = read(&[template()], data.as_bytes());
        let (memory, begins) = chunk.records.into_iter().next().unwrap().into_memory();
        assert_eq!(begins, [0, 800, 1600, 2400]);
        assert_eq!(memory.unwrap().len(), 3200);
    }

    #[test]
    fn short_and_long_words_are_found() {
        let words: Vec<_> = ["gc", " @", "oom", "killed process"].map(Vec::from).into();
        let filter = Filter::new(&words, 100).unwrap();
        for text in ["gc", "a @", "the oom", "was killed process 1", "mgc1"] {
            assert!(filter.keeps(text.as_bytes()), "{text}");
        }
        for text in [
            "g",
            "a@b",
            "oo m",
            "killed",
            "",
            "nothing of that in a longer line",
        ] {
            assert!(!filter.keeps(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn only_visible_characters_are_plain() {
        let text = format!("{}\n", "from blank to ~".repeat(1000));
        assert!(is_plain(text.as_bytes()));
        assert!(is_plain(b""));
        for odd in [0, 1, b'\t', b'\r', 0x1b, 0x1f, 0x7f, 0x80, 0xff] {
            for at in [0, text.len() / 2, text.len() - 1] {
                let mut data = text.clone().into_bytes();
                data[at] = odd;
                assert!(!is_plain(&data), "{odd} at {at}");
            }
        }
    }

    #[test]
    fn lines_are_found_by_number() {
        let data = b"one\n\nthree\nfour\nfive\n";
        assert_eq!(lines(data, 5, &[1, 2, 4]), b"one\n\nfour\n");
        assert_eq!(lines(data, 5, &[2, 3, 5]), b"\nthree\nfive\n");
        assert_eq!(lines(data, 5, &[]), b"");
        assert_eq!(lines(b"\n\n", 2, &[1, 2]), b"\n\n");
        assert_eq!(lines(b"one", 1, &[1]), b"one\n");
    }

    #[test]
    fn templates_that_cannot_work_are_refused() {
        let of =
            |head: &[u8], after: &[u8]| Template::new(head, &[(Kind::Whole, after.to_vec())]).err();
        assert_eq!(of(b"gc ", b" P"), None);
        assert!(of(b"", b" P").is_some());
        assert!(of(b"gc ", b"0 P").is_some());
        assert!(of(b"gc ", b" P\n").is_some());
        let many = vec![(Kind::Whole, b" ".to_vec()); MOST];
        assert!(Template::new(b"gc ", &many).is_err());
    }
}
