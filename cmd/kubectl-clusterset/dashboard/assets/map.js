// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// The picture of the clusters: each network is a box, each cluster a node in it. Lines connect networks that use gateways, and the exporters
// and importers of the service that is open.

import { byId, counted, show, svg } from "./dom.js";
import { networks, state, stateWords } from "./state.js";

// Sizes in pixels.
const wide = { width: 86, height: 62, names: true };
const narrow = { width: 34, height: 34, names: false }; // of many clusters
const maxWide = 30;
const titleHeight = 26;
const gap = 28;
const radius = 13;
const maxName = 12;
const maxLines = 400;

const classOf = { d: "direct", g: "gateways", u: "unreached", x: "unreached" };

// draw draws the picture. flows are the paths of the service that is open: from, to and a letter.
export function draw(flows, onChoose) {
  const holder = byId("map");
  const width = Math.max(300, holder.clientWidth);
  const size = state.members.length > maxWide ? narrow : wide;
  const boxes = layOut(width, size);
  const places = new Map([...boxes.values()].flatMap((box) => box.nodes.map((node) => [node.member.id, node])));
  const height = Math.max(...[...boxes.values()].map((box) => box.y + box.height), 0) + 4;
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "clusters by network" });
  if (!holder.firstElementChild?.cloneNode(false).isEqualNode(picture)) holder.replaceChildren(picture);
  show(holder.firstElementChild,
    ...[...boxes].map(([name, box]) => svg("g", {},
      svg("rect", { class: "network", x: box.x, y: box.y, width: box.width, height: box.height, rx: 8 }),
      svg("text", { class: "network-name", x: box.x + 10, y: box.y + 18 }, `network ${cut(name, 24)}`))),
    ...(flows ? [] : state.links.map((link) => between(boxes, link))),
    ...(flows ?? []).slice(0, maxLines).map((flow) => line(places, flow)),
    ...[...places.values()].map((node) => cluster(node, size, flows, onChoose)));
}

// layOut places the networks one beside the other, and in as many lines as are needed.
function layOut(width, node) {
  const result = new Map();
  let [x, y, lineHeight] = [2, 2, 0];
  for (const [name, members] of networks()) {
    const most = Math.max(1, Math.floor((width - 24) / node.width));
    const columns = Math.min(most, Math.max(2, Math.ceil(Math.sqrt(members.length * 1.8))));
    const size = { width: columns * node.width + 12, height: titleHeight + Math.ceil(members.length / columns) * node.height + 6 };
    if (x > 2 && x + size.width > width - 2) [x, y, lineHeight] = [2, y + lineHeight + gap, 0];
    const box = { x, y, ...size };
    box.nodes = members.map((member, i) => ({
      member, x: x + 6 + (i % columns) * node.width + node.width / 2, y: y + titleHeight + Math.floor(i / columns) * node.height + radius + 4,
    }));
    result.set(name, box);
    x += size.width + gap;
    lineHeight = Math.max(lineHeight, size.height);
  }
  return result;
}

// cluster draws a node. A click shows only the services of the cluster.
function cluster({ member, x, y }, node, flows, onChoose) {
  const connected = member.state === "Connected";
  const involved = !flows || flows.some((flow) => flow.from === member.id || flow.to === member.id);
  const label = `${member.id}: ${stateWords[member.state] ?? member.state}, ${counted(member.exports, "export")}` +
    `${member.imports === undefined ? ", not read" : `, ${counted(member.imports, "import")}`}${member.version ? `, version ${member.version}` : ""}`;
  const choose = () => onChoose(member.id);
  return svg("g", {
    class: `cluster ${connected ? "" : "silent"} ${member.severity} ${involved ? "" : "aside"} ${member.context ? "" : "unread"}`,
    role: "button", tabindex: 0, "aria-pressed": member.id === state.cluster, "aria-label": label, "data-cluster": member.id,
    on: { click: choose, keydown: (event) => { if (event.key === "Enter" || event.key === " ") { choose(); event.preventDefault(); } } },
  }, svg("title", {}, label),
  svg("rect", { class: "target", x: x - node.width / 2 + 1, y: y - radius - 3, width: node.width - 2, height: node.height - 4, rx: 6 }),
  svg("circle", { cx: x, cy: y, r: radius }),
  svg("text", { class: "count", x, y: y + 4 }, connected ? String(member.exports) : "!"),
  node.names ? svg("text", { class: "cluster-name", x, y: y + radius + 15 }, cut(member.id, maxName)) : undefined);
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// between draws the worst path from one network to another.
function between(boxes, { from, to, path }) {
  const [a, b] = [boxes.get(from), boxes.get(to)];
  if (!a || !b || a === b) return svg("g");
  const centre = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const [[x1, y1], [x2, y2]] = [centre(a), centre(b)];
  return svg("line", { class: `link ${classOf[path] ?? "unknown"}`, x1, y1, x2, y2 }, svg("title", {}, `from ${from} to ${to}`));
}

// line draws how an importer reaches an exporter.
function line(places, { from, to, path }) {
  const [a, b] = [places.get(from), places.get(to)];
  if (!a || !b) return svg("g");
  return svg("line", { class: `flow ${classOf[path] ?? "unknown"}`, x1: a.x, y1: a.y, x2: b.x, y2: b.y });
}

// flowsOf returns how each importer of a service reaches each of its exporters.
export function flowsOf(service) {
  const letters = { Gateways: "g", GatewaysUnreached: "u", NotKnown: "?", None: "x" };
  const paths = new Map((service.paths ?? []).map((p) => [`${p.importer} ${p.exporter}`, letters[p.path] ?? "?"]));
  return (service.importers ?? []).flatMap((from) => (service.exporters ?? [])
    .filter((exporter) => exporter.cluster !== from)
    .map(({ cluster: to }) => ({ from, to, path: paths.get(`${from} ${to}`) ?? "d" })));
}
