// Tables with the class "sortable": a heading sorts its column, once more turns it round. Empty cells stay last; equal rows keep their order.
"use strict";
(() => {
  function value(cell) {
    if (!cell || cell.classList.contains("empty")) return null;
    const text = cell.dataset.sort ?? cell.textContent.trim();
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  }

  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function sort(table, head) {
    const column = head.cellIndex;
    const body = table.tBodies[0];
    const numeric = [...body.rows].some((row) => typeof value(row.cells[column]) === "number");
    const first = numeric ? "descending" : "ascending";
    const turned = first === "descending" ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? turned : first;
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [value(row.cells[column]), row]);
    rows.sort(([a], [b]) => compare(a, b, sign));
    body.append(...rows.map(([, row]) => row));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    table.tHead.addEventListener("click", (event) => {
      const head = event.target.closest("th");
      if (head && event.target.closest("button")) sort(table, head);
    });
  }
})();
