// What an annotator's own pages share: the session, the API, and how much of the work is done.
// The session is kept where Argilla's pages (nuxt-auth 5, scheme `local`) keep it.
const HOUR = 3600000;
const TOKEN = "auth._token.local", EXPIRES = "auth._token_expiration.local", STRATEGY = "auth.strategy";

const session = () => {
  const kept = localStorage.getItem(TOKEN);
  return kept && kept.startsWith("Bearer ") && Number(localStorage.getItem(EXPIRES)) > Date.now() ? kept : null;
};

// When a session ends stands in it (seconds since 1970).
function signIn(token) {
  const body = JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
  localStorage.setItem(STRATEGY, "local");
  localStorage.setItem(TOKEN, `Bearer ${token}`);
  localStorage.setItem(EXPIRES, String(body.exp ? body.exp * 1000 : Date.now() + HOUR));
}

// Signs in by a link, or by the one that this browser used; the status says what hinders it, 0 that nothing answers.
async function byLink(token = "") {
  const answer = await fetch(LINK, { method: "POST", body: new URLSearchParams({ token }) }).catch(() => null);
  if (answer && answer.status === 200) signIn((await answer.json()).access_token);
  return answer ? answer.status : 0;
}

const failed = status => Object.assign(new Error(String(status)), { status });
const PATIENCE_MS = 30000;

async function ask(path, body, method = body ? "POST" : "GET") {
  if (!session()) throw failed(401);
  const headers = { Authorization: session(), ...(body ? { "Content-Type": "application/json" } : {}) };
  const sent = { method, headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) };
  const answer = await fetch(`${BASE}/api/v1/${path}`, body ? { ...sent, body: JSON.stringify(body) } : sent);
  if (!answer.ok) throw failed(answer.status);
  return answer.json();
}

// Left is what the own queue still has, drafts too: what others have completed is in no queue, though the reader's
// numbers of answers have it as pending. Out is what others hold now: it comes back unless they answer.
async function counted(id) {
  const [{ responses }, queue] = await Promise.all([ask(`me/datasets/${id}/metrics`), ask(`datasets/${id}/progress`)]);
  const { pending: left, total, completed } = queue;
  return { done: responses.submitted + responses.discarded, left, out: total - completed - left, drafts: responses.draft };
}

const learns = one => /-training(-[A-Z]{2,3})+$/.test(one.name); // raters learn on it, and nothing of it counts

// The reader's datasets, what is learnt on first, then by name, with what is done and left in each.
async function allWork() {
  const listed = (await ask("me/datasets")).items.filter(one => one.status === "ready");
  const work = await Promise.all(listed.map(async one => (
    { id: one.id, name: one.name, task: (one.metadata || {}).rate, ...await counted(one.id) })));
  return work.sort((a, b) => learns(b) - learns(a) || a.name.localeCompare(b.name));
}

const sum = (work, key) => work.reduce((all, one) => all + one[key], 0);
// What is learnt on goes first, then what was begun.
const next = work => {
  const open = work.filter(one => one.left);
  return open.find(learns) || open.find(one => one.done) || open[0];
};
// Datasets with a task are rated on our page, all others on Argilla's own.
const ours = one => Boolean(one.task);
const called = one => ours(one) ? one.task.name : one.name;
const target = one => {
  if (ours(one)) return `${BASE}/rate/${encodeURIComponent(one.id)}`;
  const status = one.left > one.drafts ? "pending" : one.left ? "draft" : "submitted"; // Argilla lists drafts apart
  return `${BASE}/dataset/${encodeURIComponent(one.id)}/annotation-mode?status=${status}`;
};

function summary(work) {
  const done = sum(work, "done"), left = sum(work, "left");
  if (!work.length) return WORDS.nothing;
  const words = left ? WORDS.so_far : sum(work, "out") ? WORDS.others : WORDS.all;
  return words.replace("{done}", done).replace("{left}", left);
}
