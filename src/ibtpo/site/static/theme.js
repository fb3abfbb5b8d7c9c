// Before anything is painted: the choice of light or dark that was made on an earlier page.
"use strict";
(() => {
  try {
    const chosen = localStorage.getItem("ibtpo-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (error) { /* a browser may forbid storage for files: then the system's choice stays */ }
})();
