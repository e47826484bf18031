"use strict";
(() => {
  const { zero, charts } = JSON.parse(document.getElementById("data").textContent);
  const origin = zero === null ? 0 : Date.parse(zero) / 1000;
  const timed = Object.keys(charts).filter((id) => charts[id].timed);
  const root = document.documentElement;
  const whole = timed.length ? [...charts[timed[0]].layout.xaxis.range] : null;
  let moving = false;

  const ink = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const theme = () => ({
    "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
    "font.color": ink("--ink"), "hoverlabel.bgcolor": ink("--raised"),
    "hoverlabel.font.color": ink("--ink"), "hoverlabel.bordercolor": ink("--line"),
    "modebar.color": ink("--dim"), "modebar.activecolor": ink("--ink"),
  });
  const toAxis = (s) => (zero === null ? s : new Date((origin + s) * 1000).toISOString().replace("T", " ").replace("Z", ""));
  const toSeconds = (x) => (zero === null ? Number(x) : Date.parse(String(x).replace(" ", "T") + "Z") / 1000 - origin);

  // Named one by one: none of them sends the chart anywhere.
  const BUTTONS = ["toImage", "zoom2d", "pan2d", "resetScale2d"];

  // Blue as printed is too dark on a dark ground.
  const BLUE = { light: "#0072B2", dark: "#4aa3df" };
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  function tint(data) {
    const [from, to] = isDark() ? [BLUE.light, BLUE.dark] : [BLUE.dark, BLUE.light];
    for (const trace of data) {
      if (trace.line && trace.line.color === from) trace.line.color = to;
      if (trace.marker && trace.marker.color === from) trace.marker.color = to;
    }
  }

  function draw(id) {
    const { data, layout } = charts[id];
    tint(data);
    const style = theme();
    layout.paper_bgcolor = style.paper_bgcolor;
    layout.plot_bgcolor = style.plot_bgcolor;
    layout.font = { color: style["font.color"], size: 12 };
    layout.hoverlabel = { bgcolor: ink("--raised"), bordercolor: ink("--line"), font: { color: ink("--ink") } };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: ink("--dim"), activecolor: ink("--ink") };
    layout.dragmode = charts[id].timed ? "zoom" : false;
    for (const name of Object.keys(layout)) if (name.startsWith("yaxis")) layout[name].fixedrange = charts[id].timed;
    const range = charts[id].timed && asked();
    if (range) layout.xaxis.range = range.map(toAxis);
    return Plotly.newPlot(id, data, layout, { responsive: true, displaylogo: false, modeBarButtons: [BUTTONS] });
  }

  function asked() {
    const found = /^#t=(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(location.hash);
    return found && Number(found[1]) < Number(found[2]) ? [Number(found[1]), Number(found[2])] : null;
  }

  async function show(range) {
    moving = true;
    const wanted = range ? range.map(toAxis) : whole;
    const here = timed.filter((id) => drawn.has(id));
    await Promise.all(here.map((id) => Plotly.relayout(id, { "xaxis.range": [...wanted] })));
    moving = false;
  }

  function remember(range) {
    const address = range ? `#t=${Math.max(range[0], 0).toFixed(3)}-${Math.max(range[1], 0).toFixed(3)}` : location.pathname + location.search;
    history.replaceState(null, "", address);
  }

  function shown() {
    const element = document.getElementById(timed[0]);
    return element.layout.xaxis.range.map(toSeconds);
  }

  const moves = { // the shown range [a, b] to the next one
    all: () => null,
    in: ([a, b]) => [a + (b - a) / 4, b - (b - a) / 4],
    out: ([a, b]) => [Math.max(a - (b - a) / 2, 0), b + (b - a) / 2],
    back: ([a, b]) => { const step = Math.min((b - a) / 2, a); return [a - step, b - step]; },
    on: ([a, b]) => [a + (b - a) / 2, b + (b - a) / 2],
  };

  for (const button of document.querySelectorAll("[data-move]")) {
    button.addEventListener("click", () => {
      const range = moves[button.dataset.move](shown());
      remember(range);
      show(range);
    });
  }

  window.addEventListener("hashchange", () => {
    const range = asked();
    if (!range) return;
    show(range);
    document.getElementById("timeline").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  });

  const drawn = new Set();
  async function first(id) {
    if (drawn.has(id)) return;
    drawn.add(id);
    await draw(id);
    if (!charts[id].timed) return;
    document.getElementById(id).on("plotly_relayout", (event) => {
      if (moving) return;
      if (event["xaxis.autorange"]) { remember(null); show(null); return; }
      if (event["xaxis.range[0]"] === undefined) return;
      const range = [toSeconds(event["xaxis.range[0]"]), toSeconds(event["xaxis.range[1]"])];
      remember(range);
      show(range);
    });
  }

  const repaint = () => {
    for (const id of drawn) {
      const element = document.getElementById(id);
      tint(element.data);
      Plotly.update(id, {}, theme());
    }
  };
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  const everything = () => Promise.all(Object.keys(charts).map(first));
  window.addEventListener("beforeprint", () => {
    everything();
    for (const id of drawn) Plotly.relayout(id, { "font.color": "#000" });
  });
  window.addEventListener("afterprint", repaint);

  // The timeline at once, the rest as it comes into view: a long report opens quickly.
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); first(entry.target.id); }
  }, { rootMargin: "600px" });
  // Its first chart before all else; the others as soon as the page has shown itself.
  if (timed.length) first(timed[0]);
  const rest = timed.slice(1);
  const next = () => { const id = rest.shift(); if (id) first(id).then(() => setTimeout(next)); };
  window.addEventListener("load", () => setTimeout(next));
  for (const id of Object.keys(charts)) if (!charts[id].timed) watcher.observe(document.getElementById(id));
})();
