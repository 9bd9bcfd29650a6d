// Elements from words. Whatever is said becomes text or an attribute: nothing here reads markup.

import { ago, moment } from "/board/words.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element; `key` tells it from its siblings when the page is drawn again. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same, of a picture. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name === "key" ? "data-key" : name, value === true ? "" : String(value));
  }
  return add(node, children);
}

function add(node, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

/** Makes `old` look like `fresh`; what is as it was is left alone, and what somebody writes. */
export function morph(old, fresh) {
  if (old.isSending) return;
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old instanceof HTMLInputElement || old instanceof HTMLSelectElement) keepUp(old, fresh);
  if (old instanceof HTMLSelectElement && document.activeElement === old) return;
  const known = new Map();
  for (const child of old.children) if (child.dataset.key) known.set(child.dataset.key, child);
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const same = child.dataset?.key ? known.get(child.dataset.key) : at;
    if (same && isLike(same, child)) {
      if (same !== at) old.insertBefore(same, at);
      else at = at.nextSibling;
      if (child.nodeType !== Node.TEXT_NODE) morph(same, child);
      else if (same.data !== child.data) same.data = child.data;
    } else {
      old.insertBefore(child, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

const isLike = (one, other) =>
  one.nodeName === other.nodeName && one.dataset?.key === other.dataset?.key;

/** What somebody is writing is theirs until they are done. */
function keepUp(old, fresh) {
  if (document.activeElement === old && old.type !== "checkbox") return;
  if (old.type === "checkbox") old.checked = fresh.checked;
  else if (fresh.hasAttribute("data-do")) old.value = fresh.value;
}

/** A table, or what to do next if there is nothing in it. */
export function table(heads, rows, empty) {
  if (rows.length === 0) return h("p", { class: "empty", key: "empty" }, empty);
  const label = (cell, at) => {
    cell.dataset.label = heads[at];
    return cell;
  };
  const body = rows.map(({ key, cells }) => h("tr", { key }, cells.map(td).map(label)));
  return h(
    "div",
    { class: "wide", key: "table" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) => h("th", { scope: "col" }, head)),
        ),
      ),
      h("tbody", {}, body),
    ),
  );
}

const td = (cell) => (cell instanceof HTMLTableCellElement ? cell : h("td", {}, cell));

/** A cell of numbers. */
export const number = (...children) => h("td", { class: "number" }, children);

export const section = (title, ...children) =>
  h("section", { key: title }, h("h2", {}, title), children);

/** A state in a word, with a colour besides. */
export const chip = (word, mood = word) => h("span", { class: `chip ${mood}` }, word);

export const time = (ms, now) => h("time", { title: moment(ms) }, ago(ms, now));

export const button = (text, act, props = {}) =>
  h("button", { type: "button", "data-do": act, ...props }, text);

/** How much of something is used. */
export const bar = (part, whole, what) =>
  h("meter", { min: 0, max: Math.max(1, whole), value: part, "aria-label": what });

/** A line through numbers, the last of them at the right. What is unknown is a gap. */
export function line(numbers, what) {
  const max = Math.max(1, ...numbers.map((n) => n ?? 0));
  const step = 240 / Math.max(1, numbers.length - 1);
  const point = (n, at) => `${(at * step).toFixed(1)},${(46 - (n / max) * 42).toFixed(1)}`;
  const parts = [[]];
  numbers.forEach((n, at) => {
    if (n === null || n === undefined) parts.push([]);
    else parts.at(-1).push(point(n, at));
  });
  const known = parts.filter((part) => part.length > 0);
  // A point alone is a dot: a line to itself, with round ends.
  const points = (part) => (part.length > 1 ? part : [part[0], part[0]]).join(" ");
  return svg(
    "svg",
    {
      viewBox: "0 0 240 48",
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": what,
      class: "line",
    },
    known.map((part) => svg("polyline", { points: points(part) })),
  );
}
