// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// The table of services: a row for each service, a column for each cluster. Only the visible rows exist as elements.

import { byId, counted, el } from "./dom.js";
import { endpointsOf, pathWords, state, stateWords } from "./state.js";

// Sizes in pixels, as in style.css.
const rowHeight = 28;
const nameWidth = 340;
const columnWidth = 44;
const spare = 6; // rows beyond the visible ones

const grid = byId("grid");
const rows = byId("rows");
let open = () => {};
let first = -1;
let last = -1;

// start calls onOpen with a service that is opened.
export function start(onOpen) {
  open = onOpen;
  grid.addEventListener("scroll", () => draw(), { passive: true });
  grid.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page(), PageDown: page(), Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      move(steps[event.key]);
      event.preventDefault();
    } else if (event.key === "Enter" && state.key) {
      open(state.key);
    }
  });
  new ResizeObserver(() => draw()).observe(grid);
}

function page() {
  return Math.max(1, Math.floor(grid.clientHeight / rowHeight) - 5);
}

// move selects another row, so many rows from the selected one.
export function move(by) {
  if (state.shown.length === 0) return;
  const at = state.shown.findIndex((s) => s.key === state.key);
  const last = state.shown.length - 1;
  const to = at < 0 ? (by === Infinity ? last : 0) : Math.min(last, Math.max(0, at + by));
  state.key = state.shown[to].key;
  const top = to * rowHeight;
  const height = grid.clientHeight - byId("columns").offsetHeight;
  if (top < grid.scrollTop) grid.scrollTop = top;
  if (top + rowHeight > grid.scrollTop + height) grid.scrollTop = top + rowHeight - height;
  redraw();
}

// redraw draws the table after the data or the selection has changed.
export function redraw() {
  drawColumns();
  byId("services-title").textContent = state.shown.length === state.services.size
    ? `Services (${state.services.size})` : `Services (${state.shown.length} of ${state.services.size})`;
  rows.style.height = `${state.shown.length * rowHeight}px`;
  rows.style.width = `${nameWidth + state.members.length * columnWidth}px`;
  grid.setAttribute("aria-rowcount", state.shown.length + 1);
  grid.setAttribute("aria-colcount", state.members.length + 1);
  first = last = -1;
  draw();
}

let drawnColumns = "";

function drawColumns() {
  const signature = JSON.stringify([state.members.map((m) => [m.id, m.network, m.state, m.severity, !m.context]), state.cluster]);
  if (signature === drawnColumns) return;
  drawnColumns = signature;
  const columns = byId("columns");
  columns.replaceChildren(el("span", { class: "corner", role: "columnheader" }, "namespace/name"));
  columns.style.width = `${nameWidth + state.members.length * columnWidth}px`;
  let network;
  for (const member of state.members) {
    const begins = member.network !== network;
    network = member.network;
    const title = `${member.id}: ${stateWords[member.state] ?? member.state}, network ${member.network}${member.context ? "" : ", not read"}`;
    columns.append(el("span", {
      class: `column ${member.state === "Connected" ? "" : "silent"} ${begins ? "begins" : ""} ${member.id === state.cluster ? "chosen" : ""}`,
      role: "columnheader", title,
    }, el("span", {}, member.id)));
  }
}

// draw draws the rows that are visible.
function draw() {
  const from = Math.max(0, Math.floor(grid.scrollTop / rowHeight) - spare);
  const to = Math.min(state.shown.length, Math.ceil((grid.scrollTop + grid.clientHeight) / rowHeight) + spare);
  if (from === first && to === last) return;
  [first, last] = [from, to];
  const positions = state.members.map((member, position) => ({ member, position }));
  rows.replaceChildren(...state.shown.slice(from, to).map((service, i) => row(service, from + i, positions)));
  const selected = rows.querySelector("[aria-selected=true]");
  if (selected) grid.setAttribute("aria-activedescendant", selected.id);
  else grid.removeAttribute("aria-activedescendant");
}

function row(service, index, positions) {
  const selected = service.key === state.key;
  const node = el("div", {
    class: `row ${service.severity}`, role: "row", id: `row-${index}`, "aria-rowindex": index + 2, "aria-selected": selected, "data-key": service.key,
    on: { click: () => { state.key = service.key; redraw(); open(service.key); } },
  }, el("span", { class: "name", role: "rowheader", title: service.key },
    el("span", { class: "mark" }, { error: "✖", warning: "▲" }[service.severity] ?? ""),
    el("span", { class: "namespace" }, `${service.namespace}/`), service.name,
    el("span", { class: "ports" }, ports(service))));
  node.style.top = `${index * rowHeight}px`;
  for (const { member, position } of positions) {
    const content = cell(service, member);
    if (!content) continue;
    content.style.left = `${nameWidth + position * columnWidth}px`;
    node.append(content);
  }
  return node;
}

function ports(service) {
  const all = service.ports ?? [];
  const more = all.length > 1 ? ` +${all.length - 1}` : "";
  return `${service.type === "Headless" ? "headless " : ""}${all[0] ?? ""}${more}`;
}

// cell returns the state of a service in a cluster; undefined if it has none there.
function cell(service, member) {
  const letter = service.imports[member.column];
  const export_ = service.exporters.find((e) => e.cluster === member.id);
  if (!export_ && letter === ".") return undefined;
  const words = [];
  if (export_) {
    words.push(export_.atLeast ? `exports it, ready endpoints: ${endpointsOf(export_.ready, export_.all, true)}` : `exports it, ${export_.ready} of ${counted(export_.all, "endpoint")} ready`);
    if (export_.differs) words.push("differs from the oldest export");
  }
  if (letter !== "." && !(export_ && letter === "-")) words.push(pathWords[letter] ?? pathWords["?"]);
  const title = `${member.id} ${words.join("; ")}`;
  if (!export_) return el("span", { class: "cell", role: "gridcell", title, "aria-label": title }, el("span", { class: dotClass(letter) }));
  const kind = `badge ${export_.ready > 0 || export_.atLeast ? "" : "hollow"} ${export_.differs ? "differs" : ""}`;
  const worse = "?ux".includes(letter) ? el("span", { class: `${dotClass(letter)} small` }) : undefined;
  return el("span", { class: "cell", role: "gridcell", title, "aria-label": title }, el("span", { class: kind }, endpointsOf(export_.ready, export_.all, export_.atLeast)), worse);
}

function dotClass(letter) {
  return `dot ${{ d: "direct", g: "gateways", u: "unreached", x: "unreached", "-": "unread" }[letter] ?? "unknown"}`;
}

// drawLegend explains the cells.
export function drawLegend() {
  const entry = (sample, text) => el("span", {}, sample, ` ${text}`);
  byId("legend").replaceChildren(
    entry(el("span", { class: "badge" }, "2/3"), "exports it: ready/all endpoints"),
    entry(el("span", { class: "badge hollow" }, "0/3"), "none is ready"),
    entry(el("span", { class: "badge" }, "2+"), "two or more are ready; ? if the number is not known"),
    entry(el("span", { class: "badge differs" }, "1/1"), "differs from the oldest export"),
    entry(el("span", { class: "dot direct" }), "imports it"),
    entry(el("span", { class: "dot gateways" }), "through gateways"),
    entry(el("span", { class: "dot unknown" }), "not known whether it can use all exporters"),
    entry(el("span", { class: "dot unreached" }), "cannot use an exporter"),
    entry(el("span", { class: "dot unread" }), "is not read"),
  );
}
