// An annotator's own work, over all datasets: what is done, what is left, and the way to the next item.
// The session is kept where Argilla's pages (nuxt-auth 5, scheme `local`) keep it.
const TOKEN = "auth._token.local", EXPIRES = "auth._token_expiration.local", STRATEGY = "auth.strategy";
const HOUR = 3600000;
const $ = id => document.getElementById(id);

const session = () => {
  const kept = localStorage.getItem(TOKEN);
  return kept && kept.startsWith("Bearer ") && Number(localStorage.getItem(EXPIRES)) > Date.now() ? kept : null;
};
const signOut = () => [TOKEN, EXPIRES, STRATEGY].forEach(name => localStorage.removeItem(name));
const say = words => { $("said").textContent = words; };

async function ask(path) {
  const answer = await fetch(`/api/v1/${path}`, { headers: { Authorization: session() }, cache: "no-store" });
  if (answer.status === 401) { signOut(); throw new Error("signed out"); }
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

function door() {
  $("work").hidden = true;
  $("door").hidden = false;
  $("name").focus();
}

async function enter(event) {
  event.preventDefault();
  say("");
  const body = new URLSearchParams({ username: $("name").value, password: $("password").value });
  const answer = await fetch("/api/v1/token", { method: "POST", body });
  if (!answer.ok) { say(answer.status === 401 ? WORDS.wrong : WORDS.trouble); return; }
  const token = (await answer.json()).access_token;
  localStorage.setItem(STRATEGY, "local");
  localStorage.setItem(TOKEN, `Bearer ${token}`);
  localStorage.setItem(EXPIRES, String(expiry(token)));
  $("password").value = "";
  await show();
}

// When a session ends stands in it (seconds since 1970).
function expiry(token) {
  const body = JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
  return body.exp ? body.exp * 1000 : Date.now() + HOUR;
}

function row(one) {
  const line = document.createElement("tr"), link = document.createElement("a");
  link.href = target(one);
  link.textContent = one.name;
  for (const part of [link, String(one.done), String(one.left)]) {
    const cell = document.createElement(part === link ? "th" : "td");
    cell.append(part);
    line.append(cell);
  }
  line.firstChild.scope = "row";
  return line;
}

const target = one => `/dataset/${encodeURIComponent(one.id)}/annotation-mode${one.left ? "" : "?_status=submitted"}`;

async function show() {
  if (!session()) { door(); return; }
  try {
    const listed = (await ask("me/datasets")).items.filter(one => one.status === "ready");
    const work = await Promise.all(listed.map(async one => {
      const { responses } = await ask(`me/datasets/${one.id}/metrics`);
      return { id: one.id, name: one.name, done: responses.submitted + responses.discarded, left: responses.pending + responses.draft };
    }));
    work.sort((a, b) => a.name.localeCompare(b.name));
    const next = work.find(one => one.left && one.done) || work.find(one => one.left); // what was begun goes first
    const done = work.reduce((all, one) => all + one.done, 0), left = work.reduce((all, one) => all + one.left, 0);
    say(!work.length ? WORDS.nothing : left ? WORDS.so_far.replace("{done}", done).replace("{left}", left) : WORDS.all.replace("{done}", done));
    $("on").hidden = !next;
    if (next) $("on").href = target(next);
    document.querySelector("table").hidden = !work.length;
    document.querySelector("tbody").replaceChildren(...work.map(row));
    $("door").hidden = true;
    $("work").hidden = false;
    if (next) $("on").focus();
  } catch (error) {
    if (!session()) { door(); return; }
    say(WORDS.trouble);
  }
}

$("door").addEventListener("submit", enter);
$("out").addEventListener("click", () => { signOut(); say(""); door(); });
window.addEventListener("pageshow", show); // also when somebody comes back to it
