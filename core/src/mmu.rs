//! Finds the time windows that leave least to the program.
//!
//! It does what `_worst` of `analysis/mmu.py` does, in the same order, so every result is the same
//! to the last bit. There is the explanation of each step.

use std::thread;

/// Ranges. With as many, looking at the windows of one length takes longer than to start a thread.
const WORTH_A_THREAD: usize = 10_000;

/// A phase in which time is lost: a pause, or marking with assists.
struct Range {
    at: f64,
    length: f64,
    is_pause: bool,
    /// The share of the time that is lost, with assists.
    share: f64,
    /// Milliseconds lost before it, to pauses and with assists.
    before: Lost,
}

/// Milliseconds lost to pauses alone, and to pauses and mark assists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost {
    pub stopped: f64,
    pub assisted: f64,
}

/// The most that is lost in windows of one length; `start` is that of the worst with assists.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    pub window: f64,
    pub most: Lost,
    pub start: f64,
}

/// The phases of cycles, one entry per cycle: begin and lengths in milliseconds, and which share of
/// marking is lost to assists.
#[derive(Clone, Debug)]
pub struct Phases {
    pub begin: Vec<f64>,
    pub first: Vec<f64>,
    pub mark: Vec<f64>,
    pub second: Vec<f64>,
    pub shared: Vec<f64>,
}

/// Returns the worst windows of each of these lengths, which rise, as far as the cycles reach;
/// None if the columns are not of one length.
#[must_use]
pub fn worst(phases: &Phases, windows: &[f64]) -> Option<Vec<Worst>> {
    let others = [&phases.first, &phases.mark, &phases.second, &phases.shared];
    if others.iter().any(|each| each.len() != phases.begin.len()) {
        return None;
    }
    let ranges = ranges(phases);
    let (begins, ends) = candidates(&ranges);
    let (Some(&first), Some(&last)) = (begins.first(), ends.last()) else {
        return Some(Vec::new());
    };
    let until = |times: &[f64]| -> Vec<Lost> {
        let mut cursor = Cursor::new(&ranges);
        times.iter().map(|time| cursor.until(*time)).collect()
    };
    let (until_begins, until_ends) = (until(&begins), until(&ends));
    let of_length = |&window: &f64| {
        let (mut one, mut other) = (Search::new(&ranges), Search::new(&ranges));
        let inside = begins.partition_point(|begin| *begin <= last - window);
        for (begin, until) in begins[..inside].iter().zip(&until_begins) {
            let loss = between(*until, one.cursor.until(begin + window));
            one.consider(*begin, loss);
        }
        let skipped = ends.partition_point(|end| end - window < first);
        for (end, until) in ends[skipped..].iter().zip(&until_ends[skipped..]) {
            let loss = between(other.cursor.until(end - window), *until);
            other.consider(end - window, loss);
        }
        one.worse(&other, window)
    };
    let lengths = windows.iter().take_while(|&window| last - window >= first);
    if ranges.len() < WORTH_A_THREAD {
        return Some(lengths.map(of_length).collect());
    }
    thread::scope(|scope| {
        let of_length = &of_length;
        let searches: Vec<_> = lengths
            .map(|length| scope.spawn(move || of_length(length)))
            .collect();
        searches.into_iter().map(|each| each.join().ok()).collect()
    })
}

/// The worst of the windows of one length that were considered so far.
struct Search<'ranges> {
    cursor: Cursor<'ranges>,
    most: Lost,
    start: f64,
}

impl<'ranges> Search<'ranges> {
    fn new(ranges: &'ranges [Range]) -> Self {
        Self {
            cursor: Cursor::new(ranges),
            most: Lost {
                stopped: f64::NEG_INFINITY,
                assisted: f64::NEG_INFINITY,
            },
            start: f64::INFINITY,
        }
    }

    fn consider(&mut self, begin: f64, lost: Lost) {
        self.most.stopped = self.most.stopped.max(lost.stopped);
        if lost.assisted > self.most.assisted {
            (self.most.assisted, self.start) = (lost.assisted, begin);
        }
    }

    /// The worse of two searches; if both are as bad, the one that begins first.
    fn worse(&self, other: &Self, window: f64) -> Worst {
        let most = Lost {
            stopped: self.most.stopped.max(other.most.stopped),
            assisted: self.most.assisted.max(other.most.assisted),
        };
        let start = [self, other]
            .iter()
            .filter(|each| each.most.assisted >= most.assisted)
            .fold(f64::INFINITY, |start, each| start.min(each.start));
        Worst {
            window,
            most,
            start,
        }
    }
}

