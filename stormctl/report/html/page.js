"use strict";
(() => {
  const say = (id, text) => { document.getElementById(id).textContent = text; };
  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  const turns = { ascending: "descending", descending: "" };

  // the value that a row is sorted by: a number where its cell has one, undefined where there is nothing
  const keyOf = (cell, number) => {
    if (!number) return cell.textContent.trim() || undefined;
    return "key" in cell.dataset ? Number(cell.dataset.key) : undefined;
  };

  const sort = (table, rows, at, turn) => {
    const number = table.tHead.rows[0].cells[at].classList.contains("number");
    const order = number ? (one, other) => one - other : compare;
    const keyed = rows.map((row) => [keyOf(row.cells[at], number), row]);
    if (turn) {
      keyed.sort(([one], [other]) => {
        if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
        return turn === "ascending" ? order(one, other) : order(other, one);
      });
    }
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const name = head.textContent;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const turn = turns[head.getAttribute("aria-sort")] ?? "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        if (turn) head.setAttribute("aria-sort", turn);
        sort(table, rows, at, turn);
        say("sorted", turn ? `sorted by ${name}, ${turn}` : "in the order of the report");
      });
    });
  }

  const runs = [...document.querySelectorAll("details.run")];
  const filter = document.getElementById("filter");
  if (filter) {
    const texts = runs.map((run) => run.textContent.toLowerCase());
    const show = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      runs.forEach((run, at) => {
        run.hidden = !words.every((word) => texts[at].includes(word));
        shown += !run.hidden;
      });
      say("filtered", words.length ? `${shown} of ${runs.length}` : "");
    };
    filter.addEventListener("input", show);
    const all = (open) => () => runs.forEach((run) => { if (!run.hidden) run.open = open; });
    document.getElementById("open-all").addEventListener("click", all(true));
    document.getElementById("close-all").addEventListener("click", all(false));
  }

  // an address such as report.html#run-3 shows that run
  const follow = () => {
    const run = runs.find((one) => one.id === location.hash.slice(1));
    if (run) {
      run.open = true;
      run.scrollIntoView();
    }
  };
  addEventListener("hashchange", follow);
  follow();
})();
