//! Finds the process of each cycle of a stream that several programs share.
//!
//! It does what `_best_fits` of `ingest/chains.py` does, in the same order, so every result is the
//! same. There is the explanation of each step.

use std::cmp::Ordering;

/// Columns of the facts of a cycle: those of `Cycle`, in the same order.
const COLUMNS: usize = 11;

/// What `chains.py` limits the search by.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tolerance for times.
    pub slack_s: f64,
    /// Only this many of the last processes can get more cycles.
    pub open: usize,
    /// Factor between live heaps; with another GOMAXPROCS after missing lines, it is another process.
    pub other_live: f64,
    /// How many cycles of other processes may come between two of one process.
    pub lookahead: usize,
}

/// The facts of a cycle by which its process is found; NaN for what is unknown.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    num: f64,
    start: f64,
    end: f64,
    heap: f64,
    live: f64,
    goal: f64,
    procs: f64,
    stacks: f64,
    share: f64,
    cpu: f64,
    kind: f64,
}

/// What is known of a process so far: last cycle, GC CPU time in seconds, and the last live heap
/// with the goal after it, where that is larger.
struct Chain {
    process: i64,
    last: Cycle,
    cpu: f64,
    live: f64,
    goal: f64,
}

/// How badly a cycle fits a process, and whether GOMAXPROCS differs.
type Mismatch = (f64, bool);

/// Returns the process of each cycle, whose facts are given column by column; None if the columns
/// are not of one length.
#[must_use]
pub fn processes(columns: &[f64], limits: Limits) -> Option<Vec<i64>> {
    let count = columns.len() / COLUMNS;
    if count * COLUMNS != columns.len() {
        return None;
    }
    let cycle = |row: usize| cycle_of(columns, count, row);
    let mut chains: Vec<Chain> = Vec::new(); // the most recent last
    let mut found = Vec::with_capacity(count);
    let mut so_far = 0;
    for row in 0..count {
        let this = cycle(row);
        let at = next_of(&chains, &this, limits).or_else(|| {
            let end = count.min(row + 1 + limits.lookahead);
            let mut fitting = candidates(&chains, &this, limits).into_iter();
            fitting.find(|at| {
                let is_next = |later| chains[*at].missing(&cycle(later), limits) == Some(0.0);
                !(row + 1..end).any(is_next)
            })
        });
        if let Some(at) = at {
            chains[at].add(this);
            chains[at..].rotate_left(1);
        } else {
            chains.push(Chain::new(so_far, this));
            so_far += 1;
        }
        found.push(chains.last()?.process);
    }
    Some(found)
}

fn cycle_of(columns: &[f64], count: usize, row: usize) -> Cycle {
    let value = |column: usize| columns[column * count + row];
    Cycle {
        num: value(0),
        start: value(1),
        end: value(2),
        heap: value(3),
        live: value(4),
        goal: value(5),
        procs: value(6),
        stacks: value(7),
        share: value(8),
        cpu: value(9),
        kind: value(10),
    }
}

/// Where the process is whose next cycle this is; of several, the one that it fits best.
fn next_of(chains: &[Chain], cycle: &Cycle, limits: Limits) -> Option<usize> {
    let is_next = |at: &usize| chains[*at].missing(cycle, limits) == Some(0.0);
    let mut fitting = open(chains, limits).filter(is_next);
    let mut best = fitting.next()?;
    let Some(second) = fitting.next() else {
        return Some(best);
    };
    let mut least = chains[best].mismatch(cycle);
    // Of those that fit alike, the one that was seen last.
    for at in std::iter::once(second).chain(fitting) {
        let mismatch = chains[at].mismatch(cycle);
        if compared(mismatch, least).is_lt() {
            (best, least) = (at, mismatch);
        }
    }
    Some(best)
}

/// Where the processes are that this cycle may belong to, most likely first.
fn candidates(chains: &[Chain], cycle: &Cycle, limits: Limits) -> Vec<usize> {
    let cost = |at: usize| Some((chains[at].missing(cycle, limits)?, at));
    let with_mismatch = |(missing, at): (f64, usize)| (missing, chains[at].mismatch(cycle), at);
    let mut costs: Vec<_> = open(chains, limits)
        .filter_map(cost)
        .map(with_mismatch)
        .collect();
    costs.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| compared(a.1, b.1)));
    costs.into_iter().map(|(_, _, at)| at).collect()
}

/// The places of the processes that can get more cycles, the most recent first.
fn open(chains: &[Chain], limits: Limits) -> impl Iterator<Item = usize> + use<> {
    (chains.len().saturating_sub(limits.open)..chains.len()).rev()
}

fn compared(one: Mismatch, other: Mismatch) -> Ordering {
    one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
}

impl Chain {
    fn new(process: i64, last: Cycle) -> Self {
        let capacity = or_zero(last.end) * or_zero(last.procs);
        let all = capacity * (or_zero(last.share) + 0.5) / 100.0;
        let is_first = is_equal(last.num, 1.0);
        Self {
            process,
            last,
            cpu: if is_first { last.cpu } else { all },
            live: f64::NAN,
            goal: f64::NAN,
        }
    }

