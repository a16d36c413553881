"use strict";
// The live tree. Children are fetched when a node is opened, and only the rows in view are in the
// document. Whatever the server says is put in as text, never as markup.

const HEIGHT = 26, PAGE = 5000, INDENT = 18;
const $ = (id) => document.getElementById(id);
const root = { path: "/", name: "", depth: -1, open: true, kids: [], count: 0, asked: new Set() };
const known = new Map([["/", root]]);
let list = [], found = null, selected = null, view = "tree", tab = "why", number = "";

function element(name, words, text) {
  const one = document.createElement(name);
  if (words) one.className = words;
  if (text !== undefined) one.textContent = text;
  return one;
}

function drawing(name, values) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in values) one.setAttribute(key, values[key]);
  return one;
}

const strip = (words, width) => drawing("svg", {
  class: words, viewBox: "0 0 " + width + " 10", preserveAspectRatio: "none",
});

const token = () => document.forms[0].elements.token.value.trim();

async function ask(path, options = {}) {
  const headers = token() ? { Authorization: "Bearer " + token() } : {};
  const answer = await fetch(path, { ...options, headers });
  if (answer.ok) return answer;
  const why = await answer.json().catch(() => ({}));
  throw new Error([why.message || "status " + answer.status, why.fix].filter(Boolean).join(": "));
}

const json = async (path) => (await ask(path)).json();
const at = (name, path, more = "") => "/live/" + name + "?path=" + encodeURIComponent(path) + more;

// The tree

async function fetchRows(node, from) {
  if (node.asked.has(from)) return;
  node.asked.add(from);
  try {
    const seen = await json(at("children", node.path, "&from=" + from));
    if (seen.count !== node.count) node.kids.length = node.count = seen.count;
    seen.rows.forEach((row, place) => {
      const path = (node.path === "/" ? "/" : node.path + "/") + row.name;
      let kid = known.get(path);
      if (!kid) {
        kid = { path, depth: node.depth + 1, open: false, kids: [], count: 0, asked: new Set() };
        known.set(path, kid);
      }
      take(kid, row);
      node.kids[from + place] = kid;
    });
    if (node === root) {
      $("server").textContent = seen.server;
      $("server").className = "chip " + seen.server;
      $("warning").textContent = seen.warning || "";
      $("count").textContent = seen.nodes.toLocaleString("en")
        + (seen.nodes === 1 ? " node" : " nodes");
    }
  } catch (error) {
    node.asked.delete(from);
    note(error);
  }
  lay();
}

function take(node, row) {
  node.name = row.name; node.kind = row.kind; node.state = row.state; node.more = row.more;
  node.flags = row.flags || ""; node.says = row.says || []; node.try = row.try || 0;
}

async function open(node, is) {
  node.open = is;
  if (is) await fetchRows(node, 0);
  lay();
}

function lay() {
  if (found) {
    list = found;
  } else {
    list = [];
    const below = (node) => {
      for (let place = 0; place < node.count; place++) {
        const kid = node.kids[place];
        list.push(kid || { node, place });
        if (kid && kid.open && kid.more) below(kid);
      }
    };
    below(root);
  }
  $("space").style.height = list.length * HEIGHT + "px";
  draw();
}

function draw() {
  const box = $("scroll"), space = $("space");
  const first = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - 10);
  const last = Math.min(list.length, first + Math.ceil(box.clientHeight / HEIGHT) + 20);
  const rows = [];
  for (let place = first; place < last; place++) {
    const node = list[place];
    const row = element("div", "row");
    row.style.top = place * HEIGHT + "px";
    row.dataset.place = place;
    row.setAttribute("role", "treeitem");
    if (node.name === undefined) {
      row.append(element("span", "turn"), element("span", "dim", "…"));
      fetchRows(node.node, Math.floor(node.place / PAGE) * PAGE);
    } else {
      const turn = element("span", "turn", !node.more || found ? "" : node.open ? "▾" : "▸");
      turn.style.marginLeft = (found ? 0 : node.depth * INDENT) + "px";
      if (node.more && !found) row.setAttribute("aria-expanded", node.open);
      row.setAttribute("aria-selected", node.path === selected);
      row.setAttribute("aria-level", node.depth + 1);
      const flags = node.flags && node.flags !== "message" ? [node.flags.replace(/,/g, ", ")] : [];
      row.append(turn, element("span", "chip " + node.state, node.state),
        element("span", node.kind, found ? node.path : node.name),
        element("span", "says", node.says.concat(flags).join(" · ")));
    }
    rows.push(row);
  }
  space.replaceChildren(...rows);
}

