// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// The data that the page shows, and which of it is selected.

export const state = {
  hub: "",
  members: [], // by network, then by ID; with their column in the letters of a service
  problems: [],
  links: [],
  changes: [],
  unreached: [],
  unanswered: [],
  services: new Map(), // by key
  shown: [], // the services that match the search, those with problems first
  search: "",
  onlyProblems: false,
  cluster: "", // only services that this cluster exports or imports
  key: "", // the service that is selected in the table
};

// maxChanges is the length of the list of changes, as in changes.go.
const maxChanges = 100;

// apply takes an update of the server.
export function apply(update) {
  if (update.whole) {
    state.services.clear();
    state.changes = [];
  }
  for (const service of update.services) {
    service.key = `${service.namespace}/${service.name}`;
    service.exporters ??= [];
    const exporters = service.exporters.map((e) => e.cluster);
    service.text = [service.key, service.type, ...(service.ports ?? []), ...exporters].join(" ").toLowerCase();
    state.services.set(service.key, service);
  }
  for (const key of update.gone) state.services.delete(key);
  for (const name of ["hub", "problems", "links", "unreached", "unanswered"]) state[name] = update[name];
  state.members = update.members.map((member, column) => ({ ...member, column }));
  state.members.sort((a, b) => compare(a.network, b.network) || compare(a.id, b.id));
  state.changes = [...state.changes, ...update.changes].slice(-maxChanges);
  rankServices();
  select();
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// rankServices notes the most severe problem of each service and member.
function rankServices() {
  const services = new Map();
  const members = new Map();
  for (const problem of state.problems) {
    for (const [worst, name] of [[services, problem.service], [members, problem.service ? "" : problem.member]]) {
      if (name && worst.get(name) !== "error") worst.set(name, problem.severity);
    }
  }
  for (const service of state.services.values()) service.severity = services.get(service.key) ?? "";
  for (const member of state.members) member.severity = members.get(member.id) ?? "";
}

const order = { error: 0, warning: 1, "": 2 };

// select finds the services that match the search, and sorts them.
export function select() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const member = state.members.find((m) => m.id === state.cluster);
  state.shown = [...state.services.values()].filter((service) =>
    (!state.onlyProblems || service.severity) &&
    (!member || uses(service, member)) &&
    words.every((word) => service.text.includes(word)));
  state.shown.sort((a, b) => order[a.severity] - order[b.severity] || compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

// uses reports whether a member exports or imports a service.
export function uses(service, member) {
  return imports(service, member) || service.exporters.some((e) => e.cluster === member.id);
}

// imports reports whether a member imports a service.
export function imports(service, member) {
  return !".-".includes(service.imports[member.column]);
}

// problemsOf returns the problems of a service, or of a member.
export function problemsOf({ service, member }) {
  return state.problems.filter((p) => (service ? p.service === service : p.member === member));
}

// networks returns the members of each network.
export function networks() {
  return Map.groupBy(state.members, (m) => m.network);
}

// pathWords describe the letters of importers, from the best to the worst path to the exporters.
export const pathWords = {
  d: "imports it, directly",
  g: "imports it, through gateways",
  "?": "imports it, not known whether gateways are reached",
  u: "imports it, but gateways are not reached",
  x: "imports it, but cannot use an exporter",
  "-": "is not read, so not known whether it imports it",
  ".": "does not import it",
};

// stateWords describe the states of members.
export const stateWords = { Connected: "connected", Silent: "silent", NeverConnected: "no heartbeat", Unknown: "not known" };

// endpointsOf returns the numbers of ready endpoints and of all, "2+" for two or more, and "?" if nothing is known of them.
export function endpointsOf(ready, all, atLeast) {
  if (!atLeast) return `${ready}/${all}`;
  return all > 0 ? `${ready}+` : "?";
}
