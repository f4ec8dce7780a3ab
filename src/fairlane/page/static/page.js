// What the browser does itself: keeps the view as the server tells it, keeps times going, sends
// what people do, and listens to keys. Texts of users only ever become text nodes.

const body = document.body;
const $ = (id) => document.getElementById(id);
let ahead = Number(body.dataset.now) - Date.now(); // how far the server's clock is ahead of ours

// Times

function length(ms) {
  const s = Math.max(0, Math.floor(ms / 1000)), two = (n) => String(n).padStart(2, "0");
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor((s % 86400) / 3600)}h`;
}

function tick(root = document) {
  const now = Date.now() + ahead;
  for (const each of root.querySelectorAll("time[data-since]")) put(each, length(now - each.dataset.since));
  for (const each of root.querySelectorAll("time[data-until]")) put(each, length(each.dataset.until - now));
  for (const each of root.querySelectorAll("time[data-at]")) put(each, clock(Number(each.dataset.at), now));
}

function clock(at, now) {
  const day = new Date(at), same = day.toDateString() === new Date(now).toDateString();
  const time = day.toLocaleTimeString("en-GB");
  return same ? time : `${day.toLocaleDateString(undefined, { month: "short", day: "numeric" })} ${time.slice(0, 5)}`;
}

function put(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

// What the server tells: parts of the view, changed in place so that focus and scrolling stay

function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes])
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.matches("time")) return; // the browser writes these itself
  children(old, fresh);
}

function children(old, fresh) {
  const key = (node) => node.dataset?.key ?? node.id ?? "";
  const known = new Map([...old.children].filter(key).map((node) => [key(node), node]));
  let place = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const name = key(next) || "";
    let same = name ? known.get(name) : place;
    if (same && !name && key(same)) same = null;
    if (same && same.nodeName === next.nodeName) {
      if (same === place) place = place.nextSibling;
      else old.insertBefore(same, place);
      morph(same, next);
    } else old.insertBefore(next, place);
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

// What the server wrote: every text in it is escaped there.
function markup(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  return box.content;
}

function show(regions) {
  for (const [id, html] of Object.entries(regions)) {
    const old = $(id);
    if (!old) continue;
    const fresh = markup(html).firstElementChild;
    if (fresh) morph(old, fresh);
  }
  tick();
  instants();
  document.dispatchEvent(new Event("fresh"));
  sayNumbers();
}

// The connection: it comes back by itself, also when the server was away

let source = null, waiting = 0, heard = 0;

function connect() {
  clearTimeout(waiting);
  source?.close();
  source = new EventSource(`/page/live?view=${encodeURIComponent(body.dataset.view)}`);
  source.addEventListener("hello", (event) => {
    const told = JSON.parse(event.data);
    if (told.version !== body.dataset.version) return location.reload();
    ahead = told.now - Date.now();
    connected(true);
  });
  source.addEventListener("regions", (event) => {
    connected(true);
    show(JSON.parse(event.data));
  });
  source.addEventListener("beat", () => connected(true));
  source.onerror = () => {
    connected(false);
    if (source.readyState === EventSource.CLOSED) refused();
  };
}

async function refused() {
  again();
  const answer = await fetch("/page/known").catch(() => null);
  if (answer?.status === 401) put($("live-words"), "Signed out: `fairlane link` lets you in");
}

function again() {
  source?.close();
  clearTimeout(waiting);
  waiting = setTimeout(connect, 1000);
}

function connected(is) {
  if (is) heard = Date.now();
  $("live").className = `live ${is ? "on" : "off"}`;
  put($("live-words"), is ? "Live" : "Reconnecting…");
}

// Hidden windows let go: a browser has few connections for one server.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) source?.close();
  else connect();
});
setInterval(() => {
  tick();
  if (!document.hidden && heard && Date.now() - heard > 25000) { connected(false); again(); heard = Date.now(); }
}, 1000);

// What is said aloud: numbers that changed, not oftener than every fifteen seconds

let said = "", saidAt = 0;

function sayNumbers() {
  const cells = [...document.querySelectorAll("#numbers dl > div")];
  const words = cells.map((each) => `${each.querySelector("dt").textContent} ${each.querySelector("dd").textContent}`);
  const now = words.slice(0, 5).join(", ");
  if (!now || now === said || Date.now() - saidAt < 15000) return;
  if (said) put($("said"), now);
  said = now;
  saidAt = Date.now();
}

// Messages

function toast(message, hint = "", bad = false, go = null) {
  const box = document.createElement("div");
  box.className = bad ? "toast bad" : "toast";
  box.setAttribute("role", bad ? "alert" : "status");
  for (const words of [message, hint].filter(Boolean)) {
    const line = document.createElement("p");
    line.textContent = words;
    box.append(line);
  }
  if (go) box.lastChild.append(" ", Object.assign(document.createElement("a"), { href: go, textContent: "Open it" }));
  $("toasts").append(box);
  setTimeout(() => box.remove(), bad ? 9000 : 4000);
}

// What people do

async function send(action, values) {
  const answer = await fetch(`/page/do/${action}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values),
  }).catch(() => null);
  if (!answer) return { error: { message: "The server cannot be reached.", hint: "Look whether it was done before you do it again." } };
  const told = await answer.json().catch(() => null);
  return told ?? { error: { message: `The server answered ${answer.status}.`, hint: "Open the page again." } };
}

