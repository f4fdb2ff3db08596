"use strict";
// One page, no library: each panel asks the service again a moment after its fields have changed.

const get = (id) => document.getElementById(id);
const WAIT = 200; // milliseconds without a key press
const LONGEST_LIST = 12;
let indexes = [];

function make(tag, { text, className, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// What is wrong with each panel: one that works again must not hide the error of another.
const faults = new Map();

function complain(panel, message) {
  faults.set(panel, message);
  const shown = [...new Set(faults.values())].filter(Boolean).join(" ");
  get("error").hidden = !shown;
  get("error").textContent = shown;
}

async function ask(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const key = sessionStorage.getItem("key");
  if (key) headers.Authorization = `Bearer ${key}`;
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. Is it still running?");
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401) get("login").hidden = false;
  if (!answer.ok) throw new Error(content.error ? content.error.message : `The service answered ${answer.status}.`);
  return content;
}

// Run `work` when fields change; an answer that is no longer wanted is dropped.
function panel(ids, work) {
  let timer, running;
  const start = async () => {
    if (running) running.abort();
    running = new AbortController();
    const signal = running.signal;
    try {
      await work(signal);
      if (!signal.aborted) complain(work, "");
    } catch (error) {
      if (!signal.aborted) complain(work, error.message);
    }
  };
  for (const id of ids) {
    get(id).addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(start, WAIT);
    });
  }
  return start;
}

const chosen = () => [get("first").value, get("second").value].filter(Boolean);
const color = (number) => `var(--${number ? "two" : "one"})`;
const texts = (...ids) => ids.map((id) => get(id).value.trim());

function cosines(sentences, signal) {
  return Promise.all(
    chosen().map(async (model) => ({ model, rows: (await ask("similarity", { model, texts: sentences }, signal)).similarity })),
  );
}

function bar(name, value, number) {
  const track = make("div", { className: "track", "aria-hidden": "true" }, make("div", { className: "bar" }));
  track.firstChild.style.width = `${Math.max(0, value) * 100}%`;
  track.firstChild.style.setProperty("--color", color(number));
  return make("div", { className: "row" }, make("span", { className: "name", text: name }), track, make("span", { text: value.toFixed(3) }));
}

const pair = panel(["a", "b"], async (signal) => {
  const given = texts("a", "b");
  const found = given.every(Boolean) ? await cosines(given, signal) : [];
  get("pair").replaceChildren(...found.map(({ model, rows }, number) => bar(model, rows[0][1], number)));
});

const negation = panel(["said", "same", "other"], async (signal) => {
  const given = texts("said", "same", "other");
  const found = given.every(Boolean) ? await cosines(given, signal) : [];
  const shown = found.flatMap(({ model, rows: [[, same, other]] }, number) => [
    make("h3", { text: model }),
    bar("means the same", same, number),
    bar("looks the same", other, number),
    make("p", { className: "verdict", text: same > other ? "Nearer to what means the same." : "Nearer to what looks the same." }),
  ]);
  get("not").replaceChildren(...shown);
});

function heat({ model, rows }, sentences, number) {
  const head = make("tr", {}, make("td", { "aria-hidden": "true" }), ...sentences.map((_, i) => make("th", { text: i + 1, scope: "col" })));
  const lines = rows.map((row, i) => {
    const cells = row.map((value) => {
      const cell = make("td", { text: value.toFixed(2) });
      cell.style.setProperty("--v", Math.max(0, value));
      cell.style.setProperty("--color", color(number));
      return cell;
    });
    return make("tr", {}, make("th", { text: `${i + 1} ${sentences[i]}`, scope: "row", title: sentences[i] }), ...cells);
  });
  head.firstChild.style.setProperty("--v", 0);
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines));
  return make("div", { className: "map", tabindex: "0", role: "group", "aria-label": `Similarities by ${model}` }, make("h3", { text: model }), table);
}

const list = panel(["list"], async (signal) => {
  const sentences = get("list").value.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, LONGEST_LIST);
  const found = sentences.length ? await cosines(sentences, signal) : [];
  get("heat").replaceChildren(...found.map((one, number) => heat(one, sentences, number)));
});

function hit({ file, line, title, text, sentence, similarity, scores }) {
  const at = text.indexOf(sentence);
  const passage = make("div", {}, text.slice(0, at), make("mark", { text: sentence }), text.slice(at + sentence.length));
  const place = make("div", { className: "place" }, make("span", { text: `${file.split(/[\\/]/).slice(-2).join("/")}:${line}`, title: file }));
  if (title) place.append(make("span", { text: title }));
  if (similarity !== null) place.append(make("span", { text: `cosine ${similarity.toFixed(3)}` }));
  const parts = Object.entries(scores).map(([name, value]) => `${name} ${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`);
  if (parts.length) place.append(make("span", { text: parts.join(" "), title: "What each part of the search gave; their sum is the score" }));
  return make("li", {}, place, passage);
}

const search = panel(["query", "mode"], async (signal) => {
  const query = get("query").value.trim();
  // The indexes of the chosen models, side by side.
  const wanted = chosen().flatMap((model) => indexes.filter((one) => one.model === model));
  const found = query
    ? await Promise.all(wanted.map((one) => ask("search", { query, index: one.name, k: 5, mode: get("mode").value }, signal)))
    : [];
  const shown = found.map(({ hits }, number) => {
    const name = `${wanted[number].name}, by ${wanted[number].model}`;
    const content = hits.length ? make("ol", {}, ...hits.map(hit)) : make("p", { text: "Nothing found." });
    return make("div", {}, make("h3", { text: name }), content);
  });
  if (query && !wanted.length) shown.push(make("p", { text: "The chosen model has no index." }));
  get("hits").replaceChildren(...shown);
});

async function everything() {
  for (const start of [pair, negation, list, search]) await start();
}

async function begin() {
  try {
    const { models, indexes: there } = await ask("info");
    indexes = there;
    const names = models.map((model) => model.name);
    get("first").replaceChildren(...names.map((name) => make("option", { text: name, value: name })));
    get("second").replaceChildren(make("option", { text: "none", value: "" }), ...names.map((name) => make("option", { text: name, value: name })));
    get("second").value = names[1] || "";
    get("beside").hidden = names.length < 2;
    get("models").hidden = false;
    get("login").hidden = true;
    get("searching").hidden = !indexes.length;
    const passages = indexes.map((one) => `${one.name} (${one.passages.toLocaleString("en")} passages)`).join(", ");
    get("served").textContent = [models.map((model) => `${model.name}: ${model.dimension} dimensions, ${model.engine}`).join("; "), passages].filter(Boolean).join(" · ");
    complain(begin, "");
    await everything();
  } catch (error) {
    get("served").textContent = "";
    complain(begin, error.message);
  }
}

for (const form of ["models", "login"]) get(form).addEventListener("submit", (event) => event.preventDefault());
get("login").addEventListener("submit", () => {
  sessionStorage.setItem("key", get("key").value);
  begin();
});
for (const id of ["first", "second"]) get(id).addEventListener("input", everything);
begin();
