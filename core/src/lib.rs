//! The compiled core of gctrace-analyzer: what Python is too slow for.
//!
//! `records` goes from the bytes of a chunk to columns of numbers. It does what `skeletons.py` does
//! for nearly every record, with the same result, and leaves every other line to Python. `replay`
//! walks a program's path under other settings, as `replay.py` does, with the same result. `python`
//! is what Python sees of both.

#![forbid(unsafe_code)]
#![warn(clippy::pedantic)]

#[cfg(feature = "python")]
mod python;
pub mod records;
pub mod replay;
