//! Walks the path of a program under the runtime's rules: the innermost loop of every prediction.
//!
//! It does what `_walk` of `advise/prediction/replay.py` does, in the same order, so every result
//! is the same to the last bit. There is the explanation of each step.

/// What the runtime's source fixes, and the model.
#[derive(Clone, Debug)]
pub struct Constants {
    pub lowest_trigger: f64,
    pub highest_trigger: f64,
    pub highest_trigger_1_17: f64,
    pub least_runway_mib: f64,
    pub heap_minimum_mib: f64,
    /// Room below the limit that counts as none, relative to the live heap.
    pub no_room: f64,
}

/// What decides goal and trigger of each cycle, in MiB: `Rules` in Python.
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
#[derive(Clone, Debug)]
pub struct Rules {
    pub gogc: Option<f64>,
    pub cap: Option<f64>,
    pub roots: f64,
    pub runway: f64,
    pub limit_gap: f64,
    pub lowest_trigger: Option<f64>,
}

/// What a cycle costs on the way: `Costs` in Python.
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
#[derive(Clone, Debug)]
pub struct Costs {
    pub fixed: f64,
    pub ballast: f64,
    pub mark_s_per_mib: f64,
    pub mib_per_s: f64,
    pub least_off: f64,
    pub free_times: f64,
    pub first_times: f64,
}

/// What is added to the live heap, and factors on it and on what is allocated during marking.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub offset: f64,
    pub in_mark_times: f64,
    pub live_times: f64,
}

/// Where a walk begins and ends, how much earlier its first cycle starts, and its most cycles.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    pub begin: f64,
    pub stop: f64,
    pub phase: f64,
    pub most: u32,
}

/// Live heap and allocation, one entry per cycle, as many of each, at least two.
#[derive(Clone, Debug)]
pub struct Path {
    at: Vec<f64>,
    live: Vec<f64>,
    in_mark: Vec<f64>,
}

/// The sums over the cycles of one walk: an entry of `_Walks` in Python.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Walk {
    pub cycles: u32,
    pub mib: f64,
    pub work: f64,
    pub peak: f64,
    pub marked: f64,
    pub marked_max: f64,
    pub in_mark: f64,
    pub trigger: f64,
    pub room: f64,
    pub by_limit: f64,
    pub no_room: f64,
    pub seconds: f64,
    pub no_room_s: f64,
    pub goals: Vec<f64>,
}

/// The first cycle of a walk, which only finds its place.
struct First {
    here: f64,
    marks: f64,
    after: f64,
    inside: f64,
    start: f64,
    goal: f64,
    period: f64,
    limited: bool,
}

impl Path {
    /// Takes the columns of a path; None if they do not have the same length, at least two.
    #[must_use]
    pub fn new(at: Vec<f64>, live: Vec<f64>, in_mark: Vec<f64>) -> Option<Self> {
        let fits = at.len() >= 2 && live.len() == at.len() && in_mark.len() == at.len();
        fits.then_some(Self { at, live, in_mark })
    }

    /// The last entry at or before a point, of those from `from` on that have a next one.
    fn find(&self, point: f64, from: usize) -> usize {
        let after = from + self.at[from..].partition_point(|at| *at <= point);
        after.saturating_sub(1).clamp(from, self.at.len() - 2)
    }

