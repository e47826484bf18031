"use strict";
(async () => {
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const made = (tag, settings = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), settings);
    element.append(...children);
    return element;
  };

  // Colours are variables of the style: nothing is drawn again in the dark.
  byId("theme").addEventListener("click", () => {
    const dark = (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    root.dataset.theme = dark ? "light" : "dark";
  });
  const closed = new Set();
  let listed = null;
  const PAGE = matchMedia("(max-width: 600px)").matches ? 10 : 25;
  addEventListener("beforeprint", () => { listed?.({ rows: 200 }); all("details:not([open])").forEach((each) => { closed.add(each); each.open = true; }); });
  addEventListener("afterprint", () => { listed?.({ rows: PAGE }); closed.forEach((each) => { each.open = false; }); closed.clear(); });

  for (const group of all(".tabs")) {
    const charts = all(":scope > .chart", group);
    if (charts.length < 2) continue;
    const list = made("div", { className: "tablist", role: "tablist" });
    list.setAttribute("aria-label", group.dataset.label);
    const tabs = charts.map((chart) => {
      const tab = made("button", { type: "button", role: "tab", id: `${chart.id}-tab`, textContent: chart.dataset.tab });
      tab.setAttribute("aria-controls", chart.id);
      chart.setAttribute("role", "tabpanel");
      chart.setAttribute("aria-labelledby", tab.id);
      return tab;
    });
    const choose = (index) => tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", at === index);
      tab.tabIndex = at === index ? 0 : -1;
      charts[at].classList.toggle("away", at !== index);
    });
    tabs.forEach((tab, at) => tab.addEventListener("click", () => choose(at)));
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
      choose(next);
      tabs[next].focus();
    });
    list.append(...tabs);
    group.prepend(list);
    choose(0);
  }

  // Tables of ranked rows: all rows are in the page; the first ones, or those that match, are shown.
  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    const given = [...body.rows];
    const first = Math.ceil(Number(table.dataset.first) * Math.min(1, PAGE / 20));
    const words = new Map(given.map((row) => [row, row.textContent.toLowerCase()]));
    const state = { query: "", sort: null, down: false, whole: given.length <= first };
    const found = made("output");
    const more = made("button", { type: "button", textContent: `Show all ${given.length.toLocaleString("en")}` });
    const heads = all("thead th", table);
    const valueOf = (row) => {
      const { dataset, textContent } = row.cells[state.sort];
      if (dataset.sort === undefined) return textContent || null;
      return dataset.sort === "" ? null : Number(dataset.sort);
    };
    const compare = (one, other) => (typeof one === "number" && typeof other === "number" ? one - other
      : String(one).localeCompare(String(other), "en", { numeric: true }));
    const update = (change = {}) => {
      Object.assign(state, change);
      const rows = [...given];
      if (state.sort !== null) {
        const values = new Map(rows.map((row) => [row, valueOf(row)]));
        rows.sort((one, other) => {
          const [a, b] = [values.get(one), values.get(other)];
          if (a === null || b === null) return (a === null) - (b === null);
          return (state.down ? -1 : 1) * compare(a, b);
        });
      }
      const wanted = state.query.toLowerCase();
      let matching = 0, shown = 0;
      for (const row of rows) {
        const fits = !wanted || words.get(row).includes(wanted);
        matching += fits;
        row.hidden = !fits || (!state.whole && shown >= first);
        shown += !row.hidden;
      }
      body.append(...rows);
      heads.forEach((head, index) => {
        if (index === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      found.textContent = `${shown.toLocaleString("en")} of ${matching.toLocaleString("en")}${wanted ? " that match" : ""}`;
      more.hidden = state.whole || matching <= first;
    };
    heads.forEach((head, index) => {
      if (given.length < 2 || !head.textContent) return;
      const button = made("button", { type: "button", textContent: head.textContent });
      const numbers = given.some((row) => row.cells[index].dataset.sort);
      button.addEventListener("click", () => update({ sort: index, down: state.sort === index ? !state.down : numbers }));
      head.replaceChildren(button);
    });
    if (given.length > first) {
      const input = made("input", { type: "search", autocomplete: "off" });
      input.addEventListener("input", () => update({ query: input.value.trim() }));
      more.addEventListener("click", () => update({ whole: true }));
      table.closest(".scroll").before(made("div", { className: "js finder" }, made("label", {}, "Filter ", input), found, more));
    }
    update();
  }

  // Flame graphs: a frame fills the width when what lies next to it and next to its callers is away.
  for (const figure of all(".flame")) {
    const tree = figure.querySelector(".frames");
    const frames = all(".frame", tree);
    const [input, whole, says] = ["input", "button", "output"].map((tag) => figure.querySelector(`.finder ${tag}`));
    if (!input) continue;
    const caller = (frame) => frame.parentElement.closest(".frame");
    const percentOf = (parts) => `${Number((parts / 1000).toPrecision(3))} %`;
    const parts = (frame) => Number(frame.style.flexGrow);
    let current = frames[0];
    const choose = (frame) => {
      current.tabIndex = -1;
      current = frame;
      current.tabIndex = 0;
      says.textContent = frame.title;
    };
    const zoom = (frame) => {
      all(".aside, .around", tree).forEach((each) => each.classList.remove("aside", "around"));
      for (let at = frame; at; at = caller(at)) {
        for (const next of at.parentElement.children) next.classList.toggle("aside", next !== at);
        at.classList.toggle("around", at !== frame);
      }
      whole.hidden = !frame;
    };
    const next = {
      ArrowUp: caller, ArrowDown: (frame) => frame.querySelector(".frame"),
      ArrowRight: (frame) => frame.nextElementSibling, ArrowLeft: (frame) => frame.previousElementSibling,
    };
    frames.forEach((frame) => { frame.tabIndex = frame === current ? 0 : -1; });
    tree.addEventListener("click", (event) => {
      const frame = event.target.closest(".frame");
      if (frame) { zoom(frame); choose(frame); frame.focus({ preventScroll: true }); }
    });
    tree.addEventListener("pointerover", (event) => { says.textContent = (event.target.closest(".frame") ?? current).title; });
    tree.addEventListener("keydown", (event) => {
      if (event.key === "Enter") zoom(current);
      else if (event.key === "Escape") zoom(null);
      else {
        const frame = next[event.key]?.(current);
        if (next[event.key]) event.preventDefault();
        if (frame?.matches(".frame:not(.aside)")) { choose(frame); frame.focus(); }
        return;
      }
      event.preventDefault();
    });
    whole.addEventListener("click", () => zoom(null));
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let sum = 0, count = 0;
      for (const frame of frames) {
        const hits = wanted !== "" && frame.title.slice(0, frame.title.lastIndexOf(": ")).toLowerCase().includes(wanted);
        frame.classList.toggle("hit", hits);
        count += hits;
        // Callers come first: what one that matches calls is part of it.
        if (hits && !caller(frame)?.closest(".hit")) sum += parts(frame);
      }
      says.textContent = wanted ? `${count.toLocaleString("en")} frames, ${percentOf(sum)}` : "";
    });
    input.addEventListener("keydown", (event) => {
      const hit = event.key === "Enter" && tree.querySelector(".hit");
      if (hit) { choose(hit); hit.focus(); }
    });
  }

  const packed = byId("data");
  // A browser that cannot unpack shows the charts as they are, without zoom.
  if (!packed || typeof DecompressionStream === "undefined") return;
  const bytes = Uint8Array.from(atob(packed.textContent), (char) => char.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(unpacked).json();
  const zeroOf = (process) => (process.zero === null ? null : Date.parse(process.zero) / 1000);
  const charts = all(".chart").filter((each) => data.charts[each.id]).map((figure) => ({
    figure, ...data.charts[figure.id], area: figure.querySelector(".area"), svg: figure.querySelector("svg.plotted"),
    cross: figure.querySelector(".cross"), tip: figure.querySelector(".tip"),
  }));
  // Of processes that run side by side, one is shown; each has its own time axis.
  const [first] = data.processes;
  let range = null, current, zero, shift, timed, whole, long, brief;
  function choose(process) {
    current = process;
    zero = zeroOf(process);
    shift = zero === null || zeroOf(first) === null ? 0 : zero - zeroOf(first);
    timed = charts.filter((each) => each.timed && (each.figure.dataset.process ?? String(first.number)) === String(process.number));
    whole = timed.length ? timed[0].x : null;
    long = whole && whole[1] - whole[0] > 86400;
    brief = whole && zero === null && whole[1] < 60; // as in ticks.py
    for (const { figure } of charts) if (figure.dataset.process) figure.hidden = figure.dataset.process !== String(process.number);
    for (const chart of timed) chart.view = whole;
  }
  choose(first);

  // Numbers and times as the rest of the page writes them; halves are rounded towards 0.
  const number = (value, digits = 3) => (value * (1 - 1e-9)).toLocaleString("en", { maximumSignificantDigits: Math.max(digits, Math.floor(Math.log10(Math.abs(value) || 1)) + 1) });
  const size = (mib) => (mib >= 10240 ? `${(mib / 1024).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })}\u00a0GiB` : `${number(mib)}\u00a0MiB`);
  const percent = (value) => `${number(100 * value, value < 0.1 ? 2 : 3)}\u00a0%`;
  const shown = (value, chart) => (chart.percent ? percent(value) : `${chart.unit === "ms" ? number(Number(value.toFixed(3)), 2) : number(value)}${chart.unit && `\u00a0${chart.unit}`}`);
  const places = (step) => (step < 1 ? Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) : 0);
  function moment(seconds, step, inTable) {
    const digits = places(step);
    if (brief && !inTable) return `${Number(seconds.toFixed(digits))}\u00a0s`;
    if (zero !== null) {
      const text = new Date((zero + seconds) * 1000).toISOString();
      return (long ? `${text.slice(5, 10)} ` : "") + text.slice(11, digits ? 20 + Math.min(digits, 3) : 19);
    }
    const rounded = Number(seconds.toFixed(digits));
    const rest = (rounded % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
    const minutes = Math.floor(rounded / 60);
    return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
  }
  function lasting(seconds) {
    if (seconds < 1) return `${number(1000 * seconds)}\u00a0ms`;
    if (seconds < 60) return `${number(seconds, 2)}\u00a0s`;
    for (const [large, small, size, name] of [[86400, 3600, "d", "h"], [3600, 60, "h", "m"], [60, 1, "m", "s"]]) {
      if (seconds >= large) return `${Math.floor(seconds / large)}${size} ${String(Math.floor((seconds % large) / small)).padStart(2, "0")}${name}`;
    }
  }

  const DAY = 86400;
  const STEPS = [...[-3, -2, -1].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power)), 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY];
  function timeTicks(begin, end, most) {
    const origin = zero ?? 0;
    const step = STEPS.find((each) => (end - begin) / each <= most) ?? 182 * DAY;
    const ticks = [];
    for (let at = Math.ceil((origin + begin) / step - 1e-9); at * step <= origin + end; at += 1) {
      const seconds = at * step - origin;
      const of = zero === null ? null : new Date(at * step * 1000).toISOString();
      const midnight = of && of.slice(11, 23) === "00:00:00.000";
      ticks.push([seconds, of === null ? moment(seconds, step)
        : midnight || step >= DAY ? `${["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][Number(of.slice(5, 7)) - 1]} ${Number(of.slice(8, 10))}`
          : step >= 60 ? of.slice(11, 16) : of.slice(11, places(step) ? 20 + Math.min(places(step), 3) : 19)]);
    }
    return ticks;
  }
  // As many ticks as their labels leave room for, which have the digits that the steps need.
  function ticksWithin(begin, end, wide) {
    for (let most = Math.min(10, Math.max(2, Math.floor(wide / 60))); ; most -= 1) {
      const ticks = timeTicks(begin, end, most);
      const letters = Math.max(...ticks.map(([, text]) => text.length));
      const apart = ticks.length > 1 ? (wide * (ticks[1][0] - ticks[0][0])) / (end - begin) : Infinity;
      if (most <= 2 || apart >= 7 * letters + 14) return ticks;
    }
  }
  function linearTicks(low, high, most) {
    const power = 10 ** Math.floor(Math.log10((high - low) / most));
    const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => (high - low) / each <= most);
    const ticks = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) ticks.push(Number((at * step).toPrecision(12)));
    return ticks;
  }

  // The first point at or after x, by halving.
  function from(xs, x) {
    let low = 0, high = xs.length;
    while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
    return low;
  }
  function nearest(series, x) {
    const at = from(series.x, x);
    // A step holds until the next one begins.
    if (series.step && at > 0) return at < series.x.length && series.x[at] === x ? at : at - 1;
    if (at === 0) return series.x.length ? 0 : -1;
    if (at === series.x.length) return at - 1;
    return x - series.x[at - 1] <= series.x[at] - x ? at - 1 : at;
  }

  // Close up, the cycles of the table replace the bins of the charts.
  const MOST_SINGLE = 1200;
  // As in steps.py: a rate holds since the cycle before, or until the next.
  const STEPS_OF = { "GC CPU": "before", "with idle marking": "before", allocation: "after" };
  const single = data.records.single?.series;
  const singles = single ? (() => {
    const { columns, single: { drawn }, files, file } = data.records;
    const by = (kind) => columns.find((each) => each.kind === kind)?.values;
    const [times, numbers, lines] = [by("time"), by("cycle"), by("line")];
    const process = columns.find((each) => each.head === "process")?.values;
    const rows = times.map((_, row) => row).filter((row) => times[row] !== null && (!drawn.length || drawn[row])).sort((one, other) => times[one] - times[other]);
    return { rows, x: rows.map((row) => times[row]), process, where: (row) => `gc ${numbers[row]} · ${files[file.length ? file[row] : 0]}:${lines[row]}` };
  })() : null;
  function closeUp(chart, [begin, end]) {
    if (!singles || current !== first) return;
    const start = Math.max(from(singles.x, begin) - 1, 0);
    const last = Math.min(from(singles.x, end) + 1, singles.x.length);
    const near = range && last - start <= MOST_SINGLE;
    const rowsOf = singles.rows.slice(start, last);
    const column = new Map(rowsOf.map((row, at) => [row, singles.x[start + at]]));
    all(".single", chart.svg).forEach((each) => each.remove());
    chart.series.forEach((series, index) => {
      series.own ??= { x: series.x, y: series.y, low: series.low, high: series.high, where: series.where, until: series.until };
      Object.assign(series, series.own);
      const paths = all(`[data-series="${index}"]`, chart.svg);
      const swap = near && series.name in single && paths.length > 0;
      paths.forEach((each) => { each.style.display = swap ? "none" : ""; });
      if (!swap) return;
      const given = single[series.name];
      const values = typeof given === "number" ? data.records.columns[given].values : given;
      const rows = rowsOf.filter((row) => values[row] !== null);
      Object.assign(series, { x: rows.map((row) => column.get(row)), y: rows.map((row) => values[row]), low: undefined, high: undefined, until: undefined, where: rows.map(singles.where) });
      const logarithm = ([a, b], value) => (Math.log10(b) - Math.log10(value)) / (Math.log10(b) - Math.log10(a));
      const place = (at) => {
        const y = chart.logY ? logarithm(chart.y, series.y[at]) : (chart.y[1] - series.y[at]) / (chart.y[1] - chart.y[0]);
        return `${((1000 * (series.x[at] - chart.x[0])) / (chart.x[1] - chart.x[0])).toFixed(6)} ${(100 * y).toFixed(3)}`;
      };
      const dots = rows.map((_, at) => `M${place(at)}h.01`).join("");
      const whole = paths[paths.length - 1];
      const path = whole.cloneNode();
      path.style.display = "";
      path.classList.add("single");
      path.removeAttribute("data-series");
      const isPoints = path.classList.contains("points");
      const follows = (at) => at > 0 && (!singles.process || singles.process[rows[at]] === singles.process[rows[at - 1]]);
      const stepped = rows.length <= 120 && STEPS_OF[series.name];
      if (stepped) {
        path.setAttribute("d", rows.map((_, at) => {
          const [x, y] = place(at).split(" ");
          return !follows(at) ? `M${x} ${y}` : stepped === "before" ? `V${y}H${x}` : `H${x}V${y}`;
        }).join(""));
        whole.after(path);
        return;
      }
      path.setAttribute("d", isPoints ? dots : rows.map((_, at) => `${follows(at) ? "L" : "M"}${place(at)}`).join(""));
      whole.after(path);
      if (isPoints || rows.length > 120) return;
      const marks = path.cloneNode();
      marks.classList.remove("line", "dash", "dot", "dashdot", "longdash", "longdashdot");
      marks.classList.add("points");
      marks.setAttribute("d", dots);
      path.after(marks);
    });
  }

  function heights(chart, [begin, end]) {
    if (!range || chart.logY) return chart.y;
    let low = Infinity, high = -Infinity;
    for (const series of chart.series) {
      const last = Math.min(from(series.x, end) + 1, series.x.length);
      for (let at = Math.max(from(series.x, begin) - 1, 0); at < last; at += 1) {
        low = Math.min(low, series.low ? series.low[at] : series.y[at]);
        high = Math.max(high, series.high ? series.high[at] : series.y[at]);
      }
    }
    if (high < low) return chart.y;
    for (const level of chart.levels) if (level <= 1.5 * high) high = Math.max(high, level);
    const room = 0.06 * (high - low) || 0.05 * Math.abs(high) || 1;
    const cut = chart.fromZero === false || (!chart.percent && !chart.filled && high - low >= 0.02 * high); // as in figure.py
    return cut && low >= 0.9 * high && low > 0 ? [low - room, high + room] : [Math.min(low, 0), high * 1.06 || 1];
  }

  // In a range, a caption has the values that its chart shows there.
  function captioned(chart, [begin, end]) {
    const caption = chart.figure.querySelector(".statement");
    chart.statement ??= caption.textContent;
    const parts = (range ? chart.series : []).flatMap((series) => {
      const [first, last] = [from(series.x, begin), from(series.x, end)];
      if (first === last) return [];
      const [low, high] = [Math.min(...(series.low ?? series.y).slice(first, last)), Math.max(...(series.high ?? series.y).slice(first, last))];
      return [`${series.name} ${low === high ? "" : `${shown(low, chart).split("\u00a0")[0]} to `}${shown(high, chart)}`];
    });
    caption.textContent = range ? `In this range: ${parts.join("; ") || "no values"}.` : chart.statement;
  }

  function draw(chart) {
    const [begin, end] = range ?? whole;
    closeUp(chart, [begin, end]);
    const [low, high] = heights(chart, [begin, end]);
    const left = (1000 * (begin - chart.x[0])) / (chart.x[1] - chart.x[0]);
    const width = (1000 * (end - begin)) / (chart.x[1] - chart.x[0]);
    const top = chart.logY ? 0 : (100 * (chart.y[1] - high)) / (chart.y[1] - chart.y[0]);
    const height = chart.logY ? 100 : (100 * (high - low)) / (chart.y[1] - chart.y[0]);
    chart.svg.setAttribute("viewBox", [left, top, width, height].map((each) => Number(each.toFixed(6))).join(" "));
    chart.view = [begin, end];
    captioned(chart, [begin, end]);
    const wide = chart.area.clientWidth;
    const xs = ticksWithin(begin, end, wide);
    chart.figure.querySelector(".xs").replaceChildren(...xs.map(([at, text]) => {
      const tick = made("span", { textContent: text });
      tick.style.left = `${(100 * (at - begin)) / (end - begin)}%`;
      // A label at the edge would make the page of a phone wider than its screen.
      if ((wide * (end - at)) / (end - begin) < 30) tick.className = "end";
      return tick;
    }));
    if (!chart.logY) {
      const ys = linearTicks(low, high, 4);
      chart.figure.querySelector(".ys").replaceChildren(...ys.map((at) => {
        const tick = made("span", { textContent: chart.percent ? `${number(100 * at, 6)} %` : number(at, 6) });
        tick.style.top = `${(100 * (high - at)) / (high - low)}%`;
        return tick;
      }));
      const rows = ys.map((at) => `M-99999 ${(100 * (chart.y[1] - at)) / (chart.y[1] - chart.y[0])}H99999`);
      chart.svg.querySelector(".grid").setAttribute("d", rows.join(""));
    }
    for (const label of all(".tag", chart.area)) {
      const x = label.dataset.left === undefined ? 0 : (100 * (10 * label.dataset.left - left)) / width;
      const y = label.dataset.top === undefined ? 0 : (100 * (label.dataset.top - top)) / height;
      if (label.dataset.left !== undefined) label.style.left = `${x}%`;
      if (label.dataset.top !== undefined) label.style.top = `${y}%`;
      label.hidden = x < -0.1 || x > 100.1 || y < 0 || y > 100;
      if (label.matches(".limit")) label.classList.toggle("below", y < 12);
    }
  }

  function asked(hash = location.hash) {
    const found = /^#t=(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(hash);
    return found && Number(found[1]) < Number(found[2]) ? [Number(found[1]), Number(found[2])] : null;
  }
  let base = asked() ? "" : location.hash;
  function show(wanted, address = true) {
    range = wanted;
    if (range && whole) {
      range = [Math.max(range[0], whole[0]), Math.min(range[1], whole[1])];
      if (range[1] - range[0] <= 0 || (range[0] <= whole[0] && range[1] >= whole[1])) range = null;
    }
    const link = range ? `#t=${range[0].toFixed(3)}-${range[1].toFixed(3)}` : location.pathname + location.search;
    if (address && range && !asked()) { // the first zoom is a step in the history: Back shows the whole run again
      base = location.hash;
      history.pushState({ zoomed: true }, "", link);
    } else if (address && !range && history.state?.zoomed) history.back();
    else if (address) history.replaceState(history.state, "", link);
    root.classList.toggle("ranged", Boolean(range));
    timed.forEach(draw);
    showFigures();
    for (const row of all("[data-begin]")) {
      row.classList.toggle("outside", Boolean(range) && current === first && (Number(row.dataset.end) < range[0] || Number(row.dataset.begin) > range[1]));
    }
    listed?.({ page: 0 });
  }

  // The figures of the chosen range, added up from the cycles or windows that start in it.
  function showFigures() {
    const place = byId("range");
    if (!place || !whole) return;
    const [begin, end] = range ?? whole;
    const step = (end - begin) / 100;
    const where = `${moment(begin, step)} – ${moment(end, step)}${range ? ` (${lasting(end - begin)})` : ""}`;
    if (!current.figures.t) { place.textContent = where; return; } // a comparison has no figures of a range
    const { t, length, cycles, cpu, pause, live, alloc } = current.figures;
    let count = 0, time = 0, spent = 0, taken = 0, made_ = 0, most = -1, heap = -1;
    t.forEach((at, row) => {
      if (at === null || at < begin || at > end) return;
      count += cycles[row] ?? 0;
      if (cpu[row] !== null) { time += length[row] ?? 0; spent += cpu[row] * (length[row] ?? 0); }
      if (alloc[row] !== null) { taken += length[row] ?? 0; made_ += alloc[row] * (length[row] ?? 0); }
      most = Math.max(most, pause[row] ?? -1);
      heap = Math.max(heap, live[row] ?? -1);
    });
    if (!range) heap = current.figures.mostLive ?? heap;
    const parts = [`${range && current.figures.of === "Whole run" ? "" : `${current.figures.of}: `}${where}`, `${count.toLocaleString("en")} cycles`];
    const points = Math.max(...timed.flatMap((chart) => chart.series.map((each) => from(each.x, end) - from(each.x, begin))));
    if (data.records.noun === "cycles" && count > 1.5 * points && points > 0) parts.push(`a point is the mean or the highest of ${number(count / points, 2)} cycles`);
    if (time) parts.push(`GC CPU ${!range && current.figures.gcCpu || percent(spent / time)}`);
    if (most >= 0) parts.push(`longest pause ${number(most, 2)}\u00a0ms`);
    if (heap >= 0) parts.push(`live heap up to ${size(heap)}`);
    if (taken) parts.push(`allocation ${!range && current.figures.allocation || `${number(made_ / taken)}\u00a0MiB/s`}`);
    place.textContent = parts.join(" · ");
  }

  const moves = { // the shown range [a, b] to the next one
    all: () => null,
    in: ([a, b]) => [a + (b - a) / 4, b - (b - a) / 4],
    out: ([a, b]) => [a - (b - a) / 2, b + (b - a) / 2],
    back: ([a, b]) => { const step = Math.min((b - a) / 2, a - whole[0]); return [a - step, b - step]; },
    on: ([a, b]) => { const step = Math.min((b - a) / 2, whole[1] - b); return [a + step, b + step]; },
  };
  for (const button of all("[data-move]")) button.addEventListener("click", () => show(moves[button.dataset.move](range ?? whole)));
  const picker = byId("process");
  function switchTo(process) {
    if (process === current) return;
    show(null);
    choose(process);
    show(null, false);
    picker.selectedIndex = data.processes.indexOf(process);
  }
  picker?.addEventListener("change", () => switchTo(data.processes[picker.selectedIndex]));
  const place = byId("timeline") ?? byId("compared");
  addEventListener("keydown", (event) => { if (event.key === "Escape" && range && !event.defaultPrevented && event.target.tagName !== "INPUT") show(null); });
  addEventListener("popstate", () => { if (asked() || location.hash === base) show(asked(), false); });
  addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#t="]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (!table?.contains(link)) switchTo(first); // findings are of the process that is shown first
    show(asked(link.hash));
    place?.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  });

  // One crosshair for all time charts; its values are in the tooltip and in every legend.
  const valueAt = (chart, share) => {
    if (chart.timed) return chart.view[0] + share * (chart.view[1] - chart.view[0]);
    return chart.logX ? chart.x[0] * (chart.x[1] / chart.x[0]) ** share : chart.x[0] + share * (chart.x[1] - chart.x[0]);
  };
  function hide() {
    for (const chart of charts) {
      chart.cross.hidden = true;
      chart.tip.hidden = true;
      all(".now", chart.figure).forEach((each) => { each.textContent = ""; });
    }
  }
  function point(chosen, share) {
    hide();
    for (const chart of chosen.timed ? timed : [chosen]) {
      const x = valueAt(chart, share);
      const room = (chart.timed ? chart.view[1] - chart.view[0] : Infinity) / 20;
      const found = chart.series.map((series) => [series, nearest(series, x)]).filter(([series, at]) => at >= 0 && (series.step && x >= series.x[0] && x <= (series.until?.[at] ?? series.x[series.x.length - 1]) || Math.abs(series.x[at] - x) <= room));
      chart.cross.hidden = false;
      // Without a time axis, the tooltip is about the nearest place that has values.
      const width = chart.timed || chart.logX || !found.length ? 0 : chart.x[1] - chart.x[0];
      const near = width ? found.map(([series, at]) => series.x[at]).reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a)) : x;
      if (width) found.splice(0, Infinity, ...found.filter(([series, at]) => Math.abs(series.x[at] - near) <= width / 100));
      chart.cross.style.left = `${100 * (width ? (near - chart.x[0]) / width : share)}%`;
      if (chart.timed) for (const [series, at] of found) all(".now", chart.figure)[chart.series.indexOf(series)].textContent = shown(series.y[at], chart);
      if (chart !== chosen || !found.length) continue;
      // One cycle is named once, above its values.
      const places = new Set(found.map(([series, at]) => series.where?.[at]));
      const alone = places.size === 1 ? [...places][0] : null;
      const head = chart.timed ? moment(x, (chart.view[1] - chart.view[0]) / 500) : `${number(found[0][0].x[found[0][1]], 4)} ${chart.xUnit}`;
      chart.tip.replaceChildren(made("b", { textContent: head }), alone ? ` · ${alone}` : "", ...found.map(([series, at]) => made("div", {
        textContent: `${series.name}: ${shown(series.y[at], chart)}${series.high && series.high[at] > series.low[at] ? ` (${shown(series.low[at], chart)} to ${shown(series.high[at], chart)})` : ""}${series.where && !alone ? ` · ${series.where[at]}` : ""}`,
      })));
      chart.tip.hidden = false;
      chart.tip.classList.toggle("flip", share > 0.5);
      chart.tip.style.left = share > 0.5 ? "auto" : `${100 * share}%`;
      chart.tip.style.right = share > 0.5 ? `${100 - 100 * share}%` : "auto";
    }
  }
  for (const chart of charts) {
    let begun = null;
    const brush = chart.figure.querySelector(".brush");
    const at = (event) => {
      const box = chart.area.getBoundingClientRect();
      return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    };
    chart.area.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch") point(chart, at(event));
      if (begun === null) return;
      const ends = [begun, at(event)].sort((a, b) => a - b);
      brush.hidden = false;
      brush.style.left = `${100 * ends[0]}%`;
      brush.style.width = `${100 * (ends[1] - ends[0])}%`;
    });
    chart.area.addEventListener("pointerleave", () => { if (begun === null) hide(); });
    chart.area.addEventListener("click", (event) => { if (event.pointerType === "touch") point(chart, at(event)); });
    if (!chart.timed) continue;
    chart.area.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return; // up and down, a finger scrolls: then the browser cancels this
      begun = at(event);
      chart.area.setPointerCapture(event.pointerId);
    });
    chart.area.addEventListener("pointerup", (event) => {
      if (begun === null) return;
      const ends = [begun, at(event)].sort((a, b) => a - b).map((share) => valueAt(chart, share));
      const far = Math.abs(at(event) - begun) * chart.area.clientWidth > 6;
      begun = null;
      brush.hidden = true;
      if (far) { hide(); show(ends); }
    });
    chart.area.addEventListener("pointercancel", () => { begun = null; brush.hidden = true; });
    chart.area.addEventListener("dblclick", () => show(null));
  }

  // The table of cycles: search, sort and pages.
  const table = byId("records");
  if (table && data.records.columns.length) {
    const { columns, length, off, files, file, total, noun } = data.records;
    // Before Go 1.5 a cycle has no time.
    const times = columns.find((each) => each.kind === "time")?.values ?? columns[0].values.map(() => null);
    const owner = columns.find((each) => each.head === "process")?.values;
    const isOff = (row) => (data.processes.length < 2 ? off[row] : owner ? owner[row] !== current.number : current !== first);
    const short = (name) => (name.length <= 18 ? name : `${name.slice(0, 8)}…${name.slice(-9)}`); // as in tables.py
    const state = { page: 0, rows: PAGE, query: "", sort: data.records.sort, down: true };
    // Three digits in every row, as in tables.py.
    const fixed = (value) => {
      const decimals = value ? Math.min(3, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))) : 0;
      return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    };
    const cells = {
      cycle: (value) => `gc ${value}`, int: (value) => value.toLocaleString("en"), number: fixed,
      share: (value) => (value > 0 && value < 0.0005 ? "< 0.1 %" : `${value ? (100 * value).toFixed(1) : 0} %`), flag: (value) => (value ? "yes" : ""), line: (value, row) => (files.length > 1 ? `${short(files[file[row]])}:${value}` : value.toLocaleString("en")),
      time: (value) => moment(value - shift, 0.001, true),
    };
    // A line is also found by the name of its file.
    const searched = (each, row) => (each.kind === "line" ? `${files[file.length ? file[row] : 0]}:${each.values[row]}` : word(each, row));
    const found = columns.filter((each) => ["cycle", "time", "line", "flag"].includes(each.kind));
    const word = ({ kind, values }, row) => (values[row] === null ? "" : kind === "flag" ? (values[row] ? "forced" : "") : cells[kind](values[row], row));
    let words = null; // made for the first search: 50,000 rows take a moment
    const body = table.querySelector("tbody");
    const heads = all("thead th", table);
    listed = (change = {}) => {
      Object.assign(state, change);
      const { values } = columns[state.sort];
      const wanted = state.query.toLowerCase();
      if (wanted) words ??= times.map((_, row) => found.map((each) => searched(each, row)).join(" ").toLowerCase());
      const rows = [];
      times.forEach((at, row) => {
        if (range && (at === null || isOff(row) || at - shift < range[0] || at - shift > range[1])) return;
        if (wanted && !words[row].includes(wanted)) return;
        rows.push(row);
      });
      const sign = state.down ? -1 : 1;
      rows.sort((one, other) => {
        if (values[one] === null || values[other] === null) return (values[one] === null) - (values[other] === null);
        return sign * (values[one] - values[other]) || one - other;
      });
      const pages = Math.max(1, Math.ceil(rows.length / state.rows));
      state.page = Math.min(Math.max(state.page, 0), pages - 1);
      body.replaceChildren(...rows.slice(state.page * state.rows, (state.page + 1) * state.rows).map((row) => {
        const line = made("tr");
        line.append(...columns.map((each, index) => {
          const value = each.values[row];
          const text = value === null ? "–" : cells[each.kind](value, row);
          const cell = made(index ? "td" : "th", { className: each.kind === "line" ? (files.length > 1 ? "l file" : "l") : each.kind === "cycle" ? "l" : "r" });
          if (index) cell.dataset.label = each.head;
          else cell.scope = "row";
          if (each.kind === "time" && value !== null && !isOff(row)) {
            const room = 10 * (length[row] || 0.1);
            cell.append(made("a", { href: `#t=${Math.max(value - shift - room, 0).toFixed(3)}-${(value - shift + (length[row] ?? 0) + room).toFixed(3)}`, textContent: text }));
          } else cell.textContent = text;
          return cell;
        }));
        return line;
      }));
      heads.forEach((head, index) => {
        if (index === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      const some = `${rows.length.toLocaleString("en")} of ${total.toLocaleString("en")} ${noun}`;
      byId("found").textContent = `${some}${range ? " in the chosen range" : ""}${pages > 1 ? `; page ${state.page + 1} of ${pages}` : ""}`;
      byId("previous").hidden = byId("next").hidden = pages === 1;
      byId("previous").disabled = state.page === 0;
      byId("next").disabled = state.page === pages - 1;
    };
    heads.forEach((head, index) => {
      const button = made("button", { type: "button", textContent: head.textContent });
      button.addEventListener("click", () => listed({ down: state.sort === index ? !state.down : true, sort: index, page: 0 }));
      head.replaceChildren(button);
    });
    byId("search").addEventListener("input", (event) => listed({ query: event.target.value.trim(), page: 0 }));
    byId("previous").addEventListener("click", () => listed({ page: state.page - 1 }));
    byId("next").addEventListener("click", () => listed({ page: state.page + 1 }));
  }

  root.classList.add("live");
  if (timed.length) {
    show(asked(), false);
    let width = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; timed.forEach(draw); } });
  } else listed?.();
})();
