// Times and numbers as people say them.

const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];

/** A length of time in its two largest units: `1h 30m`. */
export function length(ms) {
  let rest = Math.max(0, Math.floor(ms / 1000));
  const said = [];
  for (const [unit, size] of UNITS) {
    if (said.length < 2 && (rest >= size || (size === 1 && said.length === 0))) {
      said.push(`${Math.floor(rest / size)}${unit}`);
      rest %= size;
    }
  }
  return said.join(" ");
}

/** A short length of time, to the millisecond where that matters. */
export function fine(ms) {
  if (ms < 1000) return `${ms} ms`;
  return ms < 10000 ? `${(ms / 1000).toFixed(1)} s` : length(ms);
}

/** A moment, as far from now as it is. */
export function ago(ms, now) {
  if (ms === null || ms === undefined) return "–";
  return ms > now ? `in ${length(ms - now + 999)}` : `${length(now - ms)} ago`;
}

/** A moment by the calendar, for those who point at it. */
export const moment = (ms) => (ms ? new Date(ms).toLocaleString() : "");

/** A number with at most one digit behind the point, and with its thousands apart. */
export const plain = (n) =>
  n === null || n === undefined ? "–" : n.toLocaleString("en", { maximumFractionDigits: 1 });

export const percent = (part) => `${Math.round(part * 100)} %`;

export const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
