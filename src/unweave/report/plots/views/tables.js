"use strict";

// The table of runs: sorting, filtering, and the run that is selected in the table or in a plot.
const UnweaveTables = (() => {
  const { make } = UnweaveDom;
  const { readable } = UnweaveScales;

  // Return the value of a cell: a number, a text, or null if it is missing.
  function valueOf(row, j) {
    const cell = row.cells[j], text = cell.dataset.value ?? cell.textContent.trim(), number = Number(text);
    return text === "" || text === "\u2013" ? null : Number.isNaN(number) ? text : number;
  }

  function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  }

  function bindSorting(table, rows) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, j) => head.querySelector("button").addEventListener("click", () => {
      const isDescending = head.ariaSort === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = isDescending ? "descending" : "ascending";
      const sorted = [...rows].sort((r, s) => {
        const a = valueOf(r, j), b = valueOf(s, j);
        if (a === null || b === null) return (a === null) - (b === null); // missing values come last in both directions
        return isDescending ? compare(b, a) : compare(a, b);
      });
      table.tBodies[0].append(...sorted);
    }));
  }

  function matches(row, names, word) {
    const [, name, sign, bound] = /^(.+?)(>=|<=|>|<|=)(.+)$/.exec(word) ?? [];
    const j = names.findIndex((own) => own.toLowerCase() === (name ?? "").toLowerCase());
    if (j < 0) return row.textContent.toLowerCase().includes(word.toLowerCase());
    const own = valueOf(row, j);
    if (own === null) return false;
    const shown = row.cells[j].textContent.replace(/\s/g, "");
    if (sign.includes("=") && shown.toLowerCase() === bound.toLowerCase()) return true; // as displayed
    const order = compare(own, typeof own === "number" ? Number(bound) : bound);
    return { "=": order === 0, "<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0 }[sign];
  }

  function bindFilter(section, table, rows) {
    const input = section.querySelector(".filter input"), names = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
    if (!input) return;
    const filter = () => {
      const words = input.value.replace(/\s*(>=|<=|>|<|=)\s*/g, "$1").split(/\s+/).filter(Boolean);
      rows.forEach((row) => { row.hidden = !words.every((word) => matches(row, names, word)); });
      section.querySelector(".count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} runs`;
    };
    input.addEventListener("input", filter);
    filter();
  }

  // The runs of one dataset; one of them may be selected.
  class Group {
    constructor(section, runs) {
      this.section = section;
      this.runs = runs;
      this.select = (i, origin) => this.show(i, origin);
      const table = section.querySelector("table.runs"), rows = [...table.tBodies[0].rows];
      bindSorting(table, rows);
      bindFilter(section, table, rows);
      this.rows = rows;
      rows.forEach((row, i) => row.querySelector("button").addEventListener("click", (event) => this.show(i, event.target)));
    }

    // Select run i: mark its dots and its row, scroll to the row, and show a card; `origin` gets the focus back.
    show(i, origin) {
      this.clear();
      for (const dot of this.section.querySelectorAll(`[data-run="${i}"]`)) dot.classList.add("selected");
      const row = this.rows[i];
      if (row.hidden) this.clearFilter();
      row.classList.add("selected");
      row.setAttribute("aria-selected", "true");
      const isCalm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
      row.scrollIntoView({ block: "center", behavior: isCalm ? "auto" : "smooth" });
      this.card = this.makeCard(i, origin);
      document.body.append(this.card);
      this.card.focus({ preventScroll: true });
      UnweavePanels.hideTip();
    }

    clearFilter() {
      const input = this.section.querySelector(".filter input");
      input.value = "";
      input.dispatchEvent(new Event("input"));
    }

    clear() {
      for (const element of document.querySelectorAll(".selected")) {
        element.classList.remove("selected");
        element.removeAttribute("aria-selected");
      }
      document.querySelector("aside.card")?.remove();
    }

    makeCard(i, origin) {
      const run = this.runs[i];
      const scores = Object.entries(run.scores).map(([name, value]) => [name, readable(value)]);
      const facts = [["seed", String(run.seed)], ...run.settings, ...scores, ["folder", run.folder], ["key", run.key]];
      const list = make("dl", {}, ...facts.flatMap(([name, text]) => [make("dt", { text: name }), make("dd", { text })]));
      const close = () => {
        this.clear();
        origin.scrollIntoView({ block: "nearest" });
        origin.focus({ preventScroll: true });
      };
      const buttons = [make("button", { type: "button", text: "Close", onclick: close })];
      if (run.section) buttons.unshift(make("a", { href: `#${run.section}`, text: "Figures of this run" }));
      const card = make("aside", { className: "card", tabindex: "-1", "aria-label": "Selected run" });
      card.append(make("strong", { text: run.label }), list, make("div", { className: "tools" }, ...buttons));
      card.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
      return card;
    }
  }

  return { Group };
})();
