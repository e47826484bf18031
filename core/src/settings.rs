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

/// Returns the states of the cheapest path and how many goals each explains; None if the columns
/// differ in length, or there are no states or too many.
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
    let mut sums: Vec<f64> = states.iter().map(|state| state.cost).collect();
    let mut entered = Vec::with_capacity(length);
    for row in 0..length {
        let cheapest = cheapest(&sums);
        let changed = sums[cheapest] + costs.switch;
        let mut stay = u64::MAX;
        if row > 0 {
            for (number, state) in states.iter().enumerate() {
                if sums[number] > changed + state.cost {
                    stay &= !(1 << number);
                    sums[number] = changed + state.cost;
                }
            }
        }
        entered.push((cheapest, stay));
        for (sum, state) in sums.iter_mut().zip(states) {
            *sum += unexplained(state, ranges, row, costs);
        }
    }
    let mut number = cheapest(&sums);
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (cheapest, stay) in entered.into_iter().rev() {
        match runs.last_mut() {
            Some(run) if run.0 == number => run.1 += 1,
            _ => runs.push((number, 1)),
        }
        if stay >> number & 1 == 0 {
            number = cheapest;
        }
    }
    runs.reverse();
    Some(runs)
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
