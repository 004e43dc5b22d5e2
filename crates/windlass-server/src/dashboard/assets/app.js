// Makes pages live and adds keys. Everything here is extra: pages read and act without it.
"use strict";

const base = document.body.dataset.base;

// Relative times: counted on once a second from the exact time that the server sent.
const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

function relative(ms, now) {
  const seconds = Math.trunc((ms - now) / 1000);
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const [length, unit] = UNITS.find(([length]) => size >= length);
  const text = Math.floor(size / length) + unit;
  return seconds > 0 ? "in " + text : text + " ago";
}

function countTimes(root) {
  const now = Date.now() + skew;
  for (const time of root.querySelectorAll("time[data-ms]")) {
    const text = relative(Number(time.dataset.ms), now);
    if (time.textContent !== text) time.textContent = text;
  }
}

// The server's clock may differ from this machine's.
let skew = 0;
fetch(base + "/healthz", { cache: "no-store" }).then((response) => {
  const date = Date.parse(response.headers.get("date") || "");
  if (Number.isFinite(date) && Math.abs(date - Date.now()) > 2000) skew = date - Date.now();
}).catch(() => {});
setInterval(() => { if (!document.hidden) countTimes(document); }, 1000);

// Regions: what is between <!--live name--> and <!--/live name-->.
function findRegion(name) {
  const walker = document.createTreeWalker(document.getElementById("main"), NodeFilter.SHOW_COMMENT);
  let start = null;
  while (walker.nextNode()) {
    const text = walker.currentNode.data;
    if (text === "live " + name) start = walker.currentNode;
    else if (text === "/live " + name && start) return [start, walker.currentNode];
  }
  return null;
}

function replaceRegion(name, html) {
  const ends = findRegion(name);
  if (!ends) return;
  const range = document.createRange();
  range.setStartAfter(ends[0]);
  range.setEndBefore(ends[1]);
  const active = document.activeElement;
  const inside = active && active !== document.body && range.intersectsNode(active);
  // Nobody likes a field that empties itself.
  if (inside && active.matches("input, select, textarea")) return;
  const open = [...document.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
  const mark = inside ? focusMark(active) : null;
  const current = rows().indexOf(currentRow);
  const scrolled = [...document.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  range.deleteContents();
  range.insertNode(range.createContextualFragment(html));
  for (const summary of document.querySelectorAll("details > summary")) {
    if (open.includes(summary.textContent)) summary.parentElement.open = true;
  }
  [...document.querySelectorAll(".scroll")].forEach((box, place) => { box.scrollLeft = scrolled[place] || 0; });
  if (current >= 0) selectRow(current, false);
  if (mark) refocus(mark);
  countTimes(document);
}

function focusMark(element) {
  return { target: element.getAttribute("formaction") || element.getAttribute("href"), row: rows().indexOf(element.closest("[data-row]")) };
}

function refocus(mark) {
  const same = [...document.querySelectorAll("[formaction], a[href]")]
    .find((element) => (element.getAttribute("formaction") || element.getAttribute("href")) === mark.target);
  if (same) same.focus({ preventScroll: true });
}

// The live view of this page. A hidden tab needs none.
let source = null;

function pulse(state, words) {
  const mark = document.getElementById("pulse");
  if (!mark) return;
  mark.dataset.state = state;
  mark.title = words;
  mark.querySelector(".pulse-word").textContent = state;
}

function watch() {
  const page = document.body.dataset.live;
  if (!page || source || document.hidden) return;
  source = new EventSource(base + "/live?page=" + encodeURIComponent(page));
  source.addEventListener("open", () => pulse("live", "This page changes by itself"));
  source.addEventListener("region", (event) => {
    const end = event.data.indexOf("\n");
    replaceRegion(event.data.slice(0, end), event.data.slice(end + 1));
  });
  source.onerror = () => pulse("still", "Not connected; trying again");
}

function unwatch() {
  if (source) source.close();
  source = null;
  pulse("still", "Not live");
}

document.addEventListener("visibilitychange", () => (document.hidden ? unwatch() : watch()));
window.addEventListener("pagehide", unwatch);
window.addEventListener("pageshow", watch);

// Rows: j and k move, Enter opens, r and x act.
let currentRow = null;

function rows() { return [...document.querySelectorAll("[data-row]")]; }

function selectRow(place, scroll = true) {
  const all = rows();
  if (currentRow) currentRow.classList.remove("current");
  currentRow = all[Math.max(0, Math.min(place, all.length - 1))] || null;
  if (!currentRow) return;
  currentRow.classList.add("current");
  if (scroll) {
    currentRow.scrollIntoView({ block: "nearest" });
    const link = currentRow.querySelector("a[href]");
    if (link) link.focus({ preventScroll: true });
  }
}

function press(key) {
  const scope = currentRow && currentRow.querySelector(`[data-key="${key}"]`) ? currentRow : document;
  const button = scope === document && rows().length > 0 && document.querySelectorAll(`[data-key="${key}"]`).length > 1
    ? null : scope.querySelector(`[data-key="${key}"]`);
  if (!button) return false;
  const needs = button.dataset.needs && document.getElementById(button.dataset.needs);
  if (needs && !needs.value.trim()) needs.focus();
  else button.click();
  return true;
}

let going = false;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing) return;
  if (going) {
    going = false;
    const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  const place = rows().indexOf(currentRow);
  const actions = {
    "/": () => document.getElementById("search")?.focus(),
    "?": () => document.getElementById("help").showModal(),
    g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
    j: () => selectRow(place + 1),
    k: () => selectRow(place - 1),
    r: () => press("r"),
    x: () => press("x"),
  };
  const action = actions[event.key];
  if (!action || document.getElementById("help").open) return;
  event.preventDefault();
  action();
}

document.addEventListener("keydown", onKey);

// The playground changes while its line is typed.
const play = document.querySelector("[data-play]");

if (play) {
  let timer = null;
  let last = 0;
  const show = async () => {
    const turn = ++last;
    const query = new URLSearchParams(new FormData(play)).toString();
    const response = await fetch(play.action + "?" + query, { headers: { accept: "text/html" } }).catch(() => null);
    if (!response || !response.ok || turn !== last) return;
    const text = await response.text();
    const region = text.split("<!--live play-->")[1]?.split("<!--/live play-->")[0];
    if (region !== undefined) replaceRegion("play", region);
    history.replaceState(null, "", play.action + "?" + query);
    const line = document.getElementById("save-line");
    if (line) line.value = document.getElementById("line").value;
  };
  play.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(show, 150); });
}

countTimes(document);
watch();