/// Returns the time ranges in which time is lost, in order, with what is lost before each.
fn ranges(phases: &Phases) -> Vec<Range> {
    let none = Lost {
        stopped: 0.0,
        assisted: 0.0,
    };
    let mut found = Vec::with_capacity(3 * phases.begin.len());
    for (cycle, &begin) in phases.begin.iter().enumerate() {
        let (first, mark) = (phases.first[cycle], phases.mark[cycle]);
        let of_cycle = [
            (begin, first, true, 1.0),
            (begin + first, mark, false, phases.shared[cycle]),
            (begin + first + mark, phases.second[cycle], true, 1.0),
        ];
        for (at, length, is_pause, share) in of_cycle {
            if length > 0.0 {
                found.push(Range {
                    at,
                    length,
                    is_pause,
                    share,
                    before: none,
                });
            }
        }
    }
    if !found.is_sorted_by(|one, next| one.at <= next.at) {
        found.sort_by(|one, next| one.at.total_cmp(&next.at));
    }
    let mut lost = none;
    for range in &mut found {
        range.before = lost;
        if range.is_pause {
            lost.stopped += range.length;
        }
        lost.assisted += range.share * range.length;
    }
    found
}

/// Returns where the worst window may begin and where it may end, in order.
fn candidates(ranges: &[Range]) -> (Vec<f64>, Vec<f64>) {
    let end = |range: &Range| range.at + range.length;
    let overlap = ranges.windows(2).any(|pair| pair[1].at < end(&pair[0]));
    // A range follows another only if it begins where that one ends, to the last bit.
    #[allow(clippy::float_cmp)]
    let follows = |at: usize, pause: usize| {
        !overlap && ranges[at].at == end(&ranges[at - 1]) && ranges[pause].is_pause
    };
    let begins = (0..ranges.len())
        .filter(|&at| at == 0 || !follows(at, at - 1))
        .map(|at| ranges[at].at)
        .collect();
    let mut ends: Vec<f64> = (0..ranges.len())
        .filter(|&at| at + 1 == ranges.len() || !follows(at + 1, at + 1))
        .map(|at| end(&ranges[at]))
        .collect();
    if !ends.is_sorted() {
        ends.sort_by(f64::total_cmp);
    }
    (begins, ends)
}

/// Answers what was lost until a time, for times in order.
struct Cursor<'ranges> {
    ranges: &'ranges [Range],
    /// The number of ranges that begin at the last time or before it.
    begun: usize,
}

impl<'ranges> Cursor<'ranges> {
    fn new(ranges: &'ranges [Range]) -> Self {
        Self { ranges, begun: 0 }
    }

    fn until(&mut self, time: f64) -> Lost {
        while self
            .ranges
            .get(self.begun)
            .is_some_and(|next| next.at <= time)
        {
            self.begun += 1;
        }
        let Some(range) = self.begun.checked_sub(1).map(|at| &self.ranges[at]) else {
            return Lost {
                stopped: 0.0,
                assisted: 0.0,
            };
        };
        let into = range.length.min(time - range.at);
        let stopped = if range.is_pause { into } else { 0.0 };
        Lost {
            stopped: range.before.stopped + stopped,
            assisted: range.before.assisted + into * range.share,
        }
    }
}

fn between(begin: Lost, end: Lost) -> Lost {
    Lost {
        stopped: end.stopped - begin.stopped,
        assisted: end.assisted - begin.assisted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(begin: Vec<f64>) -> Phases {
        let all = |value| vec![value; begin.len()];
        let (first, mark, second, shared) = (all(4.0), all(100.0), all(2.0), all(0.5));
        Phases {
            begin,
            first,
            mark,
            second,
            shared,
        }
    }

    #[test]
    fn the_worst_windows_of_two_cycles_in_a_row() {
        let found = worst(&phases(vec![0.0, 106.0]), &[5.0, 10.0, 500.0]).unwrap();
        assert_eq!(found.len(), 2);
        // The end of the first cycle and the begin of the second: 6 ms of pauses in a row.
        assert_eq!((found[0].most.stopped, found[0].start), (5.0, 104.0));
        assert_eq!(found[1].most.stopped, 6.0);
        assert_eq!(found[1].most.assisted, 6.0 + 0.5 * 4.0);
    }

    #[test]
    fn cycles_out_of_order_are_put_in_order() {
        let windows = [1.0, 20.0, 200.0];
        let (one, other) = (phases(vec![0.0, 300.0]), phases(vec![300.0, 0.0]));
        assert_eq!(worst(&one, &windows), worst(&other, &windows));
    }

    #[test]
    fn without_lengths_there_is_no_window() {
        let mut none = phases(vec![0.0, 10.0]);
        for column in [&mut none.first, &mut none.mark, &mut none.second] {
            column.fill(0.0);
        }
        assert_eq!(worst(&none, &[1.0]), Some(Vec::new()));
        none.shared.pop();
        assert_eq!(worst(&none, &[1.0]), None);
    }
}
