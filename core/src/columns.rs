//! Columns of numbers, all in one piece of memory.
//!
//! Each page of memory has to be asked for when it is used first. The columns of a chunk fill a few
//! large pages, or thousands of small ones.

use memmap2::MmapMut;

/// The numbers of a record: whole ones, and decimal ones (`Decimal`).
pub type Row = [u64; MOST];

/// The most columns that there may be.
pub const MOST: usize = 32;

/// How many bytes a number takes.
pub const SIZE: usize = size_of::<u64>();

/// So many records are kept by row before they go to their columns, all at once.
const ROWS: usize = 64;

/// From this bit on, a decimal number in a row says how many digits are behind its point.
const BEHIND: u32 = 56;

const POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// A decimal number of at most 15 digits.
#[derive(Clone, Copy, Debug)]
pub struct Decimal(u64);

impl Decimal {
    /// The number of the digits without their point, and how many of them are behind it.
    #[inline(always)]
    #[must_use]
    pub fn new(digits: u64, behind: usize) -> Self {
        Self(digits | (behind as u64) << BEHIND)
    }

    /// Returns the number as it is in a row.
    #[inline(always)]
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    #[allow(clippy::cast_precision_loss)]
    fn value(self) -> f64 {
        let digits = self.0 & ((1 << BEHIND) - 1);
        // Both are exact, so that the quotient is the nearest float.
        digits.cast_signed() as f64 / POWERS[(self.0 >> BEHIND) as usize & 0xf]
    }
}

/// Columns of equal length.
#[derive(Debug)]
pub struct Columns {
    memory: Option<MmapMut>,
    are_decimal: Vec<bool>,
    /// How many rows there is room for.
    room: usize,
    len: usize,
    /// The last rows, which are not in the columns yet; none before the first is asked for.
    rows: Vec<Row>,
    waiting: usize,
}

impl Columns {
    /// Returns columns without rows.
    #[must_use]
    pub fn new(are_decimal: Vec<bool>) -> Self {
        Self {
            memory: None,
            are_decimal,
            room: 0,
            len: 0,
            rows: Vec::new(),
            waiting: 0,
        }
    }

    /// Returns where the next row is written, before it is added.
    #[inline(always)]
    pub fn next_row(&mut self) -> &mut Row {
        if self.rows.is_empty() {
            self.rows = vec![[0; MOST]; ROWS];
        }
        &mut self.rows[self.waiting]
    }

    /// Adds the next row; `at` of `total` bytes are read, which shows how many rows there may be in
    /// all.
    #[inline(always)]
    pub fn add(&mut self, at: usize, total: usize) {
        self.waiting += 1;
        if self.waiting == ROWS {
            self.flush(at, total);
        }
    }

    /// Moves the last rows to the columns.
    #[inline(never)]
    fn flush(&mut self, at: usize, total: usize) {
        let len = self.len + self.waiting;
        if len > self.room {
            let expected = len as u64 * total as u64 / at.max(1) as u64;
            let expected = usize::try_from(expected).unwrap_or(len);
            self.grow((expected + expected / 16).max(2 * self.room).max(len));
        }
        let (first, room) = (self.len, self.room);
        let memory = self.memory.as_deref_mut().unwrap_or_default();
        let columns = memory.chunks_exact_mut(room.max(1) * SIZE);
        for ((index, is_decimal), column) in self.are_decimal.iter().enumerate().zip(columns) {
            let numbers = column[first * SIZE..]
                .chunks_exact_mut(SIZE)
                .zip(&self.rows[..self.waiting]);
            if *is_decimal {
                for (number, row) in numbers {
                    number.copy_from_slice(&Decimal(row[index]).value().to_ne_bytes());
                }
            } else {
                for (number, row) in numbers {
                    number.copy_from_slice(&row[index].to_ne_bytes());
                }
            }
        }
        self.len = len;
        self.waiting = 0;
    }

    /// Moves the last rows to the columns, and gives memory back if most of it is empty.
    pub fn finish(&mut self, total: usize) {
        self.flush(total, total);
        if self.room > 2 * self.len {
            self.grow(self.len);
        }
    }

    fn grow(&mut self, room: usize) {
        let mut memory =
            MmapMut::map_anon(self.are_decimal.len() * room * SIZE).expect("memory for columns");
        // Without large pages it is only slower.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        for index in 0..self.are_decimal.len() {
            let column = self.column(index);
            memory[index * room * SIZE..][..column.len()].copy_from_slice(column);
        }
        (self.memory, self.room) = (Some(memory), room);
    }

    /// Returns how many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of a column.
    #[must_use]
    pub fn column(&self, index: usize) -> &[u8] {
        let memory = self.memory.as_deref().unwrap_or_default();
        let begin = index * self.room * SIZE;
        memory
            .get(begin..begin + self.len * SIZE)
            .unwrap_or_default()
    }

    /// Returns the memory, and where in it each column begins.
    #[must_use]
    pub fn into_memory(self) -> (Option<MmapMut>, Vec<usize>) {
        let begins = (0..self.are_decimal.len()).map(|index| index * self.room * SIZE);
        (self.memory, begins.collect())
    }
}
