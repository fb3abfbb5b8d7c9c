// The trees of the case studies, each at the round and with the node that its rule found.
"use strict";
(() => {
  const { data, trees } = site;
  const forests = new Map(data.forests.map((forest) => [forest.name, forest]));
  const drawings = [...document.querySelectorAll("svg.tree")];

  function draw(canvas) {
    const { forest, problem, round, chosen } = canvas.dataset, tree = forests.get(forest).trees[problem];
    trees.draw(canvas, tree, {
      round: round === undefined ? Infinity : Number(round), colour: "density", range: trees.range([tree], "density"),
      chosen: chosen === undefined ? null : Number(chosen),
    });
  }

  const all = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target.querySelector("svg.tree"))));
  drawings.forEach((canvas) => all.observe(canvas.parentElement));
})();
