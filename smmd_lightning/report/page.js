"use strict";
// The table of answers: sorting, filtering, rows that open. Texts only ever enter as textContent.
(() => {
  const table = document.getElementById("rows");
  if (!table) return;
  const answers = JSON.parse(document.getElementById("answers").textContent);
  const words = document.getElementById("words"), which = document.getElementById("which");
  const kind = document.getElementById("kind"), count = document.getElementById("count");
  const more = document.getElementById("more"), body = table.tBodies[0];
  const PAGE = 50;
  const several = new Set(answers.map(row => row.task)).size > 1;
  const kinds = [...new Set(answers.map(row => row.kind))].filter(name => name).sort();
  const columns = [
    ["id", "id"], ...(several ? [["task", "task"]] : []), ["truth", "truth"], ["parsed", "read as"],
    ["error", "error"], ["verdict", ""], ...(kinds.length ? [["kind", "kind"]] : []), ["raw", "output"],
  ];
  let key = null, down = false, shown = PAGE, picked = null;
  answers.forEach((row, place) => { row.place = place; });

  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const verdict = row => row.correct ? "right" : row.parsed === null ? "nothing read" : "wrong";
  const off = row => {
    if (row.error === null || row.error === undefined) return "";
    if (row.error_unit === "relative") return (100 * row.error).toPrecision(3) + " %";
    return Number(row.error.toPrecision(6)) + (row.error_unit === "minutes" ? " min" : "");
  };
  const cell = (row, name) => name === "verdict" ? verdict(row) : name === "error" ? off(row) : row[name] ?? "–";

  // Answers that were not read are the worst error there is.
  const rank = row => key === "error" ? (row.error ?? (row.correct ? -1 : row.parsed === null ? Infinity : -0.5))
    : key === "verdict" ? verdict(row) : row[key] ?? "";
  const compare = (a, b) => {
    const [x, y] = [rank(a), rank(b)];
    if (typeof x === "number" && typeof y === "number") return x === y ? 0 : x - y;
    return String(x).localeCompare(String(y), "en", { numeric: true });
  };

  const chosen = () => {
    const text = words.value.trim().toLowerCase();
    const kept = answers.filter(row =>
      (!picked || picked.has(row.place)) &&
      (!which.value || (which.value === "right" ? row.correct : which.value === "wrong" ? !row.correct : row.parsed === null && !row.correct)) &&
      (!kind.value || row.kind === kind.value) &&
      (!text || [row.id, row.prompt, row.truth, row.parsed, row.raw].some(part => String(part ?? "").toLowerCase().includes(text))));
    if (key) kept.sort((a, b) => down ? compare(b, a) : compare(a, b));
    return kept;
  };

  const detail = row => {
    const line = make("tr", undefined, "open"), box = make("td");
    box.colSpan = columns.length;
    if (row.image) {
      const image = make("img");
      image.alt = "picture of " + row.id;
      image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth < 200));
      image.src = row.image;
      box.append(image);
    }
    const list = make("dl");
    const facts = [["prompt", row.prompt], ["truth", row.truth], ["read as", row.parsed ?? "–"], ...Object.entries(row.meta)];
    for (const [name, value] of facts) list.append(make("dt", name), make("dd", value));
    box.append(list, make("pre", row.raw === "" ? "(empty)" : row.raw));
    line.append(box);
    return line;
  };
  const toggle = (line, row, button) => {
    const next = line.nextElementSibling;
    const open = next !== null && next.className === "open";
    if (open) next.remove(); else line.after(detail(row));
    button.setAttribute("aria-expanded", String(!open));
  };

  const draw = () => {
    const kept = chosen();
    body.replaceChildren(...kept.slice(0, shown).map(row => {
      const line = make("tr", undefined, "row");
      columns.forEach(([name], place) => {
        const text = cell(row, name);
        const box = make("td", undefined, name === "raw" ? "raw raw-column" : name === "kind" ? "kind-column"
          : name === "verdict" ? "verdict-" + (row.correct ? "right" : "wrong") : "");
        if (place === 0) {
          const button = make("button", text);
          button.type = "button";
          button.setAttribute("aria-expanded", "false");
          box.append(button);
          line.addEventListener("click", () => toggle(line, row, button));
        } else box.textContent = name === "raw" && text.length > 120 ? text.slice(0, 120) + "…" : text;
        line.append(box);
      });
      return line;
    }));
    count.textContent = kept.length.toLocaleString("en") + " of " + answers.length.toLocaleString("en");
    more.hidden = kept.length <= shown;
  };

  // A bar of a plot shows its answers: here, with the first one open where there are few.
  const chosenButton = document.getElementById("chosen");
  const pick = bar => {
    picked = bar === null ? null : new Set(bar.dataset.rows.split(",").map(Number));
    chosenButton.hidden = bar === null;
    chosenButton.textContent = bar === null ? "" : bar.dataset.name + " ✕";
    chosenButton.setAttribute("aria-label", bar === null ? "" : "Show all answers, not only: " + bar.dataset.name);
    words.value = which.value = kind.value = "";
    shown = PAGE;
    draw();
    if (bar === null) return;
    document.getElementById("all-answers").scrollIntoView();
    const first = body.querySelector("tr.row");
    if (first) first.click();
  };
  chosenButton.addEventListener("click", () => pick(null));
  for (const bar of document.querySelectorAll("[data-rows]")) {
    bar.addEventListener("click", () => pick(bar));
    bar.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(bar); }
    });
  }

  const head = make("tr");
  for (const [name, title] of columns) {
    const box = make("th", undefined, name === "raw" ? "raw-column" : name === "kind" ? "kind-column" : "");
    const button = make("button", title || "verdict");
    button.type = "button";
    button.addEventListener("click", () => {
      down = key === name ? !down : name === "error";
      key = name;
      for (const other of head.children) other.removeAttribute("aria-sort");
      box.setAttribute("aria-sort", down ? "descending" : "ascending");
      shown = PAGE;
      draw();
    });
    box.append(button);
    head.append(box);
  }
  table.tHead.append(head);
  for (const name of kinds) {
    const option = make("option", name);
    option.value = name;
    kind.append(option);
  }
  kind.hidden = kinds.length < 2;
  for (const control of [words, which, kind]) control.addEventListener("input", () => { shown = PAGE; draw(); });
  more.addEventListener("click", () => { shown += 4 * PAGE; draw(); });
  draw();
})();
