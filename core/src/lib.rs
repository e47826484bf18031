//! The compiled core of gctrace-analyzer: what Python is too slow for.
//!
//! `records` goes from the bytes of a chunk to columns of numbers. It does what the regular expressions
//! of `grammar.py` do for nearly every record, with the same result, and leaves every other line to
//! Python; `columns` is where the numbers go, and `frames` finds records inside a line. `replay`
//! walks a program's path under other settings, as `replay.py` does, and `mmu` finds the windows
//! that leave least to the program, as `mmu.py` does, both with the same result. `chains` finds the
//! processes of a stream that several programs share, as `chains.py` does. `settings` finds the settings
//! behind heap goals, as `search.py` does. `python` is what Python
//! sees of all.

#![forbid(unsafe_code)]
#![warn(clippy::pedantic)]

pub mod chains;
pub mod columns;
pub mod frames;
pub mod mmu;
#[cfg(feature = "python")]
mod python;
pub mod records;
pub mod replay;
pub mod settings;