    /// Walks one stretch of the path; at least one cycle is walked whole.
    #[must_use]
    pub fn walk(
        &self,
        constants: &Constants,
        rules: &Rules,
        costs: &Costs,
        change: Change,
        stretch: Stretch,
    ) -> Walk {
        let Change {
            offset,
            in_mark_times,
            live_times,
        } = change;
        let (at, live, in_mark) = (&self.at, &self.live, &self.in_mark);
        let end = at[at.len() - 1];
        let extra = rules.roots + costs.fixed - costs.ballast;
        let cap = rules.cap.unwrap_or(f64::INFINITY);
        let mut v = stretch.begin;
        let mut j = self.find(v, 0);
        let mut wanted = in_mark[j] * in_mark_times;
        let mut inside = smaller(wanted, in_mark[j] * costs.first_times);
        let mut marked = (live[j] + offset) * live_times + inside;
        let marked_0 = marked;
        let mut found = Walk::default();
        let mut first: Option<First> = None;
        let mut previous = -1.0;
        let mut off;
        loop {
            let (goal, limited) = goal_of(constants, rules, cap, marked);
            let trigger = trigger_of(constants, rules, (goal, limited), marked, wanted);
            off = trigger - marked;
            if off < costs.least_off {
                off = costs.least_off;
            }
            if first.is_none() {
                off *= 1.0 - stretch.phase;
            }
            let (here, start) = (v + off, marked + off);
            if here >= end && found.cycles > 0 {
                break;
            }
            if at[j + 1] <= here {
                j = self.find(here, j);
            }
            let width = at[j + 1] - at[j];
            let mut weight = if width > 0.0 {
                (here - at[j]) / width
            } else {
                0.0
            };
            if weight > 1.0 {
                weight = 1.0;
            } else if weight < 0.0 {
                weight = 0.0;
            }
            let logged = in_mark[if weight < 0.5 { j } else { j + 1 }];
            wanted = logged * in_mark_times;
            inside = wanted;
            if first.is_none() {
                inside = smaller(wanted, logged * costs.first_times);
            }
            let room = goal - marked;
            if inside > goal - start {
                let assisted = larger(larger(goal - start, 0.02 * goal + 0.3), 0.03 * marked + 0.3);
                inside = smaller(inside, assisted);
            }
            if inside < 0.02 {
                inside = 0.02;
            }
            let after = (live[j] + (live[j + 1] - live[j]) * weight + offset) * live_times + inside;
            found.marked_max = larger(found.marked_max, after);
            found.peak = larger(found.peak, start + inside);
            let marks = after - inside + smaller(inside, wanted / costs.free_times) + extra;
            let period = off / costs.mib_per_s + marks * costs.mark_s_per_mib;
            if first.is_none() {
                first = Some(First {
                    here,
                    marks,
                    after,
                    inside,
                    start,
                    goal,
                    period,
                    limited,
                });
            } else {
                found.cycles += 1;
                found.seconds += period;
                if limited {
                    found.by_limit += 1.0;
                    if room <= constants.no_room * (marked + rules.roots) {
                        found.no_room += 1.0;
                        found.no_room_s += period;
                    }
                }
                found.work += larger(0.5, marks);
                found.marked += after;
                found.in_mark += inside;
                found.trigger += start;
                found.room += larger(0.5, goal - start);
                found.goals.push(goal);
            }
            previous = here;
            v = here + inside;
            marked = after;
            if found.cycles >= stretch.most || v >= end || (v >= stretch.stop && found.cycles > 0) {
                break;
            }
        }
        match first {
            Some(first) if found.cycles > 0 => {
                found.mib = previous - first.here;
                found
            }
            Some(first) => {
                let tight = first.limited
                    && first.goal - marked_0 <= constants.no_room * (marked_0 + rules.roots);
                first.alone(found.peak, larger(end - stretch.begin, off), tight)
            }
            None => found,
        }
    }
}

impl First {
    /// The sums of a walk that has only this cycle, because its path is shorter than a cycle.
    fn alone(self, peak: f64, mib: f64, tight: bool) -> Walk {
        let tight = f64::from(u8::from(tight));
        Walk {
            cycles: 1,
            mib,
            work: larger(self.marks, 0.5),
            peak,
            marked: self.after,
            marked_max: self.after,
            in_mark: self.inside,
            trigger: self.start,
            room: larger(self.goal - self.start, 0.5),
            by_limit: f64::from(u8::from(self.limited)),
            no_room: tight,
            seconds: self.period,
            no_room_s: self.period * tight,
            goals: vec![self.goal],
        }
    }
}

/// The heap goal after a cycle, and whether the memory limit sets it.
fn goal_of(constants: &Constants, rules: &Rules, cap: f64, marked: f64) -> (f64, bool) {
    let mut goal = f64::INFINITY;
    if let Some(ratio) = rules.gogc {
        goal = marked + (marked + rules.roots) * ratio;
        goal = larger(goal, constants.heap_minimum_mib * (100.0 * ratio) / 100.0);
    }
    if cap < goal {
        let floor = if cap > marked { cap } else { marked };
        if floor < goal {
            return (floor, true);
        }
    }
    (goal, false)
}

/// The heap at which the next cycle starts.
fn trigger_of(
    constants: &Constants,
    rules: &Rules,
    (goal, limited): (f64, bool),
    marked: f64,
    wanted: f64,
) -> f64 {
    let mut aim = if limited {
        goal * (1.0 - rules.limit_gap)
    } else {
        goal
    };
    if aim < marked {
        aim = marked;
    }
    let space = aim - marked;
    if let Some(lowest) = rules.lowest_trigger {
        let wished = larger(aim - rules.runway * wanted, marked + space * lowest);
        return smaller(wished, marked + space * constants.highest_trigger_1_17);
    }
    let mut trigger = aim - rules.runway * wanted;
    let low = marked + space * constants.lowest_trigger;
    let mut high = marked + space * constants.highest_trigger;
    if high < aim - constants.least_runway_mib {
        high = aim - constants.least_runway_mib;
    }
    if trigger < low {
        trigger = low;
    }
    if trigger > high {
        trigger = if high > low { high } else { low };
    }
    trigger
}

