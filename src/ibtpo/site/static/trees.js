// The tree viewer: one or two trees of one problem, replayed round by round.
"use strict";
(() => {
  const { data, element, trees } = site;
  const { number } = trees;
  const get = (id) => document.getElementById(id);
  const forests = new Map(data.forests.map((forest) => [forest.name, forest]));
  if (!forests.size) return;

  const view = { problem: null, left: null, right: null, round: 0, colour: "ib_score", chosen: { left: null, right: null } };
  const sides = () => (view.right ? ["left", "right"] : ["left"]);
  const tree = (side) => forests.get(view[side]).trees[view.problem];
  const last = () => Math.max(...sides().map((side) => tree(side).rounds - 1));
  const round = (side) => Math.min(view.round, tree(side).rounds - 1);

  // ---- what is shown, kept in the address so that it can be linked to

  function start() {
    const asked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const first = data.forests.find(({ strategy }) => strategy === "ibtree") ?? data.forests[0];
    view.left = forests.has(asked.left) ? asked.left : first.name;
    const others = data.forests.filter(({ name, policy }) => name !== view.left && policy === forests.get(view.left).policy);
    view.right = forests.has(asked.right) ? asked.right : asked.left ? null : (others.at(-1)?.name ?? null);
    const known = Object.keys(forests.get(view.left).trees);
    const mixed = known.find((uid) => { const { density } = forests.get(view.left).trees[uid].nodes[0]; return density > 0 && density < 1; });
    view.problem = known.includes(asked.problem) ? asked.problem : (mixed ?? known[0]);
    view.colour = asked.colour === "density" ? "density" : "ib_score";
    view.round = asked.round === undefined ? last() : Math.max(0, Math.min(last(), Number.parseInt(asked.round, 10) || 0));
    const node = Number.parseInt(asked.node, 10);
    view.chosen = { left: tree("left").nodes[node] ? node : null, right: null };
  }

  function remember() {
    const kept = { problem: view.problem, left: view.left, right: view.right, round: view.round, colour: view.colour, node: view.chosen.left };
    const entries = Object.entries(kept).filter(([, value]) => value !== null);
    history.replaceState(null, "", `#${new URLSearchParams(entries)}`);
  }

  // ---- one tree with its ranking and the details of the chosen node

  function pane(side) {
    const part = get("pane").content.cloneNode(true).firstElementChild;
    const find = (name) => part.querySelector(`[data-part="${name}"]`);
    const policies = new Map(data.forests.map(({ policy, title }) => [policy, title]));
    find("policy").append(...[...policies].map(([policy, title]) => element("option", { value: policy }, title)));
    find("sampler").append(...[...new Set(data.forests.map(({ sampler }) => sampler))].map((sampler) => element("option", { value: sampler }, sampler)));
    const choose = () => {
      const wanted = data.forests.find(({ policy, sampler }) => policy === find("policy").value && sampler === find("sampler").value);
      Object.assign(view, { [side]: wanted.name, round: view.round >= last() ? Infinity : view.round });
      view.chosen[side] = null;
      show();
    };
    find("policy").addEventListener("change", choose);
    find("sampler").addEventListener("change", choose);
    const select = (node) => { view.chosen[side] = node; show(); };
    find("tree").addEventListener("click", ({ target }) => { const node = target.closest("[data-node]"); if (node) select(Number(node.dataset.node)); });
    find("tree").addEventListener("keydown", (event) => {
      const from = Number(event.target.closest("[data-node]")?.dataset.node ?? 0), to = moved(side, from, event.key);
      if (to === undefined) return;
      event.preventDefault();
      select(to);
    });

    function update() {
      const forest = forests.get(view[side]), now = tree(side), at = round(side);
      find("policy").value = forest.policy;
      find("sampler").value = forest.sampler;
      if (view.chosen[side] !== null && !trees.state(now, view.chosen[side], at)) view.chosen[side] = null;
      find("tree").setAttribute("aria-label", `Tree of ${forest.title}, ${forest.sampler}`);
      trees.draw(find("tree"), now, { round: at, colour: view.colour, range: shades(), chosen: view.chosen[side] });
      find("sum").textContent = summary(now, at);
      find("why").replaceChildren(...why(forest, now, at, select));
      find("details").replaceChildren(...details(forest, now, at, view.chosen[side]));
    }
    return { part, update };
  }

  const shades = () => trees.range(sides().map(tree), view.colour);

  // Where an arrow leads: to the parent, to the first child, or along the nodes of the same depth. Enter and space choose the node itself.
  function moved(side, from, key) {
    const at = round(side), below = trees.children(tree(side), at);
    const level = (node) => trees.path(tree(side), node, at).length;
    const alike = [];
    const visit = (node) => { if (level(node) === level(from)) alike.push(node); below[node].forEach(visit); };
    visit(0);
    const beside = (step) => alike[alike.indexOf(from) + step] ?? from;
    return {
      ArrowLeft: () => (from ? trees.parent(tree(side), from, at) : 0), ArrowRight: () => below[from][0] ?? from, ArrowUp: () => beside(-1),
      ArrowDown: () => beside(1), Home: () => 0, Enter: () => from, " ": () => from,
    }[key]?.();
  }

  function summary(now, at) {
    const ended = now.trajectories.filter((one) => one.round <= at), right = ended.filter(({ reward }) => reward >= 1).length;
    const nodes = now.nodes.filter((node) => node.round <= at).length;
    return `${at ? `Round ${at} of ${now.rounds - 1}` : "First rollouts"}: ${ended.length} trajectories, ${right} right, ${nodes} nodes`;
  }

  // Why a round went where it went: the candidates as they stood, the best first, and which was picked.
  function why(forest, now, at, select) {
    if (!at) return [element("p", {}, `${now.trajectories.filter((one) => one.round === 0).length} rollouts from the problem. ${now.rounds > 1 ? "Move on to see where the next ones start." : forest.why}`)];
    const { candidates, picked } = trees.ranking(now, at);
    const step = (one) => (one.at ? trees.short(trees.said(trees.text(now, one.at, at)), 28) : "the problem");
    const names = picked.map((one) => (one.at ? `node ${one.at} (${step(one)})` : step(one)) + (one.asked > 1 ? `, ${one.asked} times` : "")).join("; ");
    const surprise = forest.strategy === "eptree" ? surprises(now, at, picked) : "";
    const span = [candidates.at(-1).ib_score, candidates[0].ib_score];
    const rows = candidates.map((one) => {
      const button = element("button", { type: "button", class: "pick" }, step(one));
      button.addEventListener("click", () => select(one.at));
      const bar = element("span", { class: "bar-track", "aria-hidden": "true" }, element("span", { class: "bar-fill", style: `width: ${100 * trees.share(one.ib_score, span)}%` }));
      return element("tr", one.asked ? { class: "picked" } : {},
        element("td", {}, String(one.rank)), element("td", { class: "candidate" }, button), element("td", {}, bar, number(one.ib_score)),
        element("td", {}, number(one.density)), element("td", {}, String(one.count)), element("td", {}, one.asked ? "picked" : ""));
    });
    const head = ["rank", "candidate", "IB-Score", "density", "trajectories", ""].map((name) => element("th", { scope: "col", class: name === "candidate" ? name : "" }, name));
    const table = element("table", { class: "ranks" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
    return [
      element("p", {}, element("b", {}, `Round ${at} picked ${names}.`), ` ${forest.why}${surprise}`),
      element("div", { class: "scroll ranked", tabindex: "0", role: "region", "aria-label": `Candidates of round ${at}` }, table),
    ];
  }

  function surprises(now, at, picked) {
    const below = trees.children(now, at), old = (node) => now.nodes[node].round < at;
    const found = picked.map((one) => Math.max(...below[one.at].filter(old).map((node) => now.nodes[node].surprise ?? 0)));
    return ` Here −log p was ${found.map((value) => number(value)).join(", ")}.`;
  }

  // ---- details

  function details(forest, now, at, chosen) {
    if (chosen === null) return [element("p", { class: "muted" }, "Choose a node to read its step and its numbers; the arrow keys move along the tree.")];
    const node = now.nodes[chosen], worth = trees.state(now, chosen, at), ends = trees.mark(now, chosen).ends;
    const through = now.trajectories.filter((one) => one.round <= at && (chosen === 0 || trees.path(now, one.leaf, at).includes(chosen)));
    const later = at < now.rounds - 1 ? " (when grown)" : "";
    const pairs = [
      ["π(s), confidence", number(node.pi, 3)], ["p̂(a*|s), reward density", number(worth.density, 3)], ["r(s), density ratio", number(worth.ratio, 3)],
      [`J(s), IB-Score at β = ${forest.beta}`, number(worth.ib_score, 3)], ["entropy of the step, nats", number(node.entropy, 3)],
      ["trajectories, draws", `${worth.count}, ${node.draws}${later && " when grown"}`],
      ["made in", `${node.round ? `round ${node.round} of ${now.rounds - 1}` : "the first rollouts"}, as number ${chosen} of ${now.nodes.length - 1}`],
      [`A_GL, global${later}`, number(node.global, 3)], [`λ A_IB, local${later}`, number(node.local, 3)],
      [`A, IB-TPO's advantage${later}`, number(node.global === null ? null : node.global + node.local, 3)], [`GRPO's advantages through it${later}`, tally(through)],
    ];
    if (node.terminal) pairs.push(["ends", `${trees.mark(now, chosen).word}, ${ends.some(({ finished }) => finished) ? "finished" : "cut off"}, ${[...new Set(ends.map(({ status }) => status))].join(", ")}`]);
    const steps = trees.path(now, chosen, at).map((one) => element("li", one === chosen ? { class: "current" } : {}, element("code", {}, trees.said(trees.text(now, one, at)))));
    return [
      element("h3", {}, chosen ? `Node ${chosen}` : "The problem"),
      element("pre", { class: "step scroll", tabindex: "0" }, chosen ? trees.said(trees.text(now, chosen, at)) : data.problems[view.problem].prompt),
      element("dl", { class: "pairs" }, ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", { class: "num" }, value)))),
      ...(chosen ? [element("details", {}, element("summary", {}, "The steps up to here"), element("ol", { class: "steps" }, ...steps))] : []),
    ];
  }

  function tally(through) {
    const counts = new Map();
    through.forEach(({ grpo_advantage: value }) => counts.set(number(value), (counts.get(number(value)) ?? 0) + 1));
    return [...counts].map(([value, count]) => (count > 1 ? `${value} × ${count}` : value)).join(", ");
  }

  // ---- controls

  const panes = { left: pane("left"), right: pane("right") };

  function legend() {
    const [low, high] = shades().map((value) => number(value)), sign = view.colour === "density" ? ["", ""] : ["≤ ", "≥ "];
    const swatches = Array.from({ length: trees.SHADES }, (_, step) => element("span", { class: "shade", style: `background: var(--seq-${step})` }));
    get("scale").replaceChildren(element("span", { class: "num" }, sign[0] + low), element("span", { class: "shades", "aria-hidden": "true" }, ...swatches), element("span", { class: "num" }, sign[1] + high));
  }

  function show() {
    view.round = Math.min(view.round, last());
    get("problem").value = view.problem;
    get("answer").textContent = data.problems[view.problem].answer;
    get("round").max = String(last());
    get("round").value = String(view.round);
    get("round").disabled = last() === 0;
    get("round-text").textContent = view.round ? `Round ${view.round} of ${last()}` : "First rollouts";
    get("back").disabled = view.round === 0;
    get("on").disabled = view.round === last();
    get("compare").setAttribute("aria-pressed", String(view.right !== null));
    panes.right.part.hidden = view.right === null;
    get("panes").classList.toggle("two", view.right !== null);
    for (const colour of ["ib_score", "density"]) get(colour).setAttribute("aria-pressed", String(view.colour === colour));
    legend();
    sides().forEach((side) => panes[side].update());
    remember();
  }

  let timer = null;
  function play(on) {
    clearInterval(timer);
    timer = on ? setInterval(() => { if (view.round < last()) { view.round += 1; show(); } if (view.round >= last()) play(false); }, 900) : null;
    get("play").setAttribute("aria-pressed", String(on));
    get("play").textContent = on ? "Pause" : "Play";
  }

  const go = (to) => { play(false); view.round = Math.max(0, Math.min(last(), to)); show(); };
  get("round").addEventListener("input", () => go(Number(get("round").value)));
  get("back").addEventListener("click", () => go(view.round - 1));
  get("on").addEventListener("click", () => go(view.round + 1));
  get("play").addEventListener("click", () => { const on = timer === null; if (on && view.round === last()) view.round = 0; show(); play(on); });
  get("problem").addEventListener("change", () => { const end = view.round >= last(); view.problem = get("problem").value; view.chosen = { left: null, right: null }; if (end) view.round = last(); show(); });
  for (const colour of ["ib_score", "density"]) get(colour).addEventListener("click", () => { view.colour = colour; show(); });
  get("compare").addEventListener("click", () => {
    view.right = view.right ? null : (data.forests.find(({ name, policy }) => name !== view.left && policy === forests.get(view.left).policy) ?? data.forests[0]).name;
    show();
  });
  addEventListener("hashchange", () => { play(false); start(); show(); });
  new ResizeObserver(() => sides().forEach((side) => panes[side].update())).observe(get("panes"));

  get("problem").append(...Object.entries(data.problems).map(([uid, { prompt }]) => element("option", { value: uid }, trees.short(prompt, 40))));
  get("panes").append(panes.left.part, panes.right.part);
  start();
  show();
})();
