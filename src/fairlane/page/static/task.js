// One task's page: its transcript as it grows, its diff, and what its agent printed. What comes from
// the server is markup of escaped texts; what was printed only ever becomes text nodes.

let page; // what page.js has: $, put, tick, markup
const $ = (id) => page.$(id);

export function begin(tools) {
  page = tools;
  document.addEventListener("fresh", fresh);
  document.addEventListener("click", clicked);
  document.addEventListener("change", changed);
  $("transcript").addEventListener("input", (event) => { if (event.target.id === "transcript-find") narrow(); });
  $("transcript").addEventListener("keydown", searched);
  document.addEventListener("toggle", opened, true);
  changesSeen = changesNow();
  sides(document.documentElement.dataset.diff === "sides");
  document.addEventListener("wheel", reads, { passive: true });
  fresh();
  follow();
}

function fresh() {
  readTranscript();
  readChanges();
  readLog();
}

async function ask(address) {
  const answer = await fetch(address).catch(() => null);
  return answer?.ok ? answer.json() : null;
}

// The transcript: entries are added at its end while it grows, and before it when somebody asks.
// A window keeps few of them; those that it lets go can be read again.

const KEPT = 400, KEPT_MAX = 4000;
let busy = false, kept = KEPT;

const state = () => $("transcript-state")?.dataset;
const newest = () => Number($("logmark")?.dataset.attempt ?? 0);

async function readTranscript() {
  const now = state(), printed = $("logmark")?.dataset.stdout, of = newest();
  if (!of || !now || busy) return;
  const other = of !== Number(now.attempt);
  if (!other && (now.ended !== undefined || now.before !== undefined)) return;
  if (!other && printed === now.printed && $("logmark").dataset.open !== undefined) return;
  busy = true;
  const asked = new URLSearchParams({ task: $("logmark").dataset.task, attempt: of });
  if (!other) asked.set("cursor", now.cursor);
  const told = await ask(`/page/transcript?${asked}`);
  busy = false;
  if (!told) return;
  if (other) {
    $("entries").replaceChildren();
    Object.assign(now, { attempt: told.attempt, start: told.start });
  }
  now.cursor = told.cursor;
  if (!told.entries) now.printed = printed; // else there may be more
  if (told.ended) now.ended = "";
  else delete now.ended;
  $("entries").append(page.markup(told.html));
  bound();
  settle();
  follow();
  if (told.entries && !told.ended) readTranscript();
}

function bound() {
  const entries = $("entries");
  if (entries.childElementCount <= kept) return;
  while (entries.childElementCount > kept) entries.firstElementChild.remove();
  state().start = entries.firstElementChild.dataset.offset;
}

function settle() {
  $("transcript-earlier").hidden = !Number(state().start);
  page.tick($("entries"));
  narrow();
}

async function readEarlier() {
  const now = state(), box = $("transcript-box"), entries = $("entries");
  const asked = new URLSearchParams({ task: $("logmark").dataset.task, attempt: now.attempt });
  let found = 0;
  // With a filter it goes on until something fits.
  for (let parts = 0; parts < 20 && !found && Number(now.start); parts++) {
    if (entries.childElementCount >= KEPT_MAX) break;
    asked.set("before", now.start);
    const told = await ask(`/page/transcript?${asked}`);
    if (!told) break;
    const height = box.scrollHeight, at = box.scrollTop;
    entries.prepend(page.markup(told.html));
    now.start = told.start;
    kept = Math.max(kept, entries.childElementCount);
    found = narrow([...entries.children].slice(0, told.entries)) + (words() ? 0 : 1);
    box.scrollTop = at + box.scrollHeight - height;
  }
  settle();
  if (entries.childElementCount >= KEPT_MAX) $("transcript-earlier").hidden = true;
}

// Filter: entries that do not have the words are hidden; what is folded opens where it has them

const words = () => $("transcript-find").value.trim().toLowerCase();

function narrow(rows = null) {
  const wanted = words(), all = [...$("entries").children];
  let found = 0;
  for (const row of rows ?? all) {
    const fits = !wanted || row.textContent.toLowerCase().includes(wanted);
    row.hidden = !fits;
    found += fits;
    const box = row.querySelector("details");
    if (!box) continue;
    const inside = wanted && fits && !box.querySelector("summary").textContent.toLowerCase().includes(wanted);
    if (inside && !box.open) { box.open = true; box.dataset.found = ""; }
    if (!wanted && box.dataset.found !== undefined) { box.open = false; delete box.dataset.found; }
  }
  const more = Number(state().start) ? "; earlier ones are not among them yet" : "";
  if (!rows) page.put($("transcript-about"), wanted ? `${found} of ${all.length} entries${more}` : "");
  return wanted ? found : 0;
}

function searched(event) {
  if (event.target.id !== "transcript-find") return;
  if (event.key === "Escape" && event.target.value) {
    event.target.value = "";
    event.preventDefault();
    narrow();
  } else if (event.key === "Enter") {
    event.preventDefault();
    if (words() && Number(state().start) && ![...$("entries").children].some((row) => !row.hidden)) readEarlier();
    else $("transcript-box").focus();
  }
}

