// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// The page: it receives updates from the command, and draws the parts.

import { byId, clock, counted, el, show } from "./dom.js";
import * as details from "./details.js";
import * as map from "./map.js";
import { apply, select, state } from "./state.js";
import * as table from "./table.js";

// maxListed limits the list of problems. The search, and the table, find the others.
const maxListed = 50;

let flows; // of the service that is open
let refreshing = false;

function drawAll() {
  drawSummary();
  drawNotices();
  drawProblems();
  drawMap();
  drawChanges();
  table.redraw();
}

function drawMap() {
  map.draw(flows, chooseCluster);
}

function drawSummary() {
  const errors = state.problems.filter((p) => p.severity === "error").length;
  const silent = state.members.filter((m) => m.state !== "Connected").length;
  byId("summary").textContent = [
    counted(state.members.length, "cluster"), silent ? `${silent} not connected` : "", counted(state.services.size, "service"),
    counted(errors, "error"), counted(state.problems.length - errors, "warning"),
  ].filter(Boolean).join(" · ");
  byId("summary").title = `hub ${state.hub}`;
  document.title = errors ? `(${errors}) Clusterset` : "Clusterset";
}

function drawNotices() {
  const unread = state.members.filter((m) => !m.context).map((m) => m.id);
  const some = unread.length > 5 ? counted(unread.length, "cluster") : unread.join(", ");
  show(byId("notices"), ...[
    ...state.unanswered.map((u) => el("p", { class: "error" },
      `${u.context} does not answer since ${clock(u.since)}: what is shown of it was read before (${u.error})`)),
    ...state.unreached.map((u) => el("p", { class: "warning" }, `context ${u.context} is left out: ${u.error}`)),
    unread.length ? el("p", {}, `Only what the hub stores of ${some} is known: --all-contexts or --contexts reads more clusters.`) : undefined,
  ].filter(Boolean));
}

// drawProblems lists the problems that match the search, in the order of the command.
function drawProblems() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = state.problems.filter((p) => (!state.cluster || p.member === state.cluster || !p.member) &&
    words.every((word) => `${p.service ?? ""} ${p.member ?? ""} ${p.reason} ${p.message}`.toLowerCase().includes(word)));
  byId("problems-title").textContent = `Problems (${found.length === state.problems.length ? found.length : `${found.length} of ${state.problems.length}`})`;
  const items = found.slice(0, maxListed).map((p) => el("li", { class: p.severity }, el("button", {
    type: "button", "data-service": p.service, on: { click: () => (p.service ? openService(p.service) : chooseCluster(p.member ?? "")) },
  }, el("strong", {}, `${p.severity === "error" ? "✖" : "▲"} ${p.reason}`), ` ${[p.member, p.service].filter(Boolean).join(" ")}`),
  el("p", {}, p.message), el("p", { class: "next" }, p.next)));
  if (found.length > maxListed) items.push(el("li", { class: "more" }, `${found.length - maxListed} more: search for them, or show only services with problems`));
  if (found.length === 0) items.push(el("li", { class: "good" }, state.problems.length ? "No problems match." : "No problems."));
  show(byId("problems"), ...items);
}

function drawChanges() {
  const items = state.changes.toReversed().map((c) => el("li", { class: c.kind },
    el("time", { datetime: c.time }, clock(c.time)), " ",
    c.service ? el("button", { type: "button", on: { click: () => openService(c.service) } }, c.service) : el("strong", {}, c.member ?? ""), ` ${c.text}`));
  show(byId("changes"), ...(items.length ? items : [el("li", {}, "Nothing has changed since the command began.")]));
}

// chooseCluster shows only the services of a cluster, or all if it is chosen already.
function chooseCluster(id) {
  state.cluster = state.cluster === id ? "" : id;
  filter();
  byId("map").querySelector(`[data-cluster="${CSS.escape(id)}"]`)?.focus();
}

function filter() {
  select();
  byId("grid").scrollTop = 0;
  drawProblems();
  drawMap();
  table.redraw();
}

function openService(key) {
  state.key = key;
  table.redraw();
  return showDetails(key);
}

async function showDetails(key) {
  const service = await details.open(key, closeService);
  if (details.current() !== key) return;
  flows = service ? map.flowsOf(service) : undefined;
  drawMap();
}

// refreshDetails reads the open service again, at most once a second: much of it is not in the updates, such as rules of access.
function refreshDetails() {
  if (refreshing || !details.current()) return;
  refreshing = true;
  setTimeout(() => {
    refreshing = false;
    const key = details.current();
    if (key) showDetails(key);
  }, 1000);
}

function closeService() {
  details.close();
  flows = undefined;
  drawMap();
  byId("grid").focus();
}

function connect() {
  const source = new EventSource("/api/events");
  const report = (text, kind) => {
    byId("connection").textContent = text;
    byId("connection").className = kind;
  };
  source.addEventListener("open", () => report("live", "good"));
  source.addEventListener("error", () => report(source.readyState === EventSource.CLOSED
    ? "ended: run the command again, and open its link" : "not connected: has the command ended?", "error"));
  source.addEventListener("message", (event) => {
    const update = JSON.parse(event.data);
    apply(update);
    drawAll();
    refreshDetails();
    if (update.whole) requestAnimationFrame(() => performance.mark("shown"));
  });
}

function listen() {
  byId("search").addEventListener("input", (event) => {
    state.search = event.target.value;
    filter();
  });
  byId("search").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    byId("grid").focus();
    table.move(0);
    event.preventDefault();
  });
  byId("only-problems").addEventListener("change", (event) => {
    state.onlyProblems = event.target.checked;
    filter();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== byId("search")) {
      byId("search").focus();
      event.preventDefault();
    } else if (event.key === "Escape") {
      if (details.current()) closeService();
      else if (state.cluster) chooseCluster(state.cluster);
    }
  });
  new ResizeObserver(() => drawMap()).observe(byId("overview"));
}

history.replaceState(null, "", "/"); // the token of the link has been used
table.start(openService);
table.drawLegend();
listen();
connect();
