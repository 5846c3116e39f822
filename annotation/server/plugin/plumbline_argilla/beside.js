// On Argilla's own pages: how much of the annotator's work is done over all datasets, the way on, and the comment's keys.
const bar = document.createElement("nav"), said = document.createElement("span");
const home = document.createElement("a"), on = document.createElement("a");
bar.className = "beside";
bar.lang = LANGUAGE;
bar.dir = DIRECTION;
bar.hidden = true;
bar.setAttribute("aria-label", WORDS.title);
said.setAttribute("role", "status");
home.href = `${BASE}/work`;
home.textContent = WORDS.title;
on.textContent = WORDS.go_on;
bar.append(said, on, home);
document.body.prepend(bar);

// Argilla's pages keep what they were told for minutes, such as questions in the order of who was signed in: whoever comes
// after, or goes, begins with pages that know nothing.
const held = () => (localStorage.getItem(TOKEN) || "").startsWith("Bearer ") ? localStorage.getItem(TOKEN) : null;
const put = Storage.prototype.setItem;
let came = held();
Storage.prototype.setItem = function (name, value) {
  put.call(this, name, value);
  if (name !== TOKEN || held() === came) return;
  if (came) location.reload();
  came = held();
};

let work = [], reader = null, token = null, waiting = null, typed = false;
const here = () => (location.pathname.slice(BASE.length).match(/^\/dataset\/([^/]+)\/annotation-mode/) || [])[1];
const narrow = () => window.innerWidth < 768;

function show(shown) {
  bar.hidden = !shown;
  document.documentElement.classList.toggle("has-beside", shown);
  if (!shown) return;
  const current = work.find(one => one.id === here()), busy = Boolean(here() && (!current || current.left));
  home.hidden = reader.username.startsWith("worker-");
  if (home.hidden) { crowd(current || work[0], busy); return; }
  const following = next(work);
  said.textContent = summary(work);
  on.hidden = busy || !following;
  on.href = following ? target(following) : home.href;
}

// A participant of a crowd has a batch, in a dataset that is named after its room, and gets a code at its end.
function crowd(batch, busy) {
  said.textContent = summary([batch]);
  on.hidden = busy;
  on.href = `${BASE}/crowd/enter/${encodeURIComponent(batch.name.split("-crowd-").pop())}`;
}

async function look(all, answered) {
  try {
    if (!session()) { show(false); return; }
    if (token !== session()) { token = session(); reader = await ask("me"); all = true; }
    const current = all ? undefined : work.find(one => one.id === here());
    if (current) Object.assign(current, await counted(current.id));
    if (!current || !current.left) work = await allWork();
    const open = work.find(one => one.id === here());
    if (reader.role === "annotator" && open && ours(open)) { location.replace(target(open)); return; }  // all see one page
    show(reader.role === "annotator" && work.length > 0);
    if (answered && !on.hidden) on.focus();
  } catch (error) {
    show(false);
  }
}

const ANSWERED = /\/api\/v1\/(records\/[^/]+\/responses|responses\/[^/]+|me\/responses\/bulk)$/;
const MOVED = /\/api\/v1\/(token|datasets\/[^/]+\/fields)$/;
new PerformanceObserver(list => {
  const paths = list.getEntries().map(one => new URL(one.name).pathname);
  const answered = paths.some(path => ANSWERED.test(path)), moved = paths.some(path => MOVED.test(path));
  if (!session()) show(false);
  if (!answered && !moved) return;
  if (answered) { typed = false; if (narrow()) toTop(); }
  clearTimeout(waiting);
  waiting = setTimeout(look, 200, moved, answered);
}).observe({ type: "resource" });
look(true);

// Argilla marks the comment after the last rating, and takes no letter until Shift+Enter; Backspace would discard all.
document.addEventListener("keydown", event => {
  const box = event.target;
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.key.length !== 1) return;
  if (!(box instanceof HTMLElement) || box.isContentEditable || box.matches("input, textarea, select, button, a, body")) return;
  const texts = box.querySelectorAll("[contenteditable=true]");
  if (texts.length !== 1) return;
  texts[0].focus();
  event.stopPropagation();
}, true);
document.addEventListener("input", event => { typed = typed || event.target.isContentEditable; }, true);
window.addEventListener("beforeunload", event => { if (typed) event.preventDefault(); }); // the browser asks

// Where the questions stand below the texts, marking the first one would scroll the texts away.
const toTop = () => document.querySelectorAll(".wrapper").forEach(one => one.scrollTo(0, 0));
const focus = HTMLElement.prototype.focus;
HTMLElement.prototype.focus = function (options) {
  focus.call(this, narrow() && this.matches("input[type=radio], input[type=checkbox]") ? { preventScroll: true, ...options } : options);
};