    /// How many cycles are missing between the last cycle and this one; None if it cannot be of
    /// this process.
    fn missing(&self, cycle: &Cycle, limits: Limits) -> Option<f64> {
        let last = &self.last;
        let apart = cycle.num - last.num;
        // What is unknown is neither smaller nor larger.
        if apart < 1.0
            || !is_equal(cycle.kind, last.kind)
            || cycle.start < last.end - limits.slack_s
        {
            return None;
        }
        if apart > 1.0 {
            let (one, other) = (or_zero(last.live), or_zero(cycle.live));
            let is_other = !is_equal(or_zero(cycle.procs), or_zero(last.procs))
                && one.max(other) > limits.other_live * (one.min(other) + 1.0);
            return (!is_other).then_some(apart - 1.0);
        }
        // The heap cannot shrink between cycles.
        if cycle.heap < last.live - 1.0 {
            return None;
        }
        Some(0.0)
    }

    fn mismatch(&self, cycle: &Cycle) -> Mismatch {
        let growth = goal_growth_pct(self.last.live, cycle.goal);
        let usual = goal_growth_pct(self.live, self.goal);
        let mut odd = match (growth, usual) {
            (Some(growth), Some(usual)) => ((growth + 1.0) / (usual + 1.0)).ln().abs(),
            _ => 0.0,
        };
        odd += (or_zero(cycle.stacks) - or_zero(self.last.stacks)).abs() / 4.0;
        let capacity = or_zero(cycle.end) * or_zero(cycle.procs);
        if capacity.abs() > 0.0 && !cycle.share.is_nan() {
            let all = 100.0 * (self.cpu + cycle.cpu) / capacity;
            odd += (all - cycle.share - 0.5).abs() / 2.0;
        }
        (rounded(odd), !is_equal(cycle.procs, self.last.procs))
    }

    fn add(&mut self, cycle: Cycle) {
        let is_next = is_equal(cycle.num, self.last.num + 1.0);
        if is_next && goal_growth_pct(self.last.live, cycle.goal).is_some() {
            (self.live, self.goal) = (self.last.live, cycle.goal);
        }
        self.cpu += cycle.cpu;
        self.last = cycle;
    }
}

fn goal_growth_pct(live: f64, goal: f64) -> Option<f64> {
    (live.abs() > 0.0 && goal > live).then(|| 100.0 * (goal - live) / live)
}

/// Rounds to one digit as Python does: by the decimal expansion, not by multiplication.
fn rounded(value: f64) -> f64 {
    format!("{value:.1}").parse().unwrap_or(value)
}

fn or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// Whether both are the same number, or both unknown.
fn is_equal(one: f64, other: f64) -> bool {
    one.total_cmp(&other).is_eq() || (one.is_nan() && other.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        slack_s: 0.002,
        open: 64,
        other_live: 4.0,
        lookahead: 32,
    };

    /// Cycles with a number, a start, and a live heap that is also the heap at the start.
    fn found(cycles: &[(f64, f64, f64)]) -> Vec<i64> {
        let mut columns = vec![f64::NAN; COLUMNS * cycles.len()];
        for (row, (num, start, live)) in cycles.iter().enumerate() {
            let facts = [
                *num,
                *start,
                start + 0.1,
                *live,
                *live,
                2.0 * live,
                4.0,
                0.0,
                1.0,
                0.01,
                0.0,
            ];
            for (column, fact) in facts.iter().enumerate() {
                columns[column * cycles.len() + row] = *fact;
            }
        }
        processes(&columns, LIMITS).unwrap()
    }

    #[test]
    fn a_cycle_goes_to_the_process_whose_next_one_it_is() {
        let rows = [
            (1.0, 0.0, 10.0),
            (1.0, 0.1, 900.0),
            (2.0, 1.0, 10.0),
            (2.0, 1.1, 900.0),
            (3.0, 2.0, 10.0),
            (3.0, 2.1, 900.0),
        ];
        assert_eq!(found(&rows), [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_cycle_after_a_gap_goes_to_the_process_whose_next_one_does_not_follow() {
        let rows = [
            (1.0, 0.0, 10.0),
            (7.0, 0.1, 900.0),
            (9.0, 1.0, 900.0),
            (2.0, 1.1, 10.0),
        ];
        assert_eq!(found(&rows), [0, 1, 1, 0]);
    }

    #[test]
    fn a_number_that_falls_is_another_process() {
        assert_eq!(found(&[(5.0, 9.0, 10.0), (1.0, 0.0, 10.0)]), [0, 1]);
    }

    #[test]
    fn values_are_rounded_as_python_does() {
        let rounds = [
            (0.25, 0.2),
            (0.35, 0.3),
            (0.75, 0.8),
            (1.05, 1.1),
            (2.65, 2.6),
        ];
        for (value, wanted) in rounds {
            assert!((rounded(value) - wanted).abs() < 1e-12, "{value}");
        }
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        assert!(processes(&[0.0; 12], LIMITS).is_none());
        assert!(processes(&[], LIMITS).unwrap().is_empty());
    }
}