/// Python's `max`: the first argument unless the second is larger.
fn larger(one: f64, other: f64) -> f64 {
    if other > one { other } else { one }
}

/// Python's `min`: the first argument unless the second is smaller.
fn smaller(one: f64, other: f64) -> f64 {
    if other < one { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTANTS: Constants = Constants {
        lowest_trigger: 45.0 / 64.0,
        highest_trigger: 61.0 / 64.0,
        highest_trigger_1_17: 0.95,
        least_runway_mib: 4.0,
        heap_minimum_mib: 4.0,
        no_room: 0.15,
    };
    const COSTS: Costs = Costs {
        fixed: 2.0,
        ballast: 0.0,
        mark_s_per_mib: 0.001,
        mib_per_s: 100.0,
        least_off: 0.3,
        free_times: 1.0,
        first_times: 1e9,
    };
    const AS_IT_WAS: Change = Change {
        offset: 0.0,
        in_mark_times: 1.0,
        live_times: 1.0,
    };
    const WHOLE: Stretch = Stretch {
        begin: 0.0,
        stop: f64::INFINITY,
        phase: 0.0,
        most: 1000,
    };

    fn path(cycles: u32) -> Path {
        let at = (0..cycles).map(|each| 50.0 * f64::from(each)).collect();
        let flat = |value| vec![value; cycles as usize];
        Path::new(at, flat(100.0), flat(0.0)).unwrap()
    }

    fn rules(gogc: Option<f64>, cap: Option<f64>) -> Rules {
        Rules {
            gogc,
            cap,
            roots: 0.0,
            runway: 1.0,
            limit_gap: 0.0,
            lowest_trigger: None,
        }
    }

    #[test]
    fn a_steady_heap_has_the_goal_of_gogc() {
        let found = path(100).walk(
            &CONSTANTS,
            &rules(Some(1.0), None),
            &COSTS,
            AS_IT_WAS,
            WHOLE,
        );
        assert!(found.cycles > 40);
        let goal = found.goals[found.goals.len() / 2];
        assert!((goal - 200.0).abs() < 0.1, "{goal}");
        assert!(found.by_limit == 0.0);
    }

    #[test]
    fn a_limit_lowers_the_goal() {
        let low = rules(None, Some(130.0));
        let found = path(100).walk(&CONSTANTS, &low, &COSTS, AS_IT_WAS, WHOLE);
        assert!(found.goals.iter().all(|goal| *goal == 130.0));
        assert!(found.by_limit == f64::from(found.cycles));
        assert!(found.no_room == 0.0);
    }

    #[test]
    fn what_nothing_holds_back_is_allocated_up_to_the_goal_and_costs_no_marking() {
        let (at, live) = (
            (0..100).map(|each| 50.0 * f64::from(each)).collect(),
            vec![100.0; 100],
        );
        let path = Path::new(at, live, vec![10.0; 100]).unwrap();
        let held = Costs {
            free_times: 20.0,
            first_times: 1.0,
            ..COSTS
        };
        let free = Change {
            in_mark_times: 20.0,
            ..AS_IT_WAS
        };
        let walk = |gogc| path.walk(&CONSTANTS, &rules(Some(gogc), None), &held, free, WHOLE);
        let (low, high) = (walk(1.0), walk(8.0));
        let mean = |sum: f64, walk: &Walk| sum / f64::from(walk.cycles);
        // A share of 19/64 of the room, and all of it.
        assert!(
            (mean(low.in_mark, &low) - 42.2).abs() < 0.5,
            "{}",
            mean(low.in_mark, &low)
        );
        assert!((mean(high.in_mark, &high) - 200.0).abs() < 0.5);
        assert!(
            (mean(high.work, &high) - 112.0).abs() < 0.5,
            "{}",
            mean(high.work, &high)
        );
    }

    #[test]
    fn a_path_shorter_than_a_cycle_shows_one() {
        let found = path(2).walk(
            &CONSTANTS,
            &rules(Some(8.0), None),
            &COSTS,
            AS_IT_WAS,
            WHOLE,
        );
        assert_eq!((found.cycles, found.goals.len()), (1, 1));
    }

    #[test]
    fn a_walk_ends_after_the_most_cycles() {
        let few = Stretch { most: 3, ..WHOLE };
        let found = path(100).walk(&CONSTANTS, &rules(Some(1.0), None), &COSTS, AS_IT_WAS, few);
        assert_eq!(found.cycles, 3);
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        assert!(Path::new(vec![0.0, 1.0], vec![1.0], vec![1.0, 1.0]).is_none());
        assert!(Path::new(vec![0.0], vec![1.0], vec![1.0]).is_none());
    }
}
