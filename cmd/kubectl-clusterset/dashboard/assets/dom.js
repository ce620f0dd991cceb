// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Elements of the page. Text of the clusterset is always a text node or an attribute, never HTML.

const svgNamespace = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (value !== undefined) {
      node.setAttribute(name, value);
    }
  }
  node.append(...children.filter((child) => child !== undefined && child !== ""));
  return node;
}

// el returns an HTML element with attributes and children, which are elements or text.
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// svg returns an SVG element.
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), attributes, children);
}

// show makes these the children of a node. It keeps those that are equal, with their listeners: a click or the focus is not lost in an update.
export function show(node, ...children) {
  children.forEach((child, i) => {
    const shown = node.childNodes[i];
    if (!shown) node.append(child);
    else if (!shown.isEqualNode(child)) shown.replaceWith(child);
  });
  while (node.childNodes.length > children.length) node.lastChild.remove();
}

// byId returns an element of page.html.
export function byId(id) {
  return document.getElementById(id);
}

// counted returns "1 import", "2 imports".
export function counted(n, noun) {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

// clock returns a time of day.
export function clock(time) {
  return new Date(time).toLocaleTimeString();
}