function follow() {
  const box = $("transcript-box");
  if (box && $("transcript-follow").checked && !words()) box.scrollTop = box.scrollHeight;
}

function reads(event) {
  if (event.deltaY >= 0) return;
  if (event.target.closest?.("#transcript-box")) $("transcript-follow").checked = false;
  if (event.target.closest?.("#log-text")) $("log-follow").checked = false;
}

// What people do

function clicked(event) {
  if (event.target.closest("#transcript-earlier")) {
    event.preventDefault();
    $("transcript-follow").checked = false;
    readEarlier();
  } else if (event.target.closest("#diff-sides")) {
    sides(document.documentElement.dataset.diff !== "sides");
  } else if (event.target.closest("#changes-now")) {
    event.preventDefault();
    showChanges("1");
  } else if (event.target.closest("a.load")) {
    event.preventDefault();
    load(event.target.closest("a.load"));
  }
}

function changed(event) {
  if (event.target.name === "stream") startLog();
  if (event.target.id === "log-follow") readLog();
  if (event.target.id === "transcript-follow") follow();
}

function opened(event) {
  if (event.target.id === "log-open") readLog();
  const link = event.target.open && event.target.querySelector?.(":scope a.load");
  if (link && event.target.matches(".file")) load(link);
}

// What it changed: asked for again when the attempt has ended; a large file when it is opened

let changesSeen = "";

function changesNow() {
  const mark = $("logmark")?.dataset;
  return mark ? `${mark.attempt} ${mark.open !== undefined} ${mark.head ?? ""}` : "";
}

function readChanges() {
  const now = changesNow();
  if (now === changesSeen) return;
  changesSeen = now;
  showChanges("");
}

async function showChanges(now) {
  const asked = new URLSearchParams({ task: $("logmark").dataset.task, attempt: newest(), now });
  const told = await ask(`/page/changes?${asked}`);
  const section = told && page.markup(told.html).firstElementChild;
  if (!section) return;
  $("changes").replaceWith(section);
  sides(document.documentElement.dataset.diff === "sides");
}

async function load(link) {
  if (link.dataset.busy) return;
  link.dataset.busy = "yes";
  const told = await ask(link.dataset.part);
  if (!told) return delete link.dataset.busy;
  const box = link.closest("p");
  box.replaceWith(page.markup(told.html));
  mirror();
}

// Side by side: lines that stayed are needed on both sides

function sides(on) {
  const root = document.documentElement;
  if (on) root.dataset.diff = "sides";
  else delete root.dataset.diff;
  localStorage.setItem("fairlane-diff", on ? "sides" : "one");
  $("diff-sides")?.setAttribute("aria-pressed", String(on));
  mirror();
}

function mirror() {
  if (document.documentElement.dataset.diff !== "sides") return;
  for (const block of document.querySelectorAll(".patch .block:not(.changed, .both)")) {
    block.classList.add("both");
    for (const line of [...block.children]) {
      const copy = line.cloneNode(true);
      copy.classList.add("copy");
      copy.setAttribute("aria-hidden", "true");
      block.append(copy);
    }
  }
}

// What the agent printed: only what is new is asked for, and it only ever becomes text

const log = { attempt: 0, offset: 0, busy: false };
const LOG_LETTERS_MAX = 400000;

function startLog() {
  log.offset = 0;
  $("log-text").replaceChildren();
  readLog(true);
}

async function readLog(begin = false) {
  const mark = $("logmark"), text = $("log-text");
  if (!newest() || !$("log-open").open) return;
  if (log.attempt !== newest()) {
    Object.assign(log, { attempt: newest(), offset: 0 });
    text.replaceChildren();
    begin = true;
  }
  const stream = document.querySelector("[name=stream]:checked").value;
  if (!begin && Number(mark.dataset[stream]) <= log.offset) return followLog();
  if (log.busy) return;
  log.busy = true;
  const asked = new URLSearchParams({ task: mark.dataset.task, attempt: log.attempt, stream });
  if (log.offset) asked.set("offset", log.offset);
  const told = await ask(`/page/log?${asked}`);
  log.busy = false;
  if (!told) return;
  const other = told.attempt !== log.attempt || told.stream !== document.querySelector("[name=stream]:checked").value;
  if (other) return readLog(true); // another one was chosen meanwhile
  if (told.text) text.append(document.createTextNode(told.text));
  while (text.textContent.length > LOG_LETTERS_MAX && text.childNodes.length > 1) text.firstChild.remove();
  log.offset = told.next;
  const cut = told.offset && !asked.has("offset") ? ", from the middle on" : "";
  page.put($("log-about"), `Attempt ${told.attempt}, ${told.stream}, ${told.size.toLocaleString("en")} bytes${cut}${told.ended ? "" : ", running"}`);
  followLog();
  if (told.next < told.size) readLog(true);
}

function followLog() {
  if ($("log-follow")?.checked) $("log-text").scrollTop = $("log-text").scrollHeight;
}
