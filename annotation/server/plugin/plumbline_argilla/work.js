// An annotator's own work, over all datasets: what is done, what is left, and the way to the next item.
const HOUR = 3600000;
const $ = id => document.getElementById(id);

const signOut = () => [TOKEN, EXPIRES, STRATEGY].forEach(name => localStorage.removeItem(name));
const say = words => { $("said").textContent = words; };

function door() {
  $("work").hidden = true;
  $("door").hidden = false;
  $("name").focus();
}

async function enter(event) {
  event.preventDefault();
  say("");
  const body = new URLSearchParams({ username: $("name").value, password: $("password").value });
  const answer = await fetch("/api/v1/token", { method: "POST", body }).catch(() => ({ ok: false }));
  if (!answer.ok) { say(answer.status === 401 ? WORDS.wrong : WORDS.trouble); return; }
  const token = (await answer.json()).access_token;
  localStorage.setItem(STRATEGY, "local");
  localStorage.setItem(TOKEN, `Bearer ${token}`);
  localStorage.setItem(EXPIRES, String(expiry(token)));
  $("password").value = "";
  // Who was signed out on a page goes back to it; nothing but our own pages is an address here.
  const to = new URLSearchParams(location.search).get("to") || "";
  if (/^\/rate\/[0-9a-f-]{36}$/.test(to)) { location.replace(to); return; }
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
  link.textContent = called(one);
  for (const part of [link, String(one.done), String(one.left)]) {
    const cell = document.createElement(part === link ? "th" : "td");
    cell.append(part);
    line.append(cell);
  }
  line.firstChild.scope = "row";
  return line;
}

async function show() {
  if (!session()) { door(); return; }
  try {
    const work = await allWork(), on = next(work);
    say(summary(work));
    $("on").hidden = !on;
    if (on) $("on").href = target(on);
    const theirs = work.filter(one => one.done || one.left); // others finished the rest
    document.querySelector("table").hidden = !theirs.length;
    document.querySelector("tbody").replaceChildren(...theirs.map(row));
    $("door").hidden = true;
    $("work").hidden = false;
    if (on) $("on").focus();
  } catch (error) {
    if (error.status === 401) { signOut(); door(); return; }
    say(WORDS.trouble);
  }
}

$("door").addEventListener("submit", enter);
$("out").addEventListener("click", () => { signOut(); say(""); door(); });
window.addEventListener("pageshow", show); // also when somebody comes back to it
window.addEventListener("focus", () => { if (session()) show(); }); // another tab may have answered meanwhile
