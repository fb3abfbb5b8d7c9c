// A reasoning tree as SVG: where its nodes stand, what they were worth at a round, and the picture. Text is only ever put in as text.
"use strict";
site.trees = (() => {
  const { data } = site;
  const ROW = 27, LEFT = 16, RIGHT = 30, COLUMN = 30, LABELLED = 60, CHARACTER = 6.4, SHADES = 7;
  const place = Object.fromEntries((data?.state ?? []).map((name, at) => [name, at]));

  function svg(tag, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const number = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−"));
  const said = (text) => text.trim() || (text ? "blank" : "no text");
  const short = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);

  // Children of each node, as they stand when the first `round` rounds after the initial one are over.
  function children(tree, round) {
    const below = tree.nodes.map(() => []);
    tree.nodes.forEach((node, at) => { if (at && node.round <= round) below[parent(tree, at, round)].push(at); });
    return below;
  }

  // The nearest ancestor that was there: a step is split where a later round forks inside it.
  function parent(tree, at, round) {
    let above = tree.nodes[at].parent;
    while (above > 0 && tree.nodes[above].round > round) above = tree.nodes[above].parent;
    return above;
  }

  // The text since that ancestor: of a step that was not split yet, the whole.
  function text(tree, at, round) {
    let whole = tree.nodes[at].text;
    for (let above = tree.nodes[at].parent; above > 0 && tree.nodes[above].round > round; above = tree.nodes[above].parent) whole = tree.nodes[above].text + whole;
    return whole;
  }

  function path(tree, at, round) {
    const found = [];
    for (let node = at; node > 0; node = parent(tree, node, round)) found.unshift(node);
    return found;
  }

  // What a node was worth after a round: as the sampler saw it when it chose the next one, or in the end.
  function state(tree, at, round) {
    const node = tree.nodes[at];
    if (node.round > round) return null;
    if (round >= tree.rounds - 1) return { count: node.count, density: node.density, ratio: node.ratio, ib_score: node.ib_score };
    return read(node.history.find((one) => one[place.round] === round + 1));
  }

  const read = (values) => values && Object.fromEntries(data.state.map((name, at) => [name, values[at]]));

  // Before a round: the nodes that could be picked, the best IB-Score first, and those that were.
  function ranking(tree, round) {
    const all = tree.nodes.map((node, at) => ({ at, ...read(node.history.find((one) => one[place.round] === round)) }));
    return { candidates: all.filter(({ rank }) => rank).sort((one, other) => one.rank - other.rank), picked: all.filter(({ asked }) => asked) };
  }

  // What the scale spans: densities 0 to 1; IB-Scores of these trees, whatever the round, but the lowest and the highest twentieth.
  function range(trees, colour) {
    if (colour === "density") return [0, 1];
    const scores = trees.flatMap(({ nodes }) => nodes.flatMap((node) => [node.ib_score, ...node.history.map((one) => one[place.ib_score])])).filter((score) => score !== null).sort((one, other) => one - other);
    return scores.length ? [0.05, 0.95].map((share) => scores[Math.round(share * (scores.length - 1))]) : [0, 1];
  }

  function shade(value, [low, high]) {
    if (value === null || value === undefined) return "var(--seq-none)";
    return `var(--seq-${Math.min(SHADES - 1, Math.floor(share(value, [low, high]) * SHADES))})`;
  }

  // Where a value lies in a range, from 0 to 1.
  const share = (value, [low, high]) => (high > low ? Math.max(0, Math.min(1, (value - low) / (high - low))) : 0.5);

  // Columns by depth, rows by the order of the leaves; the places of the grown tree, so that nothing moves while it grows.
  function places(tree, width) {
    const below = children(tree, Infinity);
    const rows = [], deepest = Math.max(...tree.nodes.map(({ depth }) => depth));
    let next = 0;
    const visit = (at) => {
      below[at].forEach(visit);
      rows[at] = below[at].length ? (rows[below[at][0]] + rows[below[at].at(-1)]) / 2 : next++;
    };
    visit(0);
    const column = Math.max(COLUMN, (width - LEFT - RIGHT) / Math.max(1, deepest));
    const x = tree.nodes.map(({ depth }) => LEFT + depth * column);
    return { x, y: rows.map((row) => ROW * (row + 0.75)), column, width: LEFT + RIGHT + deepest * column, height: ROW * (next + 0.5) };
  }

  const radius = (count) => 3.2 + 2.3 * Math.sqrt(count);

  function mark(tree, at) {
    const ends = tree.trajectories.filter(({ leaf }) => leaf === at);
    if (ends.every(({ reward }) => reward === null)) return { sign: "?", word: "not scored", kind: "unsure", ends };
    const right = Math.max(...ends.map(({ reward }) => reward ?? 0));
    if (right >= 1) return { sign: "✓", word: "right", kind: "good", ends };
    return right > 0 ? { sign: "~", word: "partly right", kind: "unsure", ends } : { sign: "✕", word: "wrong", kind: "bad", ends };
  }

  // Draws a tree into an <svg role="tree">. view: round, colour ("ib_score" or "density"), range, chosen (a node or null).
  function draw(canvas, tree, view) {
    const { round, colour, chosen } = view, at = places(tree, canvas.parentElement.clientWidth);
    const picked = new Set(round ? ranking(tree, round).picked.map((one) => one.at) : [0]);
    const fresh = new Set(tree.trajectories.filter((one) => one.round === round).flatMap(({ leaf, branch }) => {
      const nodes = path(tree, leaf, round);
      return branch ? nodes.slice(nodes.indexOf(branch) + 1) : nodes;
    }));
    const edges = svg("g", { class: "edges" }), labels = svg("g", { class: "labels", "aria-hidden": "true" }), nodes = [];
    tree.nodes.forEach((node, index) => {
      const now = state(tree, index, round);
      if (!now) return;
      const step = text(tree, index, round), x = at.x[index], y = at.y[index], size = radius(now.count);
      if (index) {
        const above = parent(tree, index, round), from = at.x[above], half = (from + x) / 2;
        const wide = 0.8 + 0.5 * now.count;
        edges.append(svg("path", { class: fresh.has(index) ? "edge fresh" : "edge", d: `M${from} ${at.y[above]}C${half} ${at.y[above]} ${half} ${y} ${x} ${y}`, "stroke-width": wide }));
        if (at.column >= LABELLED) {
          const room = Math.floor((at.column - size - 12) / CHARACTER);
          labels.append(svg("text", { x: x - size - 6, y: y - 3 - wide / 2, "text-anchor": "end" }, short(said(step), room)));
        }
      }
      nodes.push(item(tree, index, { now, step, x, y, size, picked: picked.has(index), fresh: fresh.has(index), fill: shade(now[colour], view.range), chosen: chosen === index, level: path(tree, index, round).length + 1 }));
    });
    const focus = nodes.find((one) => Number(one.dataset.node) === chosen) ?? nodes[0];
    focus.setAttribute("tabindex", "0");
    const held = canvas.contains(document.activeElement);
    canvas.setAttribute("viewBox", `0 0 ${at.width} ${at.height}`);
    canvas.setAttribute("width", at.width);
    canvas.setAttribute("height", at.height);
    canvas.replaceChildren(edges, labels, ...nodes);
    if (held) focus.focus();
  }

  function item(tree, index, look) {
    const { terminal } = tree.nodes[index], { now, x, y, size } = look;
    const end = terminal ? mark(tree, index) : null;
    const cut = end && !end.ends.some(({ finished }) => finished);
    const words = [
      index ? `Node ${index}, ${said(look.step)}` : "The problem", end && (cut ? `${end.word}, cut off` : end.word), `${now.count} trajectories`,
      `density ${number(now.density)}`, now.ib_score !== null && `IB-Score ${number(now.ib_score)}`, look.picked && "picked in this round",
    ];
    const classes = ["node", terminal && "leaf", cut && "cut-off", look.picked && "picked", look.fresh && "fresh", look.chosen && "chosen"];
    const group = svg("g", {
      class: classes.filter(Boolean).join(" "), role: "treeitem", tabindex: "-1", transform: `translate(${x} ${y})`, "data-node": index,
      "aria-level": look.level, "aria-selected": String(look.chosen), "aria-label": words.filter(Boolean).join(", "),
    });
    group.append(svg("circle", { class: "target", r: ROW / 2 }));
    if (look.picked) group.append(svg("circle", { class: "ring", r: size + 4 }));
    const shape = { class: "body", style: `fill: ${look.fill}` };
    group.append(terminal ? svg("rect", { ...shape, x: -size, y: -size, width: 2 * size, height: 2 * size, rx: 2.5 }) : svg("circle", { ...shape, r: size }));
    if (end) group.append(svg("text", { class: `mark ${end.kind}`, x: size + 3, y: 4 }, end.sign));
    return group;
  }

  return { children, draw, mark, number, parent, path, range, ranking, said, share, short, state, text, SHADES };
})();
