"use strict";
// One page without libraries: each panel sends a request shortly after its fields have changed.

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

// The error of each panel: a panel that works again must not hide another's error.
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
    throw new Error("The service does not respond. Check whether it is running.");
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401) get("login").hidden = false;
  if (!answer.ok) throw new Error(content.error ? content.error.message : `The service answered ${answer.status}.`);
  return content;
}

// Run `work` when fields change; an outdated response is dropped.
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
    make("p", { className: "verdict", text: same > other ? "Closer to the same meaning." : "Closer to the same words." }),
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

const NAMES = { vectors: "meaning", reranker: "cross-encoder" }; // of the parts of a score, where the page has another
const SCALES = {
  hybrid:
    "Sorted by score: the sum of the z-scores of all parts of the search. " +
    "The cosine is only one part, so cosines may be in another order.",
  vectors: "Sorted by the cosine of query and passage.",
  words: "Sorted by BM25, which counts common words: rare words count more, and long passages less.",
};
const INCOMPARABLE = " Cosines and scores of two models are not comparable: compare the passages that they put first.";
const SHOWN_HITS = 5;

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
const samePassage = (one, other) => one.file === other.file && one.line === other.line && one.text === other.text;

// The parts of a score as a bar, whose length is in proportion to the longest of all hits, and as a sum.
function parts({ score, scores, similarity, words }, longest) {
  const given = Object.entries(scores);
  if (!given.length) return [];
  const strip = make("div", { className: "strip", "aria-hidden": "true" });
  const sum = make("div", { className: "sum" });
  for (const [name, value] of given) {
    const piece = make("span", { className: `part ${name}` });
    piece.style.width = `${(100 * Math.max(0, value)) / longest}%`;
    strip.append(piece);
    const raw = { vectors: ["cosine", similarity, 3], words: ["BM25", words, 2] }[name];
    const known = raw && raw[1] !== null ? ` (${raw[0]} ${raw[1].toFixed(raw[2])})` : "";
    sum.append(make("span", {}, make("i", { className: `part ${name}`, "aria-hidden": "true" }), `${NAMES[name] || name} ${signed(value)}${known}`));
  }
  sum.append(make("b", { text: `= ${score.toFixed(2)}` }));
  return [strip, sum];
}

// The place of a hit among the hits of the other model.
function elsewhere(hit, other) {
  const place = other.hits.findIndex((one) => samePassage(one, hit));
  const text = place < 0 ? `not among the first ${SHOWN_HITS} by ${other.model}` : `number ${place + 1} by ${other.model}`;
  return make("span", { text, className: place < 0 ? "changed" : "" });
}

function hit(found, rank, longest, other) {
  const { id, file, line, title, text, sentence, similarity, words, scores } = found;
  const at = text.indexOf(sentence);
  const passage = make("div", {}, text.slice(0, at), make("mark", { text: sentence }), text.slice(at + sentence.length));
  const place = make("div", { className: "place" }, make("span", { text: `${rank + 1}.` }));
  place.append(make("span", { text: file ? `${file.split(/[\\/]/).slice(-2).join("/")}:${line}` : String(id), title: file }));
  if (title) place.append(make("span", { text: title }));
  if (!Object.keys(scores).length) {
    if (similarity !== null) place.append(make("span", { text: `cosine ${similarity.toFixed(3)}` }));
    if (words !== null) place.append(make("span", { text: `BM25 ${words.toFixed(2)}` }));
  }
  if (other) place.append(elsewhere(found, other));
  return make("li", {}, place, passage, ...parts(found, longest));
}

const search = panel(["query", "mode"], async (signal) => {
  const query = get("query").value.trim();
  const mode = get("mode").value;
  // The indexes of the chosen models, side by side.
  const wanted = chosen().flatMap((model) => indexes.filter((one) => one.model === model));
  const found = query
    ? await Promise.all(
        wanted.map(async ({ name, model }) => ({
          name,
          model,
          ...(await ask("search", { query, index: name, k: SHOWN_HITS, mode }, signal)),
        })),
      )
    : [];
  // By words alone all models find the same.
  const several = new Set(found.map((one) => one.model)).size > 1 && mode !== "words";
  const shown = found.map((one, number) => {
    const positive = one.hits.map(({ scores }) => Object.values(scores).reduce((sum, value) => sum + Math.max(0, value), 0));
    const other = several && found.length === 2 ? found[1 - number] : null;
    const content = one.hits.length
      ? make("ol", {}, ...one.hits.map((each, rank) => hit(each, rank, Math.max(...positive, 1e-9), other)))
      : make("p", { text: "Nothing found." });
    // What was made of the query: words left out, phrases, words that are in no passage.
    const told = one.told.map((text) => make("p", { className: "told", text }));
    const head = make("h3", { text: one.name === one.model ? one.name : `${one.name}, by ${one.model}` });
    return make("div", {}, head, ...told, content);
  });
  if (query && !wanted.length) shown.push(make("p", { text: "The chosen model has no index." }));
  get("scale").hidden = !found.some((one) => one.hits.length);
  get("scale").textContent = SCALES[mode] + (several ? INCOMPARABLE : "");
  get("hits").replaceChildren(...shown);
});

// The command that compares an adapted model with its base.
function besideBase(models) {
  const alone = models.find((model) => model.base && !model.base_served && indexes.some((one) => one.model === model.name));
  get("base").hidden = !alone;
  if (alone) {
    get("base").textContent =
      `${alone.name} was made from ${alone.base}. To see the hits of both side by side, index the same files with ` +
      `${alone.base}, and serve both models with both indexes.`;
  }
}

async function everything() {
  for (const note of document.querySelectorAll(".two")) note.hidden = chosen().length < 2;
  for (const start of [search, pair, negation, list]) await start();
}

async function begin() {
  try {
    const { models, indexes: there } = await ask("info");
    indexes = there;
    const names = models.map((model) => model.name);
    get("first").replaceChildren(...names.map((name) => make("option", { text: name, value: name })));
    get("second").replaceChildren(make("option", { text: "none", value: "" }), ...names.map((name) => make("option", { text: name, value: name })));
    // An adapted model and its base, if both are served.
    const adapted = models.find((model) => model.base_served);
    get("first").value = adapted ? adapted.name : names[0];
    get("second").value = adapted ? adapted.base_served : names[1] || "";
    besideBase(models);
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
