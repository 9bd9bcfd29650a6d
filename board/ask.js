// Asks the scheduler. A token is kept for this tab alone, and sent in a header: no cookie is ever
// set, so no page of somebody else's can make a browser send it.

const KEPT = "maitre-token";

/** What the scheduler has against a request. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(KEPT);
export const keepToken = (text) => sessionStorage.setItem(KEPT, text);
export const dropToken = () => sessionStorage.removeItem(KEPT);

/** What a file holds, as something that a picture or a link can show. */
export async function file(path) {
  const headers = token() ? { authorization: `Bearer ${token()}` } : {};
  const response = await fetch(path, { headers, credentials: "omit", cache: "no-store" });
  if (!response.ok) throw new Refused(response.status, response.statusText);
  return URL.createObjectURL(await response.blob());
}

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);
export const put = (path, body) => ask("PUT", path, body);
export const patch = (path, body) => ask("PATCH", path, body);
export const remove = (path) => ask("DELETE", path, {});

/** A part of a path, whatever characters it has. */
export const part = (name) => encodeURIComponent(name);

async function ask(method, path, body) {
  const headers = {};
  if (token()) headers.authorization = `Bearer ${token()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const request = { method, headers, credentials: "omit", cache: "no-store" };
  if (body !== undefined) request.body = JSON.stringify(body);
  const response = await fetch(path, request).catch(() => {
    throw new Refused(0, "the scheduler does not answer");
  });
  const said = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, said.error ?? response.statusText);
  return said;
}
