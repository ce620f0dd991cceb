// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// The panel with the details of one service: its problems, how its exports are merged, and a trace on request.

import { byId, clock, counted, el } from "./dom.js";
import { endpointsOf, problemsOf } from "./state.js";

const panel = byId("details");
let wanted; // the key of the service that is open

// current returns the key of the service that is open, undefined if there is none.
export function current() {
  return wanted;
}

// close closes the panel.
export function close() {
  wanted = undefined;
  panel.hidden = true;
  panel.replaceChildren();
}

async function get(path, key) {
  const [namespace, name] = key.split("/");
  const response = await fetch(`/api/${path}?${new URLSearchParams({ namespace, name })}`);
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

// open shows a service, and returns its state. It returns undefined if another service was opened meanwhile.
export async function open(key, onClose) {
  const again = wanted === key;
  wanted = key;
  let details;
  let failure;
  try {
    details = await get("service", key);
  } catch (error) {
    failure = error.message;
  }
  if (wanted !== key) return undefined;
  const body = el("div", { class: "body" }, ...(failure ? [el("p", { class: "failure" }, failure)] : sections(key, details)));
  if (again && !panel.hidden) {
    panel.querySelector(".body").replaceWith(body);
    return details?.service;
  }
  const result = el("div", { class: "trace" });
  panel.replaceChildren(
    el("div", { class: "title" }, el("h2", { id: "details-title" }, key), el("button", { type: "button", "aria-label": "close", on: { click: onClose } }, "✕")),
    el("p", {}, el("button", { type: "button", id: "run-trace", on: { click: (event) => trace(key, result, event.currentTarget) } }, "Trace"),
      " follows the service from its pods to its DNS name, with dry-run requests"),
    result, body);
  panel.hidden = false;
  return details?.service;
}

function section(title, ...content) {
  return el("section", {}, el("h3", {}, title), ...content);
}

function table(head, rows) {
  return el("table", {}, el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((text) => el("td", {}, String(text ?? "")))))));
}

function list(items) {
  return el("ul", {}, ...items.map((text) => el("li", {}, text)));
}

// sections returns what is known of a service, the problems first. It leaves out what is empty.
function sections(key, { service, explanation }) {
  const result = [];
  const add = (items, title, content) => { if (items?.length) result.push(section(title, content(items))); };
  add(problemsOf({ service: key }), "Problems", (all) => el("ul", { class: "problems" }, ...all.map((p) => el("li", { class: p.severity },
    `${p.reason}${p.member ? ` in ${p.member}` : ""}: ${p.message}`, el("p", { class: "next" }, p.next)))));
  if (!service) result.push(el("p", {}, "The hub has no records of this service."));
  if (!explanation) return result;
  add(explanation.exports, "Exports, oldest first", (all) => table(["cluster", "since", "ready", "note"], all.map((e) => [
    e.cluster, new Date(e.since).toLocaleString(), endpointsOf(e.readyEndpoints, e.endpoints, e.atLeast),
    [e.state === "Connected" ? "" : e.state, e.grantedTo ? `granted to ${e.grantedTo.join(", ") || "no cluster"}` : ""].filter(Boolean).join("; "),
  ])));
  add(service?.importers, "Imported by", (all) => el("p", {}, all.join(", ")));
  add(service?.paths?.filter((p) => p.path !== "Gateways" || p.message), "Paths", (all) => table(["importer", "exporter", "path", "seen"],
    all.map((p) => [p.importer, p.exporter, p.path, p.message])));
  add(explanation.fields, "What counts", (all) => table(["field", "value", "from", "who differs"], all.map((f) => [
    f.field, f.using, f.from || "all exports", (f.disagree ?? []).map((d) => `${d.cluster}: ${d.says}`).join("; "),
  ])));
  add(explanation.ports, "Ports", (all) => table(["port", "protocol", "from", "served by"], all.map((p) => [p.port, p.appProtocol, p.from, p.servedBy.join(", ")])));
  add(explanation.lostPorts, "Ports that are not served as exported", (all) => list(all.map((p) => `${p.port} of ${p.cluster}: ${p.why}`)));
  add(explanation.preferences, "Preferences", (all) => list(all.map((p) => `${p.importer}: ${p.message}`)));
  add(explanation.access, "Access through gateways, the first rule that matches decides", (all) => table(["cluster", "direction", "action", "clients", "rule"],
    all.flatMap((a) => [...(a.rules ?? []).map((r) => [a.cluster, a.direction, r.action, r.clients, r.rule]), ...(a.reason ? [[a.cluster, a.direction, "?", "", a.reason]] : [])])));
  add(explanation.refused, "Refused", list);
  return result;
}

// trace shows the hops of a service.
async function trace(key, into, button) {
  button.disabled = true;
  into.replaceChildren(el("p", { role: "status" }, "tracing"));
  try {
    const { steps } = await get("trace", key);
    const marks = { ok: "✔", note: "•", broken: "✖" };
    const broken = steps.find((s) => s.state === "broken");
    const unknown = steps.find((s) => !(s.state in marks));
    const verdict = broken ? `broken at hop "${broken.hop}"` : unknown ? "it is not known whether it works" : "works, as far as can be seen from here";
    into.replaceChildren(section("Trace", el("p", { class: broken ? "error" : unknown ? "warning" : "good", role: "status" },
      `${clock(Date.now())}: ${verdict} (${counted(steps.length, "step")})`),
    el("ol", { class: "steps" }, ...steps.map((s) => el("li", { class: { broken: "error", ok: "good", note: "" }[s.state] ?? "warning" },
      `${marks[s.state] ?? "?"} ${s.cluster ? `${s.cluster}: ` : ""}${s.hop}: ${s.found}`, s.fix ? el("p", { class: "next" }, s.fix) : undefined)))));
  } catch (error) {
    into.replaceChildren(el("p", { class: "failure" }, error.message));
  }
  button.disabled = false;
}
