// The board: which page is shown, drawn again as things change, and what people do on it.

import { Refused, dropToken, get, keepToken, token } from "/board/ask.js";
import { button, h, morph } from "/board/draw.js";
import * as overview from "/board/overview.js";
import * as job from "/board/job.js";
import * as types from "/board/types.js";
import * as type from "/board/type.js";
import * as schedules from "/board/schedules.js";
import * as activity from "/board/activity.js";
import * as whatif from "/board/whatif.js";

/** How long the board rests before it looks again. It does not look while nobody sees it. */
const REST_MS = 1500;
const SAID_MS = 6000;
const PAGES = { "": overview, jobs: job, types, schedules, activity, "what-if": whatif };

const root = document.getElementById("page");
const live = document.getElementById("live");
const said = document.getElementById("said");
const state = { page: overview, name: "", turn: 0, timer: 0, me: null };

function route() {
  const [, first = "", ...rest] = location.hash.split("/");
  state.name = decodeURIComponent(rest.join("/"));
  const page = first === "types" && state.name ? type : (PAGES[first] ?? overview);
  if (page !== state.page) root.replaceChildren();
  state.page = page;
  document.title = `Maitre: ${state.name || page.title}`;
  for (const link of document.querySelectorAll("nav a")) {
    const isHere = link.getAttribute("href").replace("#/", "") === first;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  turn();
}

/** Looks once, draws, and looks again after a rest. */
async function turn() {
  clearTimeout(state.timer);
  const mine = ++state.turn;
  try {
    state.me ??= await get("/v1/me");
    const seen = await state.page.load(state.name);
    if (mine !== state.turn) return;
    draw(state.page.view(seen, { mayChange: state.me.may_change }));
    tell("on", `live, ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    if (mine !== state.turn) return;
    fail(error);
  }
  showWho();
  if (!document.hidden) state.timer = setTimeout(turn, REST_MS);
}

const draw = (children) => morph(root, h("main", { id: "page", tabindex: -1 }, children));

function fail(error) {
  if (error.status === 401) {
    state.me = null;
    tell("off", "not logged in");
    draw(login(error));
  } else if (error.status === 403 || error.status === 404) {
    tell("on", "live");
    draw([h("h1", {}, "Not here"), h("p", { class: "empty" }, error.message)]);
  } else {
    tell("off", `${error.message}; trying again`);
    if (!(error instanceof Refused)) throw error;
  }
}

function login(error) {
  const why = token()
    ? error.message
    : "This scheduler wants a token: `maitre token new` makes one.";
  return [
    h("h1", {}, "Log in"),
    h(
      "form",
      { class: "form", "data-do": "login", key: "login" },
      h("p", { class: "soft" }, why),
      h(
        "label",
        {},
        "Token",
        h("input", {
          name: "token",
          type: "password",
          required: true,
          autocomplete: "off",
          placeholder: "maitre_…",
        }),
      ),
      h("button", { type: "submit" }, "Log in"),
      h("p", { class: "soft" }, "It is kept for this tab alone, and gone when you close it."),
    ),
  ];
}

function showWho() {
  const { me } = state;
  const words = me && me.needs_token ? [me.who, me.may_change ? "" : " (may look)", " "] : [];
  const leave = token() && me ? button("Log out", "logout", { class: "quiet small" }) : null;
  morph(document.getElementById("who"), h("p", { id: "who", class: "who" }, words, leave));
}

function tell(mood, text) {
  live.className = `live ${mood}`;
  if (live.textContent !== text) live.textContent = text;
}

let quiet = 0;
function say(mood, text) {
  clearTimeout(quiet);
  said.className = `said ${mood}`;
  said.textContent = text;
  said.hidden = !text;
  if (mood === "good") quiet = setTimeout(() => (said.hidden = true), SAID_MS);
}

const own = {
  login: (node) => {
    keepToken(new FormData(node).get("token").trim());
    node.reset();
  },
  logout: () => {
    dropToken();
    state.me = null;
  },
};

async function act(node) {
  const name = node.dataset.do;
  const doing = own[name] ?? state.page.acts?.[name];
  if (!doing || node.isSending) return;
  node.isSending = true;
  try {
    say("good", (await doing(node)) ?? "");
  } catch (error) {
    say("bad", error.message);
    if (!(error instanceof Refused)) throw error;
  } finally {
    node.isSending = false;
    turn();
  }
}

const doer = (event, kinds) => {
  const node = event.target.closest("[data-do]");
  return node && kinds.includes(node.tagName) ? node : null;
};

document.addEventListener("click", (event) => {
  const node = doer(event, ["BUTTON"]);
  if (node) act(node);
});
document.addEventListener("change", (event) => {
  const node = doer(event, ["INPUT", "SELECT"]);
  if (node) {
    act(node);
  }
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  const node = doer(event, ["FORM"]);
  if (node) act(node);
});
document.addEventListener("keydown", (event) => {
  // Escape takes back what was being written.
  if (event.key === "Escape" && event.target.matches("input[data-do]")) {
    event.target.value = event.target.defaultValue;
    event.target.blur();
  }
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) tell("off", "resting while nobody looks");
  else turn();
});
window.addEventListener("hashchange", () => {
  say("good", "");
  route();
  window.scrollTo(0, 0);
});
route();