async function press(button) {
  if (button.dataset.confirm && !(await sure(button.dataset.confirm))) return;
  button.disabled = true;
  const told = await send(button.dataset.do, JSON.parse(button.dataset.with));
  button.disabled = false;
  if (told.error) toast(told.error.message, told.error.hint, true);
  else toast(told.message);
}

function sure(words) {
  put($("confirm-text"), words);
  const box = $("dialog-confirm");
  box.showModal();
  return new Promise((done) => {
    const yes = () => { done(true); box.close(); };
    $("confirm-yes").addEventListener("click", yes, { once: true });
    box.addEventListener("close", () => { $("confirm-yes").removeEventListener("click", yes); done(false); }, { once: true });
  });
}

function values(form) {
  const found = {};
  for (const each of form.elements) {
    if (!each.name) continue;
    const changed = each.value !== each.defaultValue;
    if (form.dataset.do === "edit" && each.type !== "hidden" && !changed) continue;
    found[each.name] = each.dataset.instant !== undefined && each.value ? new Date(each.value).toISOString() : each.value;
  }
  return found;
}

async function submit(form) {
  const button = form.querySelector("[type=submit]"), error = form.querySelector(".error");
  button.disabled = true;
  error.hidden = true;
  const told = await send(form.dataset.do, values(form));
  button.disabled = false;
  if (told.error) {
    error.textContent = [told.error.message, told.error.hint].filter(Boolean).join("\n");
    error.hidden = false;
    return;
  }
  form.closest("dialog").close();
  if (form.dataset.do === "add") form.reset();
  toast(told.message, "", false, told.go);
}

async function open(name) {
  const box = $(`dialog-${name}`);
  if (!box || document.querySelector("dialog[open]")) return;
  const form = box.querySelector("form");
  if (form && name !== "add") form.reset();
  form?.querySelector(".error")?.setAttribute("hidden", "");
  instants();
  box.showModal();
  const answer = await fetch("/page/known").catch(() => null);
  if (answer?.ok) offer(await answer.json());
}

function offer(known) {
  for (const name of ["projects", "kinds", "agents", "groups", "caps"]) {
    const id = `known-${name}`;
    const list = $(id) ?? Object.assign(document.createElement("datalist"), { id });
    list.replaceChildren(...known[name].map((value) => Object.assign(document.createElement("option"), { value })));
    $("known").append(list);
  }
  caps = new Map(known.cap_values.map((pair) => [pair.slice(0, pair.lastIndexOf("=")), pair.slice(pair.lastIndexOf("=") + 1)]));
  capValue();
}

