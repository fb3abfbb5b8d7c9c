// Each figure: a legend whose names hide and show lines, and one chart a panel.
"use strict";
(() => {
  const { charts, element } = site;

  function traces(panel, legend, hidden) {
    const title = new Map(legend.map(({ series, title: name }) => [series, name]));
    const rows = new Map(Object.entries(panel.rows).map(([name, place]) => [place, name]));
    const made = [];
    for (const band of panel.bands) {
      if (hidden.has(band.series)) continue;
      made.push({
        x: [...band.x, ...[...band.x].reverse()], y: [...band.high, ...[...band.low].reverse()], fill: "toself", mode: "none", type: "scatter",
        fillcolor: charts.faint(band.series, legend.length < 5 ? 0.18 : 0.09), hoverinfo: "skip",
      });
    }
    for (const line of panel.lines) {
      if (hidden.has(line.series)) continue;
      const rule = line.series === null;
      made.push({
        x: line.x, y: line.y, type: "scatter", mode: line.marker ? "markers" : "lines",
        name: charts.text(title.get(line.series) ?? rows.get(line.y[0]) ?? ""), hoverinfo: rule ? "skip" : undefined,
        hovertemplate: rule ? undefined : panel.rowed ? "%{x:.4g}" : "%{y:.4g}",
        marker: { color: charts.colour(line.series), size: line.marker },
        line: { color: charts.colour(line.series), dash: panel.rowed ? "solid" : charts.dash(line.series), width: rule ? 1 : 2 },
      });
    }
    return made;
  }

  // A rule from edge to edge is drawn as a shape: its ends are no data.
  function shapes(panel) {
    return panel.lines.filter(({ series }) => series === null).map(({ x, y }) => {
      const across = y[0] === y[1];
      return {
        type: "line", layer: "below", line: { color: site.colour("--ink-faint"), width: 1, dash: "dot" },
        xref: across ? "paper" : "x", yref: across ? "y" : "paper",
        x0: across ? 0 : x[0], x1: across ? 1 : x[0], y0: across ? y[0] : 0, y1: across ? y[0] : 1,
      };
    });
  }

  function layout(panel) {
    const places = Object.entries(panel.rows);
    const rows = places.length
      ? { tickvals: places.map(([, at]) => at), ticktext: places.map(([name]) => charts.text(name)), autorange: "reversed", ticks: "", showgrid: false }
      : { nticks: 5, ...(panel.log_y ? { type: "log" } : {}) };
    const xs = panel.lines.flatMap(({ x }) => x);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const margin = 0.05 * (right - left);
    const scale = places.length ? { nticks: 6, range: [left - margin, right + margin] } : panel.log ? { type: "log", dtick: Math.log10(2), minor: { ticks: "" } } : { nticks: 6 };
    return {
      title: panel.title, shapes: shapes(panel), hovermode: places.length ? "closest" : "x unified",
      height: places.length ? 60 + 26 * places.length : 250, xaxis: { ...scale, title: panel.x }, yaxis: rows,
    };
  }

  for (const place of document.querySelectorAll(".chart[data-figure]")) {
    const { panels, legend } = site.data[place.dataset.figure];
    const hidden = new Set();
    const elements = panels.map((panel) => {
      const made = element("div", { class: "plot" });
      const rowed = Object.keys(panel.rows).length > 0;
      const lines = panel.lines.filter(({ series }) => series !== null);
      charts.add(made, () => ({ traces: traces({ ...panel, rowed, lines }, legend, hidden), layout: layout(panel) }));
      return made;
    });
    const keys = legend.map(({ series, title }) => {
      const button = element("button", { type: "button", class: "key", "aria-pressed": "true" }, ...charts.key(series, title));
      button.addEventListener("click", () => {
        if (!hidden.delete(series)) hidden.add(series);
        button.setAttribute("aria-pressed", String(!hidden.has(series)));
        elements.forEach(charts.redraw);
      });
      return button;
    });
    if (keys.length) place.append(element("div", { class: "keys", role: "group", "aria-label": "Lines" }, ...keys));
    place.append(element("div", { class: "plots" }, ...elements));
  }
})();
