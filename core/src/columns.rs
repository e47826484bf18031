//! Columns of numbers, all in one piece of memory.
//!
//! Large pages of memory are ten times as quick to get as small ones, and the columns of a chunk
//! fill a few of them.

use memmap2::MmapMut;

/// The numbers of a record, as the bits of their types.
pub type Row = [u64; MOST];

/// The most columns that there may be.
pub const MOST: usize = 24;

/// How many bytes a number takes.
pub const SIZE: usize = size_of::<u64>();

/// So many records are kept by row before they go to their columns, all at once.
const ROWS: usize = 64;

/// Columns of equal length.
#[derive(Debug)]
pub struct Columns {
    memory: Option<MmapMut>,
    width: usize,
    /// How many rows there is room for.
    room: usize,
    len: usize,
    /// The last rows, which are not in the columns yet.
    rows: Vec<Row>,
}

impl Columns {
    /// Returns columns without rows.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self {
            memory: None,
            width,
            room: 0,
            len: 0,
            rows: Vec::new(),
        }
    }

    /// Adds a row; `at` of `total` bytes are read, which shows how many rows there may be in all.
    #[inline(always)]
    pub fn push(&mut self, row: &Row, at: usize, total: usize) {
        self.rows.push(*row);
        if self.rows.len() == ROWS {
            self.flush(at, total);
        }
    }

    /// Moves the last rows to the columns.
    #[inline(never)]
    pub fn flush(&mut self, at: usize, total: usize) {
        let len = self.len + self.rows.len();
        if len > self.room {
            let expected = len as u64 * total as u64 / at.max(1) as u64;
            let expected = usize::try_from(expected).unwrap_or(len);
            self.grow((expected + expected / 16).max(2 * self.room).max(len));
        }
        let (first, room) = (self.len, self.room);
        let memory = self.memory.as_deref_mut().unwrap_or_default();
        for (index, column) in memory.chunks_exact_mut(room.max(1) * SIZE).enumerate() {
            let numbers = column[first * SIZE..].chunks_exact_mut(SIZE);
            for (number, row) in numbers.zip(&self.rows) {
                number.copy_from_slice(&row[index].to_ne_bytes());
            }
        }
        self.len = len;
        self.rows.clear();
    }

    fn grow(&mut self, room: usize) {
        let mut memory = MmapMut::map_anon(self.width * room * SIZE).expect("memory for columns");
        // Without large pages it is only slower.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        for index in 0..self.width {
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
        let begins = (0..self.width).map(|index| index * self.room * SIZE);
        (self.memory, begins.collect())
    }
}
