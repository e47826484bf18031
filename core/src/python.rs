//! What Python sees of the core: the module `_core`.

#[pyo3::pymodule]
mod _core {
    use std::sync::Arc;

    use arrow_buffer::Buffer;
    use arrow_data::ffi::FFI_ArrowArray;
    use arrow_data::{ArrayData, ArrayDataBuilder};
    use arrow_schema::ffi::FFI_ArrowSchema;
    use arrow_schema::{ArrowError, DataType, Field, Fields};
    use bytes::Bytes;
    use memchr::memmem;
    use pyo3::exceptions::{PyRuntimeError, PyValueError};
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyCapsule, PyIterator};

    use crate::chains::{self, Limits};
    use crate::columns::{Columns, SIZE};
    use crate::frames::{Change, Layouts, SLOTS};
    use crate::mmu::{self, Phases};
    use crate::records::{self, BadTemplate, Chunk, Filter, Kind, Template};
    use crate::replay::{Change as Shift, Constants, Costs, Path, Rules, Stretch, Walk};
    use crate::settings::{self, Ranges, State};

    /// Raised with every change of what Python calls, so that no old build is used by accident.
    #[pymodule_export]
    const INTERFACE: u32 = 12;

    /// Reads records of some line formats.
    #[pyclass(frozen)]
    struct Reader {
        templates: Vec<Template>,
        filter: Filter,
        /// In a box, because Python aligns its objects to 16 bytes only, and vectors need more.
        layouts: Option<Box<Layouts>>,
        columns: Vec<Vec<(String, DataType)>>,
        framed: Vec<Vec<(String, DataType)>>,
    }

    /// A number of a format: its name, its kind, and the literal after it.
    type Number = (String, String, Vec<u8>);

    /// The number of lines; the records of each format; those inside a frame, and of each key of a
    /// frame its text, how many lines have it and some of them; the other lines, with their numbers.
    type Read<'py> = (
        u32,
        Vec<Option<Table>>,
        Vec<Option<Table>>,
        Vec<(Bound<'py, PyBytes>, u32, Vec<u32>)>,
        Table,
    );

    /// The layouts of times, what changes after which literal and how, and how records begin.
    type Frames = (Vec<Vec<u8>>, Vec<(Vec<u8>, String)>, Vec<u8>);

    #[pymethods]
    impl Reader {
        /// Takes the literal before the first number of each format, and its numbers: the name of
        /// each, its kind (`whole`, `whole32` or `decimal`) and the literal after it. Other lines
        /// are kept if they contain one of the words or are longer than `most`; without words,
        /// all but empty ones are. With `frames`, records inside a line are read too.
        #[new]
        #[pyo3(signature = (formats, words, most, frames=None))]
        fn new(
            formats: Vec<(Vec<u8>, Vec<Number>)>,
            words: Vec<Vec<u8>>,
            most: usize,
            frames: Option<Frames>,
        ) -> PyResult<Self> {
            let (mut templates, mut columns) = (Vec::new(), Vec::new());
            for (head, numbers) in formats {
                let mut steps = Vec::new();
                let mut names = vec![("line_no".to_owned(), DataType::Int64)];
                for (name, kind, literal) in numbers {
                    let kind = kind_of(&kind)?;
                    let is_decimal = kind == Kind::Decimal;
                    let dtype = if is_decimal {
                        DataType::Float64
                    } else {
                        DataType::Int64
                    };
                    names.push((name, dtype));
                    steps.push((kind, literal));
                }
                columns.push(names);
                templates.push(Template::new(&head, &steps).map_err(bad)?);
            }
            let filter = Filter::new(&words, most).map_err(bad)?;
            let mut others = vec![("key".to_owned(), DataType::Int64)];
            others.extend((0..SLOTS).map(|slot| (format!("slot_{slot}"), DataType::Int64)));
            others.extend((0..SLOTS).map(|slot| (format!("unit_{slot}"), DataType::Float64)));
            let framed = columns.iter().map(|own| [own.as_slice(), &others].concat());
            Ok(Self {
                templates,
                filter,
                layouts: frames.map(layouts_of).transpose()?.map(Box::new),
                framed: framed.collect(),
                columns,
            })
        }

        /// Reads whole lines, which are numbered from 1.
        fn read<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Read<'py>> {
            let layouts = self.layouts.as_deref();
            let chunk = py.detach(|| Chunk::read(&self.templates, &self.filter, layouts, data));
            let numbers = vec![chunk.rest_no.into()];
            let texts = vec![chunk.rest_ends.into(), chunk.rest.into()];
            let keys = chunk.frames.keys.into_iter();
            Ok((
                chunk.lines,
                tables(chunk.records, &self.columns)?,
                tables(chunk.framed, &self.framed)?,
                keys.map(|key| (PyBytes::new(py, &key.text), key.lines, key.some))
                    .collect(),
                table([
                    ("line_no", DataType::UInt32, numbers),
                    ("text", DataType::LargeUtf8, texts),
                ])?,
            ))
        }
    }

    /// Returns the records of each format, without those that there are none of.
    fn tables(
        records: Vec<Columns>,
        columns: &[Vec<(String, DataType)>],
    ) -> PyResult<Vec<Option<Table>>> {
        let of = |(records, columns): (Columns, &Vec<_>)| {
            (!records.is_empty())
                .then(|| records_of(records, columns))
                .transpose()
        };
        records.into_iter().zip(columns).map(of).collect()
    }

    fn layouts_of((times, changes, head): Frames) -> PyResult<Layouts> {
        let changes = changes.into_iter().map(|(literal, change)| {
            let change = match change.as_str() {
                "quoted" => Ok(Change::Quoted),
                "digits" => Ok(Change::Digits),
                "clock" => Ok(Change::Clock),
                _ => Err(PyValueError::new_err(format!("no change: {change}"))),
            };
            Ok((literal, change?))
        });
        Ok(Layouts::new(
            times,
            changes.collect::<PyResult<_>>()?,
            &head,
        ))
    }

    /// Columns of equal length, for `polars.DataFrame`.
    #[pyclass(frozen)]
    struct Table {
        data: ArrayData,
        schema: Field,
    }

    #[pymethods]
    impl Table {
        /// Hands the columns over without copying them (the Arrow `PyCapsule` interface).
        #[pyo3(signature = (requested_schema=None))]
        fn __arrow_c_array__<'py>(
            &self,
            py: Python<'py>,
            requested_schema: Option<Bound<'py, PyAny>>,
        ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
            // The consumer may ask for other types, and must take those that it gets.
            drop(requested_schema);
            let schema = FFI_ArrowSchema::try_from(&self.schema).map_err(failed)?;
            let array = FFI_ArrowArray::new(&self.data);
            Ok((
                PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
                PyCapsule::new_with_value(py, array, c"arrow_array")?,
            ))
        }

        fn __len__(&self) -> usize {
            self.data.len()
        }
    }

    /// Returns lines by their numbers, which begin with 1 and rise, each with a line end; `total`
    /// is the number of all lines.
    #[pyfunction]
    #[allow(clippy::needless_pass_by_value)]
    fn lines<'py>(
        py: Python<'py>,
        data: &[u8],
        total: u32,
        numbers: Vec<u32>,
    ) -> Bound<'py, PyBytes> {
        let found = py.detach(|| records::lines(data, total, &numbers));
        PyBytes::new(py, &found)
    }

    /// Returns whether the data contain one of the words.
    #[pyfunction]
    #[allow(clippy::needless_pass_by_value)]
    fn contains_any(py: Python<'_>, data: &[u8], words: Vec<Vec<u8>>) -> bool {
        py.detach(|| words.iter().any(|word| memmem::find(data, word).is_some()))
    }

    /// Returns whether there are only line ends and characters of ASCII that can be seen.
    #[pyfunction]
    fn is_plain(py: Python<'_>, data: &[u8]) -> bool {
        py.detach(|| records::is_plain(data))
    }

    /// Window, milliseconds lost in it to pauses, and with assists, and where it begins.
    type Worst = (f64, f64, f64, f64);

    /// The columns of `Phases`, as `packed` of core.py returns them.
    type Packed<'a> = (&'a [u8], &'a [u8], &'a [u8], &'a [u8], &'a [u8]);

    /// Returns the windows that leave least to the program.
    #[pyfunction]
    fn worst_windows(
        py: Python<'_>,
        phases: Packed<'_>,
        windows: Vec<f64>,
    ) -> PyResult<Vec<Worst>> {
        let phases = Phases {
            begin: numbers(phases.0),
            first: numbers(phases.1),
            mark: numbers(phases.2),
            second: numbers(phases.3),
            shared: numbers(phases.4),
        };
        let found = py
            .detach(move || mmu::worst(&phases, &windows))
            .ok_or_else(|| PyValueError::new_err("the columns of cycles must be of one length"))?;
        let values = |each: mmu::Worst| {
            (
                each.window,
                each.most.stopped,
                each.most.assisted,
                each.start,
            )
        };
        Ok(found.into_iter().map(values).collect())
    }

    /// Returns the process of each cycle of a stream that several programs share.
    #[pyfunction]
    #[pyo3(signature = (facts, *, slack_s, open, other_live, lookahead))]
    fn concurrent_processes(
        py: Python<'_>,
        facts: &[u8],
        slack_s: f64,
        open: usize,
        other_live: f64,
        lookahead: usize,
    ) -> PyResult<Table> {
        let limits = Limits {
            slack_s,
            open,
            other_live,
            lookahead,
        };
        let columns = numbers(facts);
        let found = py
            .detach(move || chains::processes(&columns, limits))
            .ok_or_else(|| PyValueError::new_err("the columns of cycles must be of one length"))?;
        table([("process", DataType::Int64, vec![found.into()])])
    }

    /// The costs of `settings::Costs`, in their order.
    type Nine = (f64, f64, f64, f64, f64, f64, f64, f64, f64);

    /// Returns the states of the cheapest path, by number, and how many goals each explains. The
    /// columns are those of `Ranges`, and a state is its GOGC, its limit's goal and its cost.
    #[pyfunction]
    fn settings_path(
        py: Python<'_>,
        ranges: Packed<'_>,
        states: Vec<(f64, f64, f64)>,
        costs: Nine,
    ) -> PyResult<Vec<(usize, usize)>> {
        let ranges = Ranges {
            low: numbers(ranges.0),
            low_raised: numbers(ranges.1),
            high: numbers(ranges.2),
            goal: numbers(ranges.3),
            live: numbers(ranges.4),
        };
        let states: Vec<State> = states
            .into_iter()
            .map(|(gogc, top, cost)| State { gogc, top, cost })
            .collect();
        let costs = settings::Costs {
            switch: costs.0,
            near: costs.1,
            drift: costs.2,
            far: costs.3,
            far_times: costs.4,
            near_share: costs.5,
            near_times: costs.6,
            drift_low: costs.7,
            drift_high: costs.8,
        };
        py.detach(move || settings::path(&ranges, &states, &costs))
            .ok_or_else(|| PyValueError::new_err("columns of one length and 1 to 64 states"))
    }

    /// Walks the path of a program under other settings.
    #[pyclass(frozen)]
    struct Walker {
        path: Path,
        constants: Constants,
    }

    /// The number of cycles of a walk, and its other sums in the order of `_Walks`.
    type Sums = (u32, Twelve);
    type Twelve = (f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64);

    #[pymethods]
    impl Walker {
        /// Takes the columns of a path, `at`, `live` and `in_mark`, and the constants by name.
        ///
        /// The columns come from an iterator, so that only one of them is in memory twice.
        #[new]
        #[pyo3(signature = (columns, *, lowest_trigger, highest_trigger, highest_trigger_1_17, least_runway_mib, heap_minimum_mib, no_room))]
        #[allow(clippy::too_many_arguments)]
        fn new(
            columns: &Bound<'_, PyIterator>,
            lowest_trigger: f64,
            highest_trigger: f64,
            highest_trigger_1_17: f64,
            least_runway_mib: f64,
            heap_minimum_mib: f64,
            no_room: f64,
        ) -> PyResult<Self> {
            let mut taken = Vec::new();
            for column in columns {
                taken.push(numbers(column?.extract::<&[u8]>()?));
            }
            let path = <[Vec<f64>; 3]>::try_from(taken)
                .ok()
                .and_then(|[at, live, in_mark]| Path::new(at, live, in_mark))
                .ok_or_else(|| PyValueError::new_err("a path has at least two points"))?;
            let constants = Constants {
                lowest_trigger,
                highest_trigger,
                highest_trigger_1_17,
                least_runway_mib,
                heap_minimum_mib,
                no_room,
            };
            Ok(Self { path, constants })
        }

        /// Walks stretches of the path: begin, stop, phase and most cycles of each. `change` is
        /// what is added to the live heap, and factors on it and on what is allocated in marking.
        /// Returns the sums of each, and the median of all goals.
        #[allow(clippy::needless_pass_by_value)]
        fn walk(
            &self,
            py: Python<'_>,
            rules: Rules,
            costs: Costs,
            change: (f64, f64, f64),
            stretches: Vec<(f64, f64, f64, u32)>,
        ) -> (Vec<Sums>, f64) {
            let change = Shift {
                offset: change.0,
                live_times: change.1,
                in_mark_times: change.2,
            };
            py.detach(|| {
                let mut goals = Vec::new();
                let walk = |(begin, stop, phase, most)| {
                    let stretch = Stretch {
                        begin,
                        stop,
                        phase,
                        most,
                    };
                    let mut walk = self
                        .path
                        .walk(&self.constants, &rules, &costs, change, stretch);
                    goals.append(&mut walk.goals);
                    sums(&walk)
                };
                let found = stretches.into_iter().map(walk).collect();
                let middle = goals.len() / 2;
                let median = if goals.is_empty() {
                    f64::NAN
                } else {
                    *goals.select_nth_unstable_by(middle, f64::total_cmp).1
                };
                (found, median)
            })
        }
    }

    /// The numbers of an array of Python, whose bytes are those of this machine.
    fn numbers(bytes: &[u8]) -> Vec<f64> {
        let numbers = bytes.chunks_exact(size_of::<f64>());
        numbers
            .filter_map(|each| each.try_into().ok())
            .map(f64::from_ne_bytes)
            .collect()
    }

    fn sums(walk: &Walk) -> Sums {
        let others = (
            walk.mib,
            walk.work,
            walk.peak,
            walk.marked,
            walk.marked_max,
            walk.in_mark,
            walk.trigger,
            walk.room,
            walk.by_limit,
            walk.no_room,
            walk.seconds,
            walk.no_room_s,
        );
        (walk.cycles, others)
    }

    fn records_of(records: Columns, columns: &[(String, DataType)]) -> PyResult<Table> {
        let bytes = records.len() * SIZE;
        let (memory, begins) = records.into_memory();
        let memory = memory.map_or_else(Bytes::new, Bytes::from_owner);
        let numbers = begins
            .iter()
            .map(|begin| memory.slice(*begin..begin + bytes));
        let named = columns.iter().zip(numbers);
        table(
            named.map(|((name, dtype), numbers)| {
                (name.as_str(), dtype.clone(), vec![numbers.into()])
            }),
        )
    }

    /// Columns have numbers, or texts: where each begins and the last one ends, and all of them.
    fn table<'a>(
        columns: impl IntoIterator<Item = (&'a str, DataType, Vec<Buffer>)>,
    ) -> PyResult<Table> {
        let (mut fields, mut children) = (Vec::new(), Vec::new());
        for (name, dtype, buffers) in columns {
            let zero = usize::from(dtype == DataType::LargeUtf8);
            let rows = buffers[0].len() / dtype.primitive_width().unwrap_or(SIZE) - zero;
            let child = ArrayDataBuilder::new(dtype.clone())
                .len(rows)
                .buffers(buffers);
            children.push(child.build().map_err(failed)?);
            fields.push(Arc::new(Field::new(name, dtype, false)));
        }
        let rows = children.first().map_or(0, ArrayData::len);
        let dtype = DataType::Struct(Fields::from(fields));
        let data = ArrayDataBuilder::new(dtype.clone())
            .len(rows)
            .child_data(children);
        let schema = Field::new("", dtype, false);
        Ok(Table {
            data: data.build().map_err(failed)?,
            schema,
        })
    }

    #[allow(clippy::needless_pass_by_value)]
    fn bad(err: BadTemplate) -> PyErr {
        PyValueError::new_err(err.to_string())
    }

    #[allow(clippy::needless_pass_by_value)]
    fn failed(err: ArrowError) -> PyErr {
        PyRuntimeError::new_err(err.to_string())
    }

    fn kind_of(name: &str) -> PyResult<Kind> {
        match name {
            "whole" => Ok(Kind::Whole),
            "whole32" => Ok(Kind::Whole32),
            "decimal" => Ok(Kind::Decimal),
            _ => Err(PyValueError::new_err(format!("no kind of number: {name}"))),
        }
    }
}
