// An annotator's own work, over all datasets: what is done, what is left, and the way to the next item.
const $ = id => document.getElementById(id);

const forget = () => [TOKEN, EXPIRES, STRATEGY].forEach(name => localStorage.removeItem(name));
const say = words => { $("said").textContent = words; };
const name = words => { document.querySelector("h1").textContent = document.title = words; };

// Who came by a link comes back without it, in the same browser, until they sign out.
async function door(again = true) {
  const status = again ? await byLink() : 0;
  if (status === 200) { await entered(); return; }
  if (status === 409 || status === 410) say(`${WORDS.gone} ${WORDS.new_link}`);
  name(WORDS.sign_in);
  $("work").hidden = true;
  $("door").hidden = false;
  $("name").focus();
}

async function enter(event) {
  event.preventDefault();
  say("");
  const body = new URLSearchParams({ username: $("name").value, password: $("password").value });
  const [button] = $("door").getElementsByTagName("button");
  button.disabled = true;  // a password takes the server a while
  const answer = await fetch(`${BASE}/api/v1/token`, { method: "POST", body }).catch(() => ({ ok: false }));
  button.disabled = false;
  if (!answer.ok) { say(answer.status === 401 ? WORDS.wrong : WORDS.trouble); return; }
  signIn((await answer.json()).access_token);
  $("password").value = "";
  await entered();
}

async function signOut() {
  $("out").disabled = true;
  const answer = await fetch(LINK, { method: "DELETE" }).catch(() => null);
  $("out").disabled = false;
  if (!answer || !answer.ok) { say(WORDS.trouble); return; }
  forget();
  say("");
  await door(false);
}

async function entered() {
  // Who was signed out on a page goes back to it; nothing but our own pages is an address here.
  const to = new URLSearchParams(location.search).get("to") || "";
  if (to.startsWith(`${BASE}/`) && /^\/rate\/[0-9a-f-]{36}$/.test(to.slice(BASE.length))) { location.replace(to); return; }
  await show();
}

// Queues called alike are told apart by their study and by what was asked, which their raters read anyway.
function row(one, work) {
  const alike = ours(one) ? work.filter(other => ours(other) && called(other) === called(one)) : [];
  const facts = ["study", "asked"].filter(fact => new Set(alike.map(other => other.task[fact])).size > 1);
  const line = document.createElement("tr"), link = document.createElement("a");
  link.href = target(one);
  link.textContent = facts.length ? `${called(one)} (${facts.map(fact => one.task[fact]).join(": ")})` : called(one);
  for (const part of [link, String(one.done), String(one.left)]) {
    const cell = document.createElement(part === link ? "th" : "td");
    cell.append(part);
    line.append(cell);
  }
  line.firstChild.scope = "row";
  return line;
}

async function show(marks = true) {
  if (!session()) { await door(); return; }
  try {
    const [reader, work] = await Promise.all([ask("me"), allWork()]), on = next(work);
    $("out").textContent = `${WORDS.sign_out} (${reader.username})`;
    name(WORDS.title);
    say(summary(work));
    [$("meter").value, $("meter").max] = [sum(work, "done"), sum(work, "done") + sum(work, "left") || 1];
    $("on").hidden = !on;
    if (on) $("on").href = target(on);
    const theirs = work.filter(one => one.done || one.left); // others finished the rest
    for (const part of [$("meter"), document.querySelector("table")]) part.hidden = !theirs.length;
    document.querySelector("tbody").replaceChildren(...theirs.map(one => row(one, theirs)));
    $("door").hidden = true;
    $("work").hidden = false;
    if (on && marks) $("on").focus();
  } catch (error) {
    if (error.status === 401) { forget(); await door(); return; }
    say(WORDS.trouble);
  }
}

$("door").addEventListener("submit", enter);
$("out").addEventListener("click", signOut);
window.addEventListener("pageshow", () => show()); // also when somebody comes back to it
window.addEventListener("focus", () => { if (session()) show(false); }); // another tab may have answered meanwhile