let caps = new Map();

function capValue() {
  const form = $("dialog-cap").querySelector("form"), value = form.elements.value;
  if (document.activeElement !== value || !value.value) value.value = caps.get(form.elements.scope.value) ?? "";
}

function instants() {
  for (const each of document.querySelectorAll("[data-instant]")) {
    if (!each.dataset.instant) continue;
    const at = new Date(Number(each.dataset.instant));
    const local = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
    if (each.defaultValue !== local) each.defaultValue = local;
  }
}

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest(selector);
  if (at("[data-do]:is(button)")) press(at("[data-do]"));
  else if (at("[data-open]")) open(at("[data-open]").dataset.open);
  else if (at("[data-close]")) at("dialog").close();
  else if (at("[data-go]")) location.href = at("[data-go]").dataset.go;
  else if (event.target.matches("dialog")) event.target.close(); // the ground behind it
});
document.addEventListener("submit", (event) => {
  if (!event.target.dataset.do) return;
  event.preventDefault();
  submit(event.target);
});
document.addEventListener("change", (event) => {
  if (event.target.closest("form[data-auto]")) event.target.form.requestSubmit();
  if (event.target.name === "scope") capValue();
});

// Empty filters stay out of the address.
document.querySelector("form[data-auto]")?.addEventListener("formdata", (event) => {
  for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
});

// The theme: the system's, light, dark

const themes = ["system", "light", "dark"];

function sayTheme() {
  const now = document.documentElement.dataset.theme ?? "system";
  $("theme").setAttribute("aria-label", `Theme: ${now}`);
  $("theme").title = `Theme: ${now}`;
  return now;
}
$("theme").addEventListener("click", () => {
  const next = themes[(themes.indexOf(sayTheme()) + 1) % 3];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  localStorage.setItem("fairlane-theme", next);
  sayTheme();
});

// Words beside what the pointer is on

document.addEventListener("pointerover", (event) => {
  const on = event.target.closest?.("[data-tip]"), tip = $("tip");
  tip.hidden = !on;
  if (!on) return;
  tip.textContent = on.dataset.tip;
  const box = on.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const left = Math.min(innerWidth - own.width - 8, Math.max(8, box.left + box.width / 2 - own.width / 2));
  const above = box.top - own.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
});

// Keys

let before = "";

function step(by) {
  const rows = [...document.querySelectorAll("[data-list] > li")];
  if (!rows.length) return;
  const now = rows.indexOf(document.activeElement.closest("[data-list] > li"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, now + by))];
  next.querySelector("a.title").focus();
  next.scrollIntoView({ block: "nearest" });
}

const keys = {
  "?": () => open("keys"),
  a: () => open("add"),
  "/": () => $("find").focus(),
  p: () => document.querySelector("#switch button")?.click(),
  j: () => step(1),
  k: () => step(-1),
  f: () => $("transcript-find")?.focus(),
  c: () => $("changes")?.querySelector("summary, a, h2")?.focus(),
  "g o": () => { location.href = "/"; },
  "g t": () => { location.href = "/tasks"; },
  "g g": () => { location.href = "/groups"; },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const typing = event.target.closest("input:not([type=checkbox],[type=radio]), textarea, select");
  if (event.key === "Escape" && typing && !event.target.closest("dialog")) event.target.blur();
  if (typing || document.querySelector("dialog[open]")) return;
  const both = `${before} ${event.key}`;
  before = event.key === "g" && before !== "g" ? "g" : "";
  const found = keys[both] ?? (before ? null : keys[event.key]);
  if (found) { event.preventDefault(); found(); }
});

sayTheme();
tick();
instants();
sayNumbers();
if ($("transcript")) {
  const beside = new URL(import.meta.url);
  beside.pathname = beside.pathname.replace("page.js", "task.js");
  import(beside).then((task) => task.begin({ $, put, tick, markup }));
}
connect();
