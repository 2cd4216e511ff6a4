"use strict";
// Sends a picture and a question to the server that made this page, and shows what came back, as text.
(() => {
  const get = id => document.getElementById(id);
  const drop = get("drop"), picture = get("picture"), overlay = get("overlay"), file = get("file");
  let chosen = null, asked = 0;

  const say = (text, bad) => {
    get("state").textContent = text;
    get("state").classList.toggle("bad", Boolean(bad));
  };
  const show = found => {
    get("shown").hidden = false;
    get("value").textContent = found.value === null ? "nothing read" : (found.value + " " + found.unit).trim();
    get("interval").textContent = found.interval === null ? ""
      : "90 % of the belief: " + found.interval[0] + " to " + found.interval[1];
    get("text").textContent = found.text === "" ? "(empty)" : found.text;
    get("answers").replaceChildren(...found.answers.slice(0, 8).map(([answer, share]) => {
      const line = document.createElement("li"), name = document.createElement("span");
      const bar = document.createElement("div"), told = document.createElement("span");
      name.textContent = answer;
      bar.className = "bar";
      bar.style.width = 100 * share + "%";
      told.textContent = (100 * share).toFixed(1) + " %";
      line.append(name, bar, told);
      return line;
    }));
    if (!overlay) return;
    const drawn = found.overlay ? new DOMParser().parseFromString(found.overlay, "text/html").querySelector("svg") : null;
    overlay.replaceChildren(...(drawn ? [document.importNode(drawn, true)] : []));
    overlay.hidden = get("moving").hidden = drawn === null;
    if (drawn) resize();
  };
  const ask = async () => {
    if (drop && chosen === null) return say("Choose a picture first.", true);
    const number = ++asked;
    say("Reading …");
    const query = new URLSearchParams({ question: get("question").value });
    if (get("task")) query.set("task", get("task").value);
    try {
      const answer = await fetch("/read?" + query, {
        method: "POST", body: chosen ?? "", headers: { "Content-Type": "application/octet-stream" },
      });
      const found = await answer.json();
      if (number !== asked) return;  // a later picture was given meanwhile
      if (found.error !== undefined) return say(found.error, true);
      say("");
      show(found);
    } catch (error) {
      say("The server does not answer: " + error.message, true);
    }
  };
  const take = given => {
    if (!given) return;
    chosen = given;
    URL.revokeObjectURL(picture.src);
    picture.src = URL.createObjectURL(given);
    picture.hidden = false;
    overlay.hidden = get("moving").hidden = get("invite").hidden = true;
    drop.classList.add("full");
    ask();
  };

  get("form").addEventListener("submit", event => { event.preventDefault(); ask(); });
  if (get("task")) get("task").addEventListener("input", event => {
    get("question").value = event.target.selectedOptions[0].dataset.prompt;
  });
  if (!drop) return;

  drop.addEventListener("click", event => { if (!overlay.contains(event.target)) file.click(); });
  drop.addEventListener("keydown", event => { if (event.key === "Enter") file.click(); });
  file.addEventListener("change", () => take(file.files[0]));
  drop.addEventListener("dragover", event => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", event => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", event => take([...event.clipboardData.files][0]));

  // Where the dial lies in a photograph is not known: the hands start in the middle and can be moved.
  const resize = () => {
    overlay.style.width = get("size").value * Math.min(picture.clientWidth, picture.clientHeight) / 100 + "px";
  };
  get("size").addEventListener("input", resize);
  picture.addEventListener("load", resize);
  overlay.addEventListener("pointerdown", event => {
    overlay.setPointerCapture(event.pointerId);
    const [left, top] = [overlay.offsetLeft - event.clientX, overlay.offsetTop - event.clientY];
    overlay.onpointermove = move => {
      overlay.style.left = left + move.clientX + "px";
      overlay.style.top = top + move.clientY + "px";
    };
  });
  overlay.addEventListener("pointerup", () => { overlay.onpointermove = null; });
})();
