//! The compiled core of gctrace-analyzer: from the bytes of a chunk to columns of numbers.
//!
//! It does what `skeletons.py` does for nearly every record, with the same result, and leaves
//! every other line to Python. `records` has the work, `python` what Python sees of it.

#![forbid(unsafe_code)]
#![warn(clippy::pedantic)]

#[cfg(feature = "python")]
mod python;
pub mod records;
