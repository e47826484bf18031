//! The most probable settings behind the heap goals of a process, as `search.py` finds them.

/// What sets the goals: GOGC in percent (infinite: off), the memory limit's goal in MiB (infinite:
/// no limit, 0: below the live heap), and what makes both unlikely.
pub struct State {
    pub gogc: f64,
    pub top: f64,
    pub cost: f64,
}

/// The costs of `search.py`.
pub struct Costs {
    pub switch: f64,
    pub near: f64,
    pub drift: f64,
    pub far: f64,
    pub far_times: f64,
    pub near_share: f64,
    pub near_times: f64,
    pub drift_low: f64,
    pub drift_high: f64,
}

/// What the goals show, one entry per cycle; what is unknown is not a number.
pub struct Ranges {
    pub low: Vec<f64>,
    pub low_raised: Vec<f64>,
    pub high: Vec<f64>,
    pub goal: Vec<f64>,
    pub live: Vec<f64>,
}

/// At most this many states, one bit each.
pub const MOST: usize = 64;

/// What is known of a cycle: the cheapest state before it, and of each state, one bit, whether the
/// path stays in it rather than changes into it, and whether that depends on the cycle before.
struct Entered {
    cheapest: u8,
    stays: u64,
    open: u64,
}

/// Returns the states of the cheapest path and how many goals each explains; None if the columns
/// differ in length, or there are no states or too many.
///
/// A state that costs as much as a change into it costs the same after a goal that the cheapest
/// state explains, whether it explains the goal or not. So that is not asked, but of the states
/// that the path goes through.
#[must_use]
pub fn path(ranges: &Ranges, states: &[State], costs: &Costs) -> Option<Vec<(usize, usize)>> {
    let length = ranges.goal.len();
    let columns = [&ranges.low, &ranges.low_raised, &ranges.high, &ranges.live];
    if columns.iter().any(|column| column.len() != length) {
        return None;
    }
    if states.is_empty() || states.len() > MOST {
        return None;
    }
    let all = u64::MAX >> (MOST - states.len());
    let mut sums: Vec<f64> = states.iter().map(|state| state.cost).collect();
    let mut entered: Vec<Entered> = Vec::with_capacity(length);
    // The states that cost less than a change into them; the others cost exactly that.
    let (mut below, mut best, mut is_explained) = (all, 0, false);
    for row in 0..length {
        let open = if is_explained { all & !below } else { 0 };
        if !is_explained {
            (below, best) = (all, cheapest(&sums));
        }
        let mut stays = all;
        if row > 0 {
            let changed = sums[best] + costs.switch;
            for number in bits(below) {
                let most = changed + states[number].cost;
                if sums[number] > most {
                    stays &= !(1 << number);
                }
                if sums[number] >= most {
                    sums[number] = most;
                    below &= !(1 << number);
                }
            }
        }
        entered.push(Entered {
            cheapest: u8::try_from(best).ok()?,
            stays,
            open,
        });
        is_explained = row > 0 && unexplained(&states[best], ranges, row, costs) == 0.0;
        for number in bits(if is_explained { below } else { all }) {
            sums[number] += unexplained(&states[number], ranges, row, costs);
        }
    }
    let mut number = cheapest(&sums);
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (row, entry) in entered.iter().enumerate().rev() {
        match runs.last_mut() {
            Some(run) if run.0 == number => run.1 += 1,
            _ => runs.push((number, 1)),
        }
        let stays = if entry.open >> number & 1 == 1 {
            unexplained(&states[number], ranges, row - 1, costs) == 0.0
        } else {
            entry.stays >> number & 1 == 1
        };
        if !stays {
            number = usize::from(entry.cheapest);
        }
    }
    runs.reverse();
    Some(runs)
}

/// Yields the numbers of the bits that are set.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = mask.trailing_zeros();
        mask &= mask.checked_sub(1)?;
        Some(number as usize)
    })
}

fn cheapest(sums: &[f64]) -> usize {
    let mut best = 0;
    for (number, sum) in sums.iter().enumerate() {
        if *sum < sums[best] {
            best = number;
        }
    }
    best
}

/// Returns what a goal costs under a state: 0 if it is explained, 1 or more if not.
fn unexplained(state: &State, ranges: &Ranges, row: usize, costs: &Costs) -> f64 {
    let (gogc, top) = (state.gogc, state.top);
    let (goal, live) = (ranges.goal[row], ranges.live[row]);
    if top.is_infinite() && gogc.is_infinite() {
        return if goal.is_nan() { 0.0 } else { 1.0 };
    }
    let (low_raised, high) = (ranges.low_raised[row], ranges.high[row]);
    let raised = low_raised <= gogc;
    let set_by_gogc = if raised && gogc <= high {
        if ranges.low[row] <= gogc {
            0.0
        } else {
            costs.near
        }
    } else if low_raised > costs.far_times * gogc || gogc > costs.far_times * high {
        costs.far
    } else {
        1.0
    };
    if top.is_infinite() {
        return set_by_gogc;
    }
    let near = (costs.near_share * top).max(1.0);
    let wide = costs.near_times * near;
    if goal <= live && live >= top - wide {
        return 0.0;
    }
    if top == 0.0 {
        return 1.0;
    }
    if set_by_gogc == 0.0 && goal <= top + near {
        return 0.0;
    }
    if raised || gogc.is_infinite() {
        let off = (goal - top).abs();
        if off <= near {
            return 0.0;
        }
        if off <= wide {
            return costs.near;
        }
        if costs.drift_low * top - 1.0 < goal && goal < costs.drift_high * top + 1.0 {
            return costs.drift;
        }
    }
    if goal > (top + wide).max(costs.far_times * top) {
        return costs.far;
    }
    // Memory outside the heap may have left less, but nothing sets more than GOGC.
    if !raised && gogc.is_finite() {
        set_by_gogc
    } else if goal > top + wide {
        1.0
    } else {
        set_by_gogc.min(1.0)
    }
}