function note(error) {
  $("note").textContent = error ? error.message || error : "";
  $("note").classList.toggle("bad", error instanceof Error);
}

// What is filtered

let wanted = 0;
async function filter() {
  const form = document.forms[0].elements;
  const mine = ++wanted;
  if (!form.name.value.trim() && !form.state.value) {
    found = null;
    note("");
    return lay();
  }
  const more = "&name=" + encodeURIComponent(form.name.value.trim()) + "&state=" + form.state.value;
  try {
    const seen = await json(at("find", "/", more));
    if (mine !== wanted) return;
    found = seen.rows.map((row) => {
      const node = { path: row.path, depth: 0, kids: [], asked: new Set() };
      take(node, row);
      return node;
    });
    const rest = seen.count > found.length ? ", the first " + found.length + " are shown" : "";
    note(seen.count.toLocaleString("en") + " found" + rest);
    $("scroll").scrollTop = 0;
    lay();
  } catch (error) { note(error); }
}

// One node

async function select(path) {
  selected = path;
  draw();
  $("detail").hidden = false;
  $("said").textContent = "";
  await detail();
}

async function detail() {
  const path = selected;
  if (!path) return;
  try {
    const seen = await json(at("node", path));
    if (path !== selected) return;
    const row = seen.row;
    $("path").textContent = path;
    const facts = [element("span", "chip " + row.state, row.state)];
    const say = (text) => facts.push(element("span", "dim", " " + text));
    say(row.kind);
    if (row.try) say("try " + row.try);
    if (seen.rid) say("process " + seen.rid);
    if (row.flags) say(row.flags.replace(/,/g, ", "));
    if (seen.abort_reason) facts.push(element("span", "bad", " " + seen.abort_reason));
    $("facts").replaceChildren(...facts);
    await part(seen, path);
  } catch (error) {
    if (path === selected) $("part").replaceChildren(element("p", "bad", error.message));
  }
}

async function part(seen, path) {
  const box = $("part");
  if (tab === "why" || tab === "history") {
    const lines = tab === "why" ? seen.why : seen.history;
    const none = tab === "why" ? "Nothing holds it." : "No user has changed it.";
    const ul = element("ul");
    ul.append(...lines.map((line) => element("li", "", line)));
    return box.replaceChildren(lines.length ? ul : element("p", "dim", none));
  }
  if (tab === "attributes") return box.replaceChildren(attributes(seen.attributes));
  const file = await json(at("file", path, "&kind=" + tab));
  if (path === selected) box.replaceChildren(element("pre", "", file.text || "It is empty."));
}

function attributes(all) {
  const table = element("table"), body = element("tbody");
  for (const one of all) {
    const tr = element("tr");
    const { type, name, value, expression, ...more } = one;
    const rest = Object.entries(more).filter(([key]) => key !== "const")
      .map(([key, is]) => key + " " + (typeof is === "object" ? JSON.stringify(is) : is));
    const first = expression !== undefined ? expression : value === undefined ? "" : String(value);
    tr.append(element("td", "dim", one.generated ? "made" : type), element("td", "", name || ""),
      element("td", "", first), element("td", "dim", rest.join(", ")));
    body.append(tr);
  }
  table.append(body);
  return all.length ? table : element("p", "dim", "It has none.");
}

