// Curves of any run against any other: four panels with a metric each, one list of runs for all of them.
"use strict";
(() => {
  const { charts, element, data } = site;
  const START = ["validation/accuracy", "train/eff_rate", "train/entropy", "train/reward"];
  const AXES = { step: "training step", tokens: "tokens generated", seconds: "seconds" };
  const metrics = new Map(data.metrics.map((metric) => [metric.id, metric]));
  const place = new Map(data.methods.map(({ id, series }) => [id, series]));
  const chosen = new Set(data.methods.filter(({ id }, number) => number < 1 || id === "ibtpo").flatMap(({ id, seeds }) => seeds.map((seed) => `${id}-seed${seed}`)));
  const setting = (id) => document.getElementById(id).value;
  const plots = [];

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  function smooth(values, window) {
    return values.map((_, at) => mean(values.slice(Math.max(0, at - window + 1), at + 1)));
  }

  // Where a run stood at a step, in the chosen unit; before the first step it had spent nothing.
  function spent(run, steps) {
    const axis = data.axes[run];
    const at = new Map(axis.step.map((step, number) => [step, axis[setting("axis")][number]]));
    return steps.map((step) => at.get(step) ?? 0);
  }

  function curve(run, metric) {
    const [steps, values] = data.curves[run][metric] ?? [[], []];
    const scale = metrics.get(metric).scale ?? 1;
    const window = metric.startsWith("validation/") ? 1 : Number(setting("smooth"));
    return { steps, x: spent(run, steps), y: smooth(values, window).map((value) => scale * value) };
  }

  // Mean over the seeds at each step that all of them have, at their mean place on the axis.
  function together(curves) {
    const steps = curves[0].steps.filter((step) => curves.every((one) => one.steps.includes(step)));
    const at = (name) => steps.map((step) => curves.map((one) => one[name][one.steps.indexOf(step)]));
    const y = at("y");
    return { x: at("x").map(mean), y: y.map(mean), low: y.map((all) => Math.min(...all)), high: y.map((all) => Math.max(...all)) };
  }

  function traces(metric) {
    const made = [];
    for (const { id, title, seeds } of data.methods) {
      const runs = seeds.filter((seed) => chosen.has(`${id}-seed${seed}`));
      const curves = runs.map((seed) => curve(`${id}-seed${seed}`, metric)).filter(({ x }) => x.length);
      if (!curves.length) continue;
      const colour = charts.colour(place.get(id));
      const line = { color: colour, width: 2, dash: charts.dash(place.get(id)) };
      const look = { type: "scatter", mode: curves[0].x.length < 8 ? "lines+markers" : "lines", marker: { size: 5, color: colour }, line, hovertemplate: "%{y:.4g}" };
      if (setting("lines") === "seeds" || curves.length === 1) {
        curves.forEach(({ x, y }, number) => made.push({ ...look, x, y, name: charts.text(`${title}, seed ${runs[number]}`), line: { ...line, width: 1.4 } }));
      } else {
        const { x, y, low, high } = together(curves);
        made.push({ x: [...x, ...[...x].reverse()], y: [...high, ...low.reverse()], type: "scatter", mode: "none", fill: "toself", fillcolor: charts.faint(place.get(id), 0.14), hoverinfo: "skip" });
        made.push({ ...look, x, y, name: charts.text(title) });
      }
    }
    return made;
  }

  const redraw = () => plots.forEach(charts.redraw);

  function panel(metric) {
    const select = element("select", { "aria-label": "Metric" });
    for (const group of new Set(data.metrics.map((one) => one.group ?? "Other"))) {
      const options = data.metrics.filter((one) => (one.group ?? "Other") === group).map(({ id, title }) => element("option", { value: id }, title));
      select.append(element("optgroup", { label: group }, ...options));
    }
    select.value = metric;
    const plot = element("div", { class: "plot" });
    charts.add(plot, () => ({
      traces: traces(select.value),
      layout: { height: 260, margin: { l: 44, r: 10, t: 8, b: 40 }, xaxis: { title: AXES[setting("axis")], nticks: 6 }, yaxis: { nticks: 5 } },
    }));
    select.addEventListener("change", () => charts.redraw(plot));
    plots.push(plot);
    return element("div", { class: "panel card" }, select, plot);
  }

  function chooser() {
    const rows = data.methods.map(({ id, title, seeds }) => {
      const runs = seeds.map((seed) => `${id}-seed${seed}`);
      const box = element("input", { type: "checkbox" });
      const buttons = runs.map((run, number) => {
        const button = element("button", { type: "button", class: "seed", title: run }, String(seeds[number]));
        button.addEventListener("click", () => { if (!chosen.delete(run)) chosen.add(run); show(); redraw(); });
        return button;
      });
      const show = () => {
        const on = runs.filter((run) => chosen.has(run)).length;
        box.checked = on > 0;
        box.indeterminate = on > 0 && on < runs.length;
        buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(chosen.has(runs[number]))));
      };
      box.addEventListener("change", () => { runs.forEach((run) => (box.checked ? chosen.add(run) : chosen.delete(run))); show(); redraw(); });
      show();
      const row = element("div", { class: "choice" }, element("label", {}, box, ...charts.key(place.get(id), title)), element("span", { class: "seeds" }, ...buttons));
      return { row, show, runs };
    });
    document.getElementById("chooser").append(...rows.map(({ row }) => row));
    const choose = (act) => () => { rows.forEach(({ runs }) => runs.forEach((run) => chosen[act](run))); rows.forEach(({ show }) => show()); redraw(); };
    document.getElementById("all").addEventListener("click", choose("add"));
    document.getElementById("none").addEventListener("click", choose("delete"));
  }

  if (data.methods.length) {
    chooser();
    const first = [...START.filter((id) => metrics.has(id)), ...metrics.keys()].slice(0, 4);
    document.getElementById("panels").append(...[...new Set(first)].map(panel));
    document.getElementById("controls").addEventListener("change", redraw);
  }
})();
