"use strict";
(() => {
  const rows = [...document.querySelectorAll("tbody tr")];
  const sheet = document.getElementById("sheet");
  const search = document.getElementById("search");
  const menus = [...document.querySelectorAll("select[data-filter]")];
  const count = document.getElementById("count");
  const texts = rows.map((row) => (row.dataset.path + " " + row.textContent).toLowerCase());
  let shown = rows;
  let chosen = null;

  const choose = (row, how = {}) => {
    if (!row) return;
    if (chosen) {
      chosen.setAttribute("aria-selected", "false");
      chosen.tabIndex = -1;
    }
    const fresh = row !== chosen;
    chosen = row;
    row.setAttribute("aria-selected", "true");
    row.tabIndex = 0;
    if (how.focus) row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
    if (fresh) {
      const template = document.getElementById("t" + row.dataset.number);
      sheet.replaceChildren(template.content.cloneNode(true));
      sheet.scrollTop = 0;
      try {
        history.replaceState(null, "", "#t" + row.dataset.number);
      } catch (_) { /* a page from disk may not */ }
    }
    if (how.read) {
      const title = sheet.querySelector("h2");
      if (title) title.focus();
    }
  };

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = menus.filter((menu) => menu.value).map((menu) => [menu.dataset.filter, menu.value]);
    shown = rows.filter((row, number) => {
      const fits = words.every((word) => texts[number].includes(word)) &&
        wanted.every(([name, value]) => (row.dataset[name] || "").split("|").includes(value));
      row.hidden = !fits;
      return fits;
    });
    count.textContent = shown.length === rows.length ? `${rows.length} shown` : `${shown.length} of ${rows.length} shown`;
    document.getElementById("none").hidden = shown.length > 0;
    if (shown.length && !shown.includes(chosen)) rows.forEach((row) => { row.tabIndex = row === shown[0] ? 0 : -1; });
  };

  const step = (by) => {
    const at = shown.indexOf(chosen);
    const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), shown.length - 1);
    choose(shown[next], { focus: true });
  };

  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

  document.querySelector("tbody").addEventListener("click", (event) => choose(event.target.closest("tr"), { focus: true }));
  document.querySelector("tbody").addEventListener("keydown", (event) => {
    if (event.key in moves) {
      step(moves[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      choose(event.target.closest("tr"), { read: true });
    } else {
      return;
    }
    event.preventDefault();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" || !shown.length) return;
    choose(shown.includes(chosen) ? chosen : shown[0], { focus: true });
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input[type=search], select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      search.focus();
      search.select();
      event.preventDefault();
    } else if (event.key === "Escape" && sheet.contains(event.target) && chosen && !chosen.hidden) {
      chosen.focus();
    }
  });
  search.addEventListener("input", filter);
  menus.forEach((menu) => menu.addEventListener("change", filter));
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());

  sheet.addEventListener("change", (event) => {
    if (!event.target.matches("input[data-relation]")) return;
    const boxes = [...sheet.querySelectorAll("input[data-relation]")];
    const on = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.relation));
    for (const part of sheet.querySelectorAll(".picture g[data-relation]")) {
      if (part.dataset.relation.split(" + ").some((name) => on.has(name))) part.removeAttribute("display");
      else part.setAttribute("display", "none");
    }
  });
  sheet.addEventListener("click", (event) => {
    if (!event.target.matches("button.size")) return;
    const full = sheet.querySelector(".picture").classList.toggle("full");
    event.target.setAttribute("aria-pressed", String(full));
  });

  const theme = document.getElementById("theme");
  const names = ["system", "light", "dark"];
  const paint = (name) => {
    document.documentElement.dataset.theme = name;
    theme.textContent = "Colours: " + name;
    theme.setAttribute("aria-label", name === "system" ? "Colours: as the system has them" : "Colours: " + name);
  };
  theme.addEventListener("click", () => {
    const next = names[(names.indexOf(document.documentElement.dataset.theme || "system") + 1) % names.length];
    paint(next);
    try {
      localStorage.setItem("memmodel-theme", next);
    } catch (_) { /* nothing is kept then */ }
  });
  try {
    const kept = localStorage.getItem("memmodel-theme");
    if (names.includes(kept)) paint(kept);
  } catch (_) { /* nothing was kept */ }

  filter();
  const named = /^#t(\d+)$/.exec(location.hash);
  choose((named && rows[Number(named[1])]) || rows[0]);
})();
