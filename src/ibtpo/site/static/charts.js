// Charts by plotly in the colours of the page; they follow the theme, and are drawn when they come into view.
"use strict";
site.charts = (() => {
  const drawn = new Map(); // element -> function that gives { traces, layout }
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "5px,1px,1px,1px", "8px,2px", "2px,2px"];
  const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false };

  const colour = (series) => site.colour(series === null ? "--ink-faint" : series < 0 ? "--series-base" : `--series-${series % 9}`);
  const dash = (series) => (series === null || series < 0 ? "dot" : DASHES[series % DASHES.length]);
  // plotly reads labels as a kind of HTML
  const text = (label) => String(label).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function layout(extra) {
    const axis = {
      gridcolor: site.colour("--line"), linecolor: site.colour("--line-strong"), zeroline: false, showline: true, ticks: "outside", ticklen: 4,
      tickcolor: site.colour("--line-strong"), automargin: true, tickfont: { size: 11, color: site.colour("--ink-soft") },
    };
    return {
      font: { family: site.token("--sans"), size: 12, color: site.colour("--ink") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "x unified",
      margin: { l: 44, r: 10, t: 30, b: 36 }, height: 250, dragmode: "zoom",
      hoverlabel: { bgcolor: site.colour("--surface"), bordercolor: site.colour("--line-strong"), font: { size: 11, color: site.colour("--ink") } },
      ...extra,
      title: { text: text(extra.title ?? ""), x: 0, xref: "paper", xanchor: "left", y: 0.98, yanchor: "top", font: { size: 13 } },
      xaxis: { ...axis, ...extra.xaxis, title: { text: text(extra.xaxis?.title ?? ""), font: { size: 11, color: site.colour("--ink-soft") }, standoff: 6 } },
      yaxis: { ...axis, ...extra.yaxis },
    };
  }

  function redraw(element) {
    const { traces, layout: extra } = drawn.get(element)();
    Plotly.react(element, traces, layout(extra), CONFIG);
  }

  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) { seen.unobserve(target); target.dataset.drawn = "yes"; redraw(target); }
    }
  }, { rootMargin: "300px" });

  const waiting = () => [...drawn.keys()].filter((element) => !element.dataset.drawn);
  site.onTheme(() => [...drawn.keys()].filter((element) => element.dataset.drawn).forEach(redraw));
  addEventListener("beforeprint", () => waiting().forEach((element) => { seen.unobserve(element); element.dataset.drawn = "yes"; redraw(element); }));

  return {
    colour, dash, text,
    // `make` is called for every drawing, so that colours are those of the theme.
    add(element, make) { drawn.set(element, make); seen.observe(element); },
    redraw: (element) => { if (element.dataset.drawn) redraw(element); },
    // plotly knows rgb() and rgba(), no newer ways to say a colour
    faint: (series, share) => colour(series).replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`),
    // The legend entry of a series: a piece of its line and its name.
    key(series, title) {
      const ns = "http://www.w3.org/2000/svg";
      const swatch = document.createElementNS(ns, "svg");
      swatch.setAttribute("viewBox", "0 0 26 8");
      swatch.setAttribute("class", "swatch");
      swatch.setAttribute("aria-hidden", "true");
      const line = document.createElementNS(ns, "path");
      line.setAttribute("d", "M1 4h24");
      line.setAttribute("class", series < 0 ? "series-base" : `series-${series % 9}`);
      const pattern = { solid: "", dash: "7 3", dot: "2 2", dashdot: "7 2 2 2", longdash: "10 3", longdashdot: "10 2 2 2" }[dash(series)];
      line.setAttribute("stroke-dasharray", pattern ?? dash(series).replaceAll("px", "").replaceAll(",", " "));
      swatch.append(line);
      return [swatch, title];
    },
  };
})();
