// Shared by all pages: the data of the page, the colours of the theme, and the switch between light and dark.
"use strict";
const site = (() => {
  const root = document.documentElement;
  const block = document.getElementById("data");
  const listeners = [];
  const system = matchMedia("(prefers-color-scheme: dark)");
  const swatch = document.body.appendChild(document.createElement("i"));  // what a colour is now: a token itself names two
  swatch.hidden = true;

  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const changed = () => listeners.forEach((listener) => listener());

  function choose(theme) {
    root.dataset.theme = theme;
    try { localStorage.setItem("ibtpo-theme", theme); } catch (error) { /* the choice then lasts for this page */ }
    changed();
  }

  document.getElementById("theme").addEventListener("click", () => choose(dark() ? "light" : "dark"));
  system.addEventListener("change", changed);

  // On a phone the pages are a row that scrolls: the current one is to be seen.
  const current = document.querySelector(".bar nav a[aria-current]");
  if (current) current.parentElement.scrollLeft = current.offsetLeft - current.parentElement.offsetLeft - 40;

  // Paper is light, and shows what is folded away.
  let before;
  addEventListener("beforeprint", () => {
    before = { theme: root.dataset.theme, open: [...document.querySelectorAll("details[open]")] };
    root.dataset.theme = "light";
    document.querySelectorAll("details.print-open").forEach((details) => { details.open = true; });
    changed();
  });
  addEventListener("afterprint", () => {
    if (before.theme) root.dataset.theme = before.theme; else delete root.dataset.theme;
    document.querySelectorAll("details.print-open").forEach((details) => { details.open = before.open.includes(details); });
    changed();
  });

  return {
    data: block ? JSON.parse(block.textContent) : null,
    dark,
    token: (name) => getComputedStyle(root).getPropertyValue(name).trim(),
    colour(name) {
      swatch.style.color = `var(${name})`;
      return getComputedStyle(swatch).color;
    },
    onTheme: (listener) => listeners.push(listener),
    // An element with text: text is never read as HTML.
    element(tag, attributes = {}, ...children) {
      const made = document.createElement(tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.append(...children);
      return made;
    },
  };
})();