async function act(action) {
  if (!token()) {
    $("said").textContent = "A change needs a token of the server's --token-file: type it above.";
    document.forms[0].elements.token.focus();
    return;
  }
  const where = selected.split("/").map(encodeURIComponent).join("/");
  try {
    const body = JSON.stringify({ action });
    const done = await ask("/v1/suites" + where + "/status", { method: "PUT", body });
    $("said").className = "dim";
    $("said").textContent = (await done.json()).message;
  } catch (error) {
    $("said").className = "bad";
    $("said").textContent = error.message;
  }
}

// Runs and limits

async function other() {
  const box = $("other");
  const path = selected || "/";
  try {
    if (view === "limits") return limits(box, (await json("/live/limits")).limits);
    const seen = await json(at("runs", path, "&most=200"));
    runs(box, path, seen);
  } catch (error) { box.replaceChildren(element("p", "bad", error.message)); }
}

function head(names) {
  const thead = element("thead"), tr = element("tr");
  tr.append(...names.map((name) => element("th", "", name)));
  thead.append(tr);
  return thead;
}

function limits(box, all) {
  const table = element("table"), body = element("tbody");
  for (const one of all) {
    const tr = element("tr"), bar = strip("use", 100);
    const part = one.max > 0 ? Math.min(100, 100 * one.value / one.max) : one.value > 0 ? 100 : 0;
    bar.append(drawing("rect", { class: "all", width: 100, height: 10 }),
      drawing("rect", { class: one.value >= one.max ? "full" : "taken", width: part, height: 10 }));
    const cell = element("td");
    cell.append(bar);
    tr.append(element("td", "", one.path + ":" + one.name),
      element("td", "n", one.value + " of " + one.max), cell,
      element("td", "dim", one.holders.join(", ")));
    body.append(tr);
  }
  table.append(head(["Limit", "Taken", "", "By"]), body);
  box.replaceChildren(all.length ? table : element("p", "dim", "There is no limit."));
}

const clock = (s) => new Date(s * 1000).toISOString().slice(11, 19);

function runs(box, path, seen) {
  const intro = element("p", "dim", seen.runs.length
    ? "The last " + (seen.runs.length === 1 ? "run" : seen.runs.length + " runs") + " at " + path + ", by the log"
    : "The log has no runs at " + path + ".");
  const table = element("table"), body = element("tbody");
  const first = Math.min(...seen.runs.map((run) => run.submitted || run.active));
  const whole = Math.max(1, seen.now - first);
  for (const run of seen.runs.slice().reverse()) {
    // When one ended that was requeued while it ran isn't known.
    const end = run.end || (run.state === "queued" ? run.active : seen.now), start = run.active || end;
    // The log may lack the submission.
    const begun = run.submitted || start;
    const lane = strip("lane", 1000);
    const part = (from, to) => 1000 * (to - from) / whole;
    const bar = (from, to, words) => lane.append(drawing("rect", {
      class: words, x: part(first, from), width: Math.max(2, part(from, to)), height: 10,
    }));
    bar(begun, start, "submitted");
    if (run.active) bar(run.active, end, run.state);
    const tr = element("tr"), cell = element("td", "wide");
    cell.append(lane);
    tr.append(element("td", "", run.path), element("td", "n", clock(begun)),
      element("td", "n", end - begun + " s"), element("td", "word", run.state), cell);
    body.append(tr);
  }
  table.append(head(["Task", "Submitted", "Took", "State", ""]), body);
  box.replaceChildren(intro, table);
}

// What changes

async function follow() {
  for (;;) {
    try {
      const answer = await ask("/live/changes?since=" + number);
      $("link").textContent = "live";
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        rest += value;
        for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
          happened(rest.slice(0, end));
        }
      }
      $("link").textContent = "not connected";
    } catch (error) { $("link").textContent = error.message; }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function happened(text) {
  const event = {};
  for (const line of text.split("\n")) {
    const end = line.indexOf(": ");
    if (end > 0) event[line.slice(0, end)] = line.slice(end + 2);
  }
  if (event.event === "cut") return;
  if (event.id) number = event.id;
  if (event.event === "reset") return reset();
  if (event.event !== "changes" && event.event !== "begin") return;
  const data = JSON.parse(event.data);
  $("warning").textContent = data.warning || "";
  if (event.event === "begin") return;
  $("server").textContent = data.server;
  $("server").className = "chip " + data.server;
  let isSelected = false;
  for (const row of data.nodes) {
    const node = known.get(row.path);
    if (node) {
      take(node, row);
      if (row.below && node.open) { node.asked.clear(); node.kids = []; fetchRows(node, 0); }
    }
    const hit = found && found.find((one) => one.path === row.path);
    if (hit) take(hit, row);
    isSelected = isSelected || row.path === selected;
  }
  lay();
  if (isSelected && tab !== "output") detail();
  if (view !== "tree") later();
}

async function reset() {
  const was = [...known.values()].filter((node) => node.open && node !== root);
  for (const node of known.values()) { node.asked.clear(); node.kids = []; }
  await fetchRows(root, 0);
  for (const node of was) await fetchRows(node, 0);
  if (found) filter();
  detail();
}

let timer = null;
function later() {
  if (!timer) timer = setTimeout(() => { timer = null; if (view !== "tree") other(); }, 1000);
}

// What is clicked and typed

function press(all, is) {
  for (const one of document.querySelectorAll(all)) one.setAttribute("aria-pressed", is(one));
}

$("scroll").addEventListener("scroll", () => requestAnimationFrame(draw));
addEventListener("resize", draw);
$("scroll").addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  const node = row && list[row.dataset.place];
  if (!node || !node.path) return;
  if (event.target.className === "turn" && node.more && !found) open(node, !node.open);
  else select(node.path);
});
$("scroll").addEventListener("keydown", (event) => {
  const place = list.findIndex((node) => node.path === selected), node = list[place];
  const go = (to) => {
    const next = list[to];
    if (!next || !next.path) return;
    select(next.path);
    const top = to * HEIGHT, box = $("scroll");
    if (top < box.scrollTop) box.scrollTop = top;
    const least = top + HEIGHT - box.clientHeight;
    if (least > box.scrollTop) box.scrollTop = least;
  };
  if (event.key === "ArrowDown") go(place + 1);
  else if (event.key === "ArrowUp") go(Math.max(0, place - 1));
  else if (event.key === "ArrowRight" && node && node.more && !found) open(node, true);
  else if (event.key === "ArrowLeft" && node && node.open && !found) open(node, false);
  else return;
  event.preventDefault();
});
$("close").addEventListener("click", () => { selected = null; $("detail").hidden = true; draw(); });
for (const one of document.querySelectorAll("[data-view]")) one.addEventListener("click", () => {
  view = one.dataset.view;
  press("[data-view]", (other) => other === one);
  $("scroll").hidden = view !== "tree";
  $("other").hidden = view === "tree";
  if (view === "tree") draw(); else other();
});
for (const one of document.querySelectorAll("[data-tab]")) one.addEventListener("click", () => {
  tab = one.dataset.tab;
  press("[data-tab]", (other) => other === one);
  detail();
});
for (const one of document.querySelectorAll("[data-action]")) {
  one.addEventListener("click", () => act(one.dataset.action));
}
document.forms[0].addEventListener("submit", (event) => { event.preventDefault(); filter(); });
let typing = null;
document.forms[0].addEventListener("input", (event) => {
  if (event.target.name === "token") return;
  clearTimeout(typing);
  typing = setTimeout(filter, 200);
});

async function begin() {
  await fetchRows(root, 0);
  // A link may name a node: /#/suite/family.
  const path = decodeURIComponent(location.hash.slice(1));
  let upto = "";
  for (const name of path.split("/").filter(Boolean)) {
    upto += "/" + name;
    const node = known.get(upto);
    if (node && node.more && upto !== path) await open(node, true);
  }
  if (known.has(path) && path !== "/" && path) await select(path);
  document.body.dataset.ready = "yes";
  follow();
}
begin();
