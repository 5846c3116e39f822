"use strict";
// The rating page: one item after another out of a store, each answer back into it. With `task.together` above 1, up to so
// many items stand on one page that have all texts but the last in common, and each is answered by itself.
//
// start(task, store): `task` is what all items share (annotation/page/task.py); `store` has
//   key                               whose work it is (study, queue, rater): unsent answers stay in the browser under it;
//                                     empty where nothing may stay
//   rater                             who it is, where they have several queues, whose tabs tell each other what is stored
//   next(n) -> [item]                 up to n items that it has not handed out yet; none where none is left
//   save(id, values, status, seconds, again) resolves once the answer is stored, which takes an earlier one's place
//                                     (`again`); rejects with an Error that has HTTP's `status`
//   progress() -> {done, total, of}   over all of the rater's queues, and what to call these together where they are several
//   stale()                           another tab has stored an answer: what is counted is to be counted anew
//   previous(id) -> item | null       what was answered before this one, or last of all (null)
//   end() -> {text, label, href | go} the last page: a sentence, and a link or what its button does
//   closed                            a sentence where items can be looked at alone
//   revisits                          whether it hands out what was answered before
//   introduced                        whether the rater has read the instructions elsewhere
//   door                              {href, label} of where to sign in again
// All of them may return promises. An item is {id, texts, answer, questions, right}: its answer so far, questions that
// stand in place of the task's, and of known items what is right; the last three may be missing.
// Values are numbers (rating, slider), names (label), lists of names (multi_label), lists of {value, rank} (ranking), texts.

const IDLE_SECONDS = 120;  // who does nothing for longer has paused: no time of it counts, nor while the page is hidden
const DRAFT_MS = 5000, MOST_WAIT = 30;  // seconds between two tries
const MOST_BUTTONS = 20, MOST_RANKS = 9;
const SESSION_MS = 1800000;  // who answers nothing for longer begins another session
const LONGEST = 20000;  // characters of a text: the server refuses more (answers.py)

// Texts come in by textContent and by attributes' values alone: nothing in them is markup.
const make = (parent, tag, attributes = {}, text = null) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
};

// Guidelines: headings, lists, **strong** words, and paragraphs; all else is letters.
const strong = (parent, text) => {
  text.split("**").forEach((part, at) => at % 2 ? make(parent, "strong", {}, part) : parent.append(part));
};
const rendered = (parent, text, level) => {
  for (const block of text.split(/\n\s*\n/)) {
    let list = null, paragraph = null;
    for (const line of block.split("\n")) {
      const [, heading] = line.match(/^#+\s+(.*)/) || [], [, entry] = line.match(/^[-*]\s+(.*)/) || [];
      if (heading) strong(make(parent, level), heading);
      else if (entry) strong(make(list ||= make(parent, "ul"), "li"), entry);
      else if (line.trim()) {
        if (paragraph) make(paragraph, "br");
        strong(paragraph ||= make(parent, "p", {dir: "auto"}), line);
      }
    }
  }
};

// What was typed or pasted; half a character and null, which servers refuse with all else of the answer, become U+FFFD.
const typed = area => area.value.trim().replace(/[\0\p{Surrogate}]/gu, "\ufffd");

// A text runs as its own letters do: by its language where it has letters of that, otherwise by the first letter of either.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const directed = (text, {lang, dir}) => ({lang, dir: dir === "rtl" && RIGHT_TO_LEFT.test(text) ? "rtl" : "auto"});

// Time that counts.
const stopwatch = () => {
  let spent = 0, since = performance.now(), seen = !document.hidden;
  const mark = () => {
    const now = performance.now(), gap = now - since;
    if (seen && gap <= IDLE_SECONDS * 1000) spent += gap;
    [since, seen] = [now, !document.hidden];
  };
  for (const kind of ["pointerdown", "pointermove", "keydown", "input", "scroll", "wheel", "visibilitychange"])
    document.addEventListener(kind, mark, {capture: true, passive: true});
  return () => { mark(); const seconds = spent / 1000; spent = 0; return seconds; };
};

function start(task, store) {
  const $ = id => document.getElementById(id);
  const word = (name, values = {}) => (task.words[name] || "").replace(/\{(\w+)\}/g, (_, key) => values[key]);
  const button = (parent, text, act, attributes = {}) => {
    const element = make(parent, "button", {type: "button", ...attributes}, text);
    element.addEventListener("click", act);
    return element;
  };

  // What of it stays in the browser until it is stored; a browser that keeps nothing is no trouble.
  const prefix = `plumbline ${store.key} `;
  const remember = (name, value) => {
    try {
      if (!store.key) return;
      if (value === null) localStorage.removeItem(prefix + name);
      else localStorage.setItem(prefix + name, JSON.stringify(value));
    } catch { /* private windows, full disks */ }
  };
  const remembered = () => {
    try {
      const names = store.key ? Object.keys(localStorage).filter(name => name.startsWith(prefix)) : [];
      return new Map(names.map(name => [name.slice(prefix.length), JSON.parse(localStorage.getItem(name))]));
    } catch {
      return new Map();
    }
  };

  // Sentences to the rater: one at a time, the most pressing first.
  const sentences = new Map();
  const say = (topic, text) => {
    sentences.set(topic, text);
    $("notice").textContent = ["session", "network", "tabs", "page"].map(name => sentences.get(name)).find(Boolean) || "";
    if (!sentences.get("session") || !store.door) return;
    $("notice").append(" ");
    make($("notice"), "a", {href: store.door.href}, store.door.label);
  };

  // Answers on their way to the store, one after another; the last of an item counts.
  const unsent = new Map(), ANSWER = "answer ";
  for (const [name, entry] of remembered()) if (name.startsWith(ANSWER)) unsent.set(name.slice(ANSWER.length), entry);
  const earlier = new Map(unsent);  // a store may not know yet what it is sent meanwhile
  let sending = false, wait = 1, timer = 0;
  const isRefused = error => [403, 404, 413, 422].includes(error.status);  // all else is tried again
  const troubled = error => {
    say("session", error.status === 401 ? word("expired") : "");
    say("network", error.status === 401 ? "" : word("offline"));
    const seconds = wait;
    wait = Math.min(2 * wait, MOST_WAIT);
    return seconds * 1000;
  };
  const untroubled = () => { wait = 1; say("session", ""); say("network", ""); };
  const refused = () => { untroubled(); say("page", word("refused")); };  // a refusal is a reply: there is a connection
  const send = async () => {
    if (sending) return;
    sending = true;
    clearTimeout(timer);
    while (unsent.size) {
      const [id, entry] = unsent.entries().next().value;
      try {
        await store.save(id, entry.values, entry.status, entry.seconds, entry.again);
        untroubled();
      } catch (error) {
        if (!isRefused(error)) { timer = setTimeout(send, troubled(error)); break; }
        refused();
      }
      if (unsent.get(id) === entry) { unsent.delete(id); remember(ANSWER + id, null); }
      else if (entry.status !== "draft") {  // what came meanwhile takes the place of a stored one
        unsent.get(id).again = true;
        remember(ANSWER + id, unsent.get(id));
      }
      if (entry.status !== "draft") {
        tell(null);
        await showProgress();
      }
    }
    sending = false;
    if (!unsent.size) settled.splice(0).forEach(act => act());
  };
  const settled = [];
  const allSent = () => new Promise(act => { settled.push(act); send(); });
  const put = (id, entry) => {
    const before = unsent.get(id);
    if (before && before.status !== "draft") entry.again = before.again;  // what it takes the place of is not stored yet
    unsent.delete(id);
    unsent.set(id, entry);
    remember(ANSWER + id, entry);
    send();
  };
  window.addEventListener("online", () => { wait = 1; send(); });
  // What the store is asked until it answers; null where it refuses.
  const insist = async question => {
    for (;;) {
      try {
        const answer = await question();
        untroubled();
        return answer;
      } catch (error) {
        if (isRefused(error)) { refused(); return null; }
        const ms = troubled(error);
        await new Promise(act => { setTimeout(act, ms); window.addEventListener("online", act, {once: true}); });
      }
    }
  };

  // How much is done: what the store says, and what is on its way to it.
  let progress = {done: 0, total: 0}, counter = 0;
  // A session spans all queues and tabs.
  const tally = `plumbline session ${store.rater}`;
  let own = {n: 0, at: 0};
  const session = () => {
    try { if (store.rater) own = JSON.parse(localStorage.getItem(tally)) || own; } catch { /* it lasts as long as the page */ }
    return store.rater && Date.now() - own.at > SESSION_MS ? 0 : own.n;
  };
  const countSession = () => {
    own = {n: session() + 1, at: Date.now()};
    try { if (store.rater) localStorage.setItem(tally, JSON.stringify(own)); } catch { /* as above */ }
  };
  const showProgress = async () => {
    try { progress = await store.progress(); } catch { /* it is told by the next answer */ }
    const waiting = [...unsent.values()].filter(entry => entry.status !== "draft" && !entry.again).length;
    const n = Math.min(progress.done + waiting, progress.total);
    const words = word("progress", {n, all: progress.total});
    const parts = [progress.of ? `${progress.of}: ${words}` : words, session() ? word("session", {n: session()}) : ""];
    $("progress").textContent = parts.filter(Boolean).join(" · ");
    $("meter").max = progress.total || 1;
    $("meter").value = n;
    return n;
  };

  // Items that are here before they are asked for: those of a page and of the next one, for a page is shown whole.
  const TOGETHER = task.together || 1, AHEAD = Math.max(4, 2 * TOGETHER);
  const queue = [], met = new Map(), done = new Set();
  let exhausted = false, filling = null;
  // An item is here once, with its newest answer, whoever hands it out.
  const once = item => {
    const own = met.get(item.id) || item, waiting = unsent.get(item.id);
    if (!isFinal(own)) own.answer = item.answer;
    if (waiting && waiting.status !== "draft") own.answer = waiting;
    met.set(item.id, own);
    return own;
  };
  const accept = item => {
    const entry = earlier.get(item.id);
    if (met.has(item.id) || done.has(item.id) || entry && entry.status !== "draft") return;
    queue.push(once(entry ? {...item, answer: entry} : item));
  };
  const fetchMore = async () => {
    while (!exhausted && queue.length < AHEAD) {
      const more = await insist(() => store.next(AHEAD - queue.length)) || [], before = queue.length;
      more.forEach(accept);
      exhausted = more.length === 0 || queue.length === before && more.every(item => met.has(item.id));
    }
  };
  const shared = item => JSON.stringify(item.texts.slice(0, -1));
  const nextPage = () => {
    let n = 1;
    while (n < Math.min(TOGETHER, queue.length) && shared(queue[n]) === shared(queue[0])) n++;
    return queue.splice(0, n);
  };
  // Several at once, for each request costs the server the same.
  const fill = () => queue.length > AHEAD / 2 ? filling : filling ||= fetchMore().finally(() => { filling = null; });

  // Questions. Each is {group, question, value(), set(value), answered(), needed(), key(digit)}, with `stays` where an answer
  // may be followed by more of it, and `field` where keys need more than its group.
  const MOST_IN_ROW = 7;  // of bare numbers on a narrow screen
  const rowed = (box, n) => box.style.setProperty("--row", Math.ceil(n / Math.ceil(n / MOST_IN_ROW)));
  const choices = (group, question, key, changed) => {
    const {kind, points} = question, several = kind === "multi_label", rating = kind === "rating";
    const signed = rating && points[0][0] < 0, shown = value => `${signed && value > 0 ? "+" : ""}${value}`.replace("-", "−");
    const byValue = rating && points.every(([value]) => Number.isInteger(value) && value >= 0 && value <= 10);
    const bare = rating && points.slice(1, -1).every(([, words]) => !words) && points.length > 2;
    const box = make(group, "div", {class: `points ${rating ? bare ? "bare" : "scale" : "labels"}`});
    rowed(box, points.length);
    const inputs = points.map(([value, words], place) => {
      const label = make(box, "label", {class: "point"});
      const input = make(label, "input", {type: several ? "checkbox" : "radio", name: key, value});
      if (rating) make(label, "strong", {}, shown(value));
      if (!byValue && place < 9) make(label, "kbd", {"aria-hidden": "true"}, String(place + 1));
      if (words) make(label, "span", {dir: "auto", class: bare ? "unseen" : null}, words);
      return input;
    });
    if (bare) {
      const ends = make(group, "p", {class: "ends", "aria-hidden": "true"});
      for (const [value, words] of [points[0], points.at(-1)]) make(ends, "span", {dir: "auto"}, words && `${shown(value)} ${words}`);
    }
    group.addEventListener("change", changed);
    const chosen = () => inputs.flatMap((input, place) => input.checked ? [points[place][0]] : []);
    return {
      stays: several,
      value: () => several ? chosen() : chosen()[0] ?? null,
      answered: () => chosen().length > 0,
      set: value => {
        const all = value === null ? [] : [value].flat().map(String);
        inputs.forEach((input, place) => { input.checked = all.includes(String(points[place][0])); });
      },
      key: digit => {
        const at = byValue ? points.findIndex(([value]) => value === digit) : digit - 1, place = at < 0 && !digit ? 9 : at;
        if (!inputs[place]) return false;
        inputs[place].checked = several ? !inputs[place].checked : true;
        changed();
        return !several;
      },
    };
  };
  const listed = (group, question, key, changed) => {
    const list = make(group, "select", {"aria-labelledby": `t-${key}`, "aria-required": String(question.required)});
    for (const [value, words] of [["", "–"], ...question.points]) make(list, "option", {value, dir: "auto"}, words || value);
    list.addEventListener("change", changed);
    return {
      value: () => list.value || null, answered: () => list.value !== "",
      set: value => { list.value = value ?? ""; }, key: () => false,
    };
  };
  const slider = (group, question, key, changed) => {
    const {low, high, step, start: begin = null, points = []} = question, middle = (low + high) / 2;
    const attributes = {type: "range", min: low, max: high, step, "aria-labelledby": `t-${key}`,
      "aria-required": String(question.required)};
    const line = make(group, "div", {class: "slider"});
    const input = make(line, "input", {...attributes, value: begin ?? middle}), shown = make(line, "output");
    let touched = false;
    const show = () => {
      const number = String(Number(input.value));
      shown.textContent = touched ? number : "–";
      input.setAttribute("aria-valuetext", touched ? number : word("unanswered"));
      input.classList.toggle("untouched", !touched);
      input.classList.toggle("nowhere", !touched && begin === null);
    };
    const touch = () => { touched = true; show(); changed(); };
    input.addEventListener("input", touch);
    input.addEventListener("click", touch);
    // A key that moves it answers, even where it stands at that end already.
    input.addEventListener("keydown", event => {
      if (event.ctrlKey || event.altKey || event.metaKey || !/^(Arrow|Page|Home|End| )/.test(event.key)) return;
      if (event.key === " ") event.preventDefault();
      touch();
    });
    // A digit is the point itself on a scale such as 1 to 7, and elsewhere that many tenths of the way.
    const isPoint = low >= 0 && high <= 10 && high - low >= 2;
    const at = digit => isPoint ? !digit && low > 0 ? 10 : digit : low + (high - low) * digit / 10;
    const ends = make(group, "p", {class: "ends"});
    for (const [value, words] of points) make(ends, "span", {dir: "auto"}, words ? `${value} ${words}` : String(value));
    show();
    return {
      stays: true, field: input,
      value: () => touched ? Number(input.value) : null, answered: () => touched,
      set: value => { touched = value !== null; input.value = value ?? begin ?? middle; show(); },
      key: digit => {
        if (at(digit) < low || at(digit) > high) return false;
        input.value = at(digit);
        touch();
        input.focus();
        return false;
      },
    };
  };
  const text = (group, question, key, changed) => {
    const area = make(group, "textarea", {rows: 2, dir: "auto", maxlength: LONGEST, "aria-labelledby": `t-${key}`,
      "aria-required": String(question.required)});
    area.addEventListener("input", changed);
    return {
      value: () => typed(area) || null, answered: () => area.value.trim() !== "",
      set: value => { area.value = value ?? ""; }, key: () => false,
    };
  };
  // A rank for each label; equal ones may share theirs. Digits rank one label after the other.
  const ranking = (group, question, key, changed) => {
    const {points} = question, ranks = points.map((_, place) => place + 1);
    make(group, "p", {class: "hint"}, word("ranking"));
    const rows = points.map(([value, words], place) => {
      const id = `r-${key}-${place}`, line = make(group, "div", {class: "rank", role: "radiogroup", "aria-labelledby": id});
      make(line, "span", {id, dir: "auto"}, words || value);
      if (ranks.length > MOST_RANKS) {
        line.setAttribute("role", "group");
        const list = make(line, "select", {"aria-labelledby": id});
        for (const rank of ["", ...ranks]) make(list, "option", {value: rank}, rank || "–");
        return {line, rank: () => Number(list.value), set: rank => { list.value = rank || ""; }};
      }
      const box = make(line, "div", {class: "points bare"});
      rowed(box, ranks.length);
      const inputs = ranks.map(rank => {
        const label = make(box, "label", {class: "point"});
        const input = make(label, "input", {type: "radio", name: `${key}-${place}`, value: rank});
        make(label, "strong", {}, String(rank));
        return input;
      });
      const rank = () => inputs.findIndex(input => input.checked) + 1;
      return {line, rank, set: chosen => inputs.forEach((input, at) => { input.checked = at + 1 === chosen; })};
    });
    group.addEventListener("change", changed);
    const some = () => rows.some(row => row.rank() > 0), all = () => rows.every(row => row.rank() > 0);
    return {
      answered: all, begun: some,
      value: () => some() ? rows.flatMap((row, at) => row.rank() ? [{value: points[at][0], rank: row.rank()}] : []) : null,
      set: value => rows.forEach((row, at) => {
        row.set(((value || []).find(entry => entry.value === points[at][0]) || {}).rank || 0);
      }),
      key: digit => {
        const row = rows.find(one => one.line.contains(document.activeElement)) || rows.find(one => !one.rank());
        if (!row || !digit || digit > ranks.length) return false;
        row.set(digit);
        changed();
        const next = rows.slice(rows.indexOf(row) + 1).find(one => !one.rank()) || rows.find(one => !one.rank());
        if (next && row.line.contains(document.activeElement)) next.line.querySelector("input, select").focus();
        return all();
      },
    };
  };
  const kinds = {rating: choices, label: choices, multi_label: choices, slider, text, ranking};
  const makeQuestion = (parent, question, number, changed) => {
    const key = `q${number}`, {kind, required} = question, list = kind === "label" && question.points.length > MOST_BUTTONS;
    const role = (kind === "rating" || kind === "label") && !list ? "radiogroup" : "group";
    const group = make(parent, "fieldset", {role, tabindex: -1, "aria-labelledby": `t-${key}`,
      "aria-required": role === "radiogroup" ? String(required) : null, "aria-describedby": question.hint ? `h-${key}` : null});
    make(group, "legend", {id: `t-${key}`, dir: "auto"}, question.title);
    if (question.hint) make(group, "p", {id: `h-${key}`, class: "hint", dir: "auto"}, question.hint);
    const own = {group, question};
    Object.assign(own, (list ? listed : kinds[kind])(group, question, key, () => changed(own)));
    own.needed = others => {
      const {after} = question, before = after && others.find(other => other.question.name === after[0]);
      return required || Boolean(own.begun && own.begun()) || Boolean(before) && before.value() === after[1];
    };
    return own;
  };

  // One page: a card for each of its items.
  const watch = stopwatch(), history = [];
  let view = null, turns = 0;

  const makeTexts = (parent, item, places, number = "") => {
    const box = make(parent, "div", {class: `texts n${places.length}`});
    for (const place of places) {
      const value = item.texts[place], kind = task.texts[place];
      const part = make(box, "section", {class: "part"});
      make(part, "h3", {dir: "auto"}, `${kind.title} ${number}`.trim());
      if (typeof value === "string") { make(part, "p", {class: "text", ...directed(value, kind)}, value); continue; }
      const chat = typeof value[0] !== "string", whole = value.map(entry => chat ? entry.content : entry).join(" ");
      const list = make(part, "ol", {class: `text list${chat ? " chat" : ""}`, ...directed(whole, kind)});
      for (const entry of value) {
        const line = make(list, "li");
        if (chat) make(line, "strong", {}, entry.role);
        make(line, "div", directed(chat ? entry.content : entry, kind), chat ? entry.content : entry);
      }
    }
    return box;
  };

  const valuesOf = card => {
    const values = {};
    for (const one of card.questions) {
      const value = one.value();
      if (value !== null && !(Array.isArray(value) && !value.length)) values[one.question.name] = value;
    }
    if (typed(card.comment)) values[task.comment.name] = typed(card.comment);
    return values;
  };
  const isFinal = item => Boolean(item.answer) && item.answer.status !== "draft";
  const stays = card => isFinal(card.item) && !card.changed;  // looked at again, and left as it was
  const entryOf = (card, status, values = valuesOf(card)) => {
    const seconds = watch() / view.cards.length;  // the time of a page is shared by all that is on it
    for (const {item} of view.cards) item.seconds = (item.seconds || 0) + seconds;
    return {values, status, seconds: card.item.seconds, again: isFinal(card.item)};
  };

  // What is chosen stays at once in the browser, and goes to the store as a draft where no answer follows soon. An answer
  // that was submitted stays submitted until it is submitted anew.
  const draft = card => {
    clearTimeout(card.timer);
    card.changed = true;
    if (isFinal(card.item)) return;
    const entry = entryOf(card, "draft"), {id} = card.item;
    remember(ANSWER + id, entry);
    card.timer = setTimeout(put, DRAFT_MS, id, entry);
  };

  // On narrow screens an answered question shows its answer alone, until it is active again.
  const activate = one => {
    view.active = one;
    for (const other of view.questions) {
      other.group.classList.toggle("active", other === one);
      other.group.classList.toggle("answered", other.answered());
    }
  };
  const waits = one => !one.answered() && !stays(one.card) && !one.card.box.hidden;
  const needed = one => waits(one) && one.needed(one.card.questions);
  const nextOpen = one => view.questions.slice(view.questions.indexOf(one) + 1).find(waits) || view.questions.find(needed);
  const firstOpen = () => view.questions.find(needed);
  const goTo = one => (one ? one.field || one.group : view.submit).focus();
  const undoable = one => one.question.kind !== "text";  // in a box Backspace deletes a letter
  const changed = one => {
    setUnable(one.card, false);
    if (undoable(one)) view.order = [...view.order.filter(other => other !== one), one];
    draft(one.card);
    activate(one.answered() && !one.stays ? nextOpen(one) : one);
  };

  const complain = (sentence, one, card) => {
    view.alert.textContent = sentence;
    if (!one) { card.comment.focus(); return card.more.scrollIntoView({block: "center"}); }
    activate(one);
    one.group.classList.add("missing");
    (one.group.querySelector("select, textarea") || one.field || one.group).focus();
    one.group.scrollIntoView({block: "nearest"});
  };
  const complaint = card => {
    const one = card.questions.find(needed);
    return one ? [word("missing", {pair: card.name, question: one.question.title}), one] : tooLong(card);
  };
  const tooLong = card => {
    const n = card.comment.value.trim().length, {most} = task.comment;
    return n > most ? [word("too_long", {n, most})] : null;
  };

  const settle = (card, status, values) => {
    const {item} = card, entry = entryOf(card, status, values);
    clearTimeout(card.timer);
    if (!entry.again) countSession();
    say("tabs", "");
    item.answer = entry;
    card.changed = false;
    put(item.id, entry);
    done.add(item.id);
    tell(item.id);
    showProgress();
  };
  const leave = () => {
    const items = view.cards.map(({item}) => item).filter(isFinal);
    if (items.length) history.push(items);
    advance();
  };
  const withReason = (card, reason) => (
    {...valuesOf(card), [task.comment.name]: [reason, typed(card.comment)].filter(Boolean).join("\n")});
  const submit = () => {
    const cards = view.cards.filter(card => card.unable || !stays(card) && !card.box.hidden);
    for (const card of cards) {
      const unsaid = card.unable && !typed(card.comment) && [word("say_why")];
      const wrong = unsaid || (card.unable ? tooLong(card) : complaint(card));
      if (wrong) return complain(wrong[0], wrong[1], card);
    }
    for (const card of cards) card.unable ? settle(card, "discarded", withReason(card, "")) : settle(card, "submitted", valuesOf(card));
    leave();
  };
  const discard = (card, reason, isOther) => {
    if (isOther && !typed(card.comment)) {
      toggleUnable(card, false);
      setUnable(card, true);
      return openComment(card);
    }
    if (tooLong(card)) return complain(...tooLong(card), null, card);
    settle(card, "discarded", withReason(card, isOther ? "" : reason));
    if (view.cards.every(stays)) return leave();
    toggleUnable(card, false);
    showDiscarded(card);
    activate(firstOpen());
    goTo(view.active);
  };
  const withoutReason = comment => {
    const reason = task.unable.reasons.find(one => comment === one || comment.startsWith(`${one}\n`));
    return reason ? comment.slice(reason.length + 1) : comment;
  };
  // The next step discards, once the reason is there. What was missing until now is missing no more, or is said anew.
  const setUnable = (card, unable) => {
    view.alert.textContent = "";
    for (const {group} of card.questions) group.classList.remove("missing");
    card.unable = unable;
    card.hint.textContent = unable ? word("say_why") : "";
  };
  const openComment = card => {
    card.more.hidden = false;
    card.opener.setAttribute("aria-expanded", "true");
    card.comment.focus({preventScroll: true});
    card.more.scrollIntoView({block: "nearest"});
  };
  const toggleUnable = (card, open) => {
    card.reasons.hidden = !open;
    setUnable(card, false);
    card.cannot.setAttribute("aria-expanded", String(open));
    if (!open) return;
    card.reasons.querySelector("button").focus({preventScroll: true});
    card.reasons.scrollIntoView({block: "nearest"});
  };
  const showDiscarded = card => {
    const {status, values} = card.item.answer || {};
    if (status !== "discarded") return false;
    card.note.textContent = `${word("discarded")} `;
    make(card.note, "bdi", {}, values[task.comment.name] || "–");
    card.note.hidden = false;
    return true;
  };

  // What was chosen of an item stays with it, whatever is shown next.
  const keep = card => {
    const final = isFinal(card.item);
    clearTimeout(card.timer);
    if (!card.changed || card.box.hidden || final && complaint(card)) return;
    card.item.answer = entryOf(card, final ? "submitted" : "draft");
    put(card.item.id, card.item.answer);
  };

  // Undo: the last choice on this page, or back to the page before, which may be of an earlier visit.
  let further = null, returning = false;
  const pageBefore = async () => {
    const items = [];
    for (let id = view ? view.cards[0].item.id : null; items.length < TOGETHER; id = items[0].id) {
      const handed = further || await store.previous(id), item = handed && once(handed);
      further = null;
      if (!item) break;
      if (items.length && shared(item) !== shared(items[0])) { further = item; break; }
      items.unshift(item);
    }
    return items;
  };
  const back = async () => {
    const turn = turns, number = view ? view.cards[0].item.number : counter + 1;
    let items = history.pop();
    if (!items) {
      if (returning) return;
      returning = true;
      try { items = await pageBefore(); } catch (error) { troubled(error); }
      returning = false;
    }
    if (!items || !items.length) return;
    queue.splice(0, queue.length, ...queue.filter(item => !items.includes(item)));
    items.forEach((item, at) => { item.number ||= Math.max(1, number - items.length + at); });
    if (turn !== turns) return history.unshift(items);  // gone on meanwhile
    if (view) {
      view.cards.forEach(keep);
      queue.unshift(...view.cards.filter(({box}) => !box.hidden).map(({item}) => item));
    }
    show(items);
  };
  const undo = () => {
    const one = view.order.pop();
    if (!one) return back();
    one.set(null);
    draft(one.card);
    activate(one);
    goTo(one);
  };

  const makeCard = (parent, item, at, name) => {
    const values = (item.answer || {}).values || {}, id = part => at ? `${part}-${at}` : part;
    const card = {item, name, box: parent, changed: false, timer: 0};
    card.note = make(parent, "p", {id: id("before"), class: "note", hidden: ""});
    const box = make(parent, "div", {class: "questions"});
    card.questions = (item.questions || task.questions).map((one, place) => makeQuestion(box, one, id(place), changed));
    const more = make(parent, "div", {class: "more"});
    card.opener = button(more, task.comment.title, () => {
      card.more.hidden ? openComment(card) : (card.more.hidden = true, card.opener.setAttribute("aria-expanded", "false"));
    }, {class: "quiet", "aria-expanded": "false", "aria-controls": id("more")});
    card.cannot = button(more, task.unable.title, () => toggleUnable(card, card.reasons.hidden),
      {class: "quiet", "aria-expanded": "false", "aria-controls": id("reasons")});
    card.more = make(parent, "div", {id: id("more"), hidden: ""});
    const label = make(card.more, "label", {class: "above"}, task.comment.title);
    card.hint = make(label, "span", {class: "hint"});
    card.comment = make(label, "textarea", {id: id("comment"), rows: 3, dir: "auto", maxlength: LONGEST});
    card.comment.addEventListener("input", () => draft(card));
    card.reasons = make(parent, "div", {id: id("reasons"), role: "group", "aria-label": task.unable.title, hidden: ""});
    task.unable.reasons.forEach((reason, place, all) => {
      const choose = button(card.reasons, null, () => discard(card, reason, place === all.length - 1), {class: "reason"});
      make(choose, "kbd", {"aria-hidden": "true"}, String(place + 1));
      make(choose, "span", {}, reason);
    });
    if (item.right) makeRight(parent, item.right);
    for (const one of card.questions) { one.card = card; one.set(values[one.question.name] ?? null); }
    card.comment.value = withoutReason(values[task.comment.name] || "");
    if (card.comment.value) { card.more.hidden = false; card.opener.setAttribute("aria-expanded", "true"); }
    return card;
  };
  const makeRight = (parent, right) => {
    const box = make(parent, "details", {class: "right"});
    make(box, "summary", {}, word("open"));
    makeSolution(box, right);
  };
  const makeSolution = (box, {answers, why}) => {
    const list = make(box, "ul");
    for (const [title, answer] of answers) make(make(list, "li", {dir: "auto"}, `${title} `), "strong", {}, answer);
    if (why) make(box, "p", {dir: "auto"}, why);
  };

  const show = items => {
    const form = $("item"), [item] = items, last = items.at(-1);
    for (const one of items) one.number ||= ++counter;
    watch();
    form.textContent = "";
    turns++;
    const all = Math.max(progress.total, last.number), n = items.length > 1 ? `${item.number}–${last.number}` : item.number;
    const title = make(form, "h2", {id: "turn", tabindex: -1, class: "unseen"}, word("pair", {n, all}));
    if (task.asked) {
      const asked = make(form, "p", {class: "asked", dir: "auto"});
      make(asked, "span", {}, `${task.about}: `);
      make(asked, "bdi", {}, item.asked || task.asked);
    }
    const places = [...task.texts.keys()], own = places.at(-1);
    view = {order: []};
    if (TOGETHER === 1) {
      makeTexts(form, item, places);
      view.cards = [makeCard(make(form, "div"), item, 0, title.textContent)];
    } else {
      const common = makeTexts(form, item, places.slice(0, -1));  // stays in sight, and scrolls by itself where it is long
      common.classList.add("common");
      for (const part of common.children) part.tabIndex = 0;
      const outputs = make(form, "div", {class: "outputs"});
      view.cards = items.map((one, at) => {
        const name = `${task.texts[own].title} ${at + 1}`, box = make(outputs, "section", {class: "output", "aria-label": name});
        makeTexts(box, one, [own], at + 1);
        return Object.assign(makeCard(make(box, "div"), one, at, name), {box});
      });
    }
    const foot = make(form, "div", {class: "foot"});
    view.alert = make(foot, "p", {id: "alert", role: "alert"});
    button(foot, word("back"), back, {id: "back", class: "quiet"});
    view.submit = make(foot, "button", {id: "next"}, word("next"));
    view.questions = view.cards.flatMap(({questions}) => questions);
    view.order = view.questions.filter(one => undoable(one) && one.answered());
    if (view.cards.filter(showDiscarded).length) title.setAttribute("aria-describedby", view.cards.map(({note}) => note.id).join(" "));
    activate(view.questions.find(waits) || view.questions.find(one => !one.answered()));
    page("item");
    if (store.closed) for (const element of form.elements) element.disabled = true;
    window.scrollTo(0, 0);
    title.focus({preventScroll: true});
    setTimeout(fill);
  };

  const page = name => {
    for (const one of ["intro", "item", "end"]) $(one).hidden = one !== name;
    $("help").hidden = name !== "item";
  };

  // Where the next item is not there yet, nothing stays that could be answered, and a second Enter skips none.
  const advance = async () => {
    if (queue.length > (exhausted ? 0 : TOGETHER - 1)) return show(nextPage());
    const turn = ++turns, title = pauseOn();
    await fill();
    if (turn !== turns) return;  // gone back meanwhile
    if (queue.length) show(nextPage()); else finish(title);
  };
  const pauseOn = () => {
    view = null;
    $("end").textContent = "";
    const title = make($("end"), "h2", {id: "end-title", tabindex: -1}, word("sending"));
    page("end");
    title.focus();
    return title;
  };

  const finish = async title => {
    const box = $("end"), turn = turns;
    await allSent();
    await showProgress();
    const end = (store.end && turn === turns && await insist(store.end)) || {};
    if (turn !== turns) return;
    title.textContent = word("thank_you");
    make(box, "p", {}, end.text || word("finished"));
    if (end.href) make(box, "a", {class: "button", href: end.href}, end.label);
    if (end.go) {
      const go = button(box, end.label, () => { go.disabled = true; go.textContent = word("sending"); end.go(); }, {class: "button"});
    }
    button(box, word("back"), back, {class: "quiet"});
  };

  // Keys: digits answer the marked question, Enter goes on, Backspace undoes, Escape closes what was opened.
  const digitOf = event => {
    const [, code] = event.code.match(/^(?:Digit|Numpad)(\d)$/) || [];
    return /^\d$/.test(event.key) ? Number(event.key) : code === undefined ? null : Number(code);
  };
  document.addEventListener("keydown", event => {
    const {target} = event, typing = target.matches("textarea, select, input[type=text]");
    if (store.closed || $("dialog").open || event.isComposing) return;
    if (!view) {
      if (event.key === "Backspace" && !$("end").hidden) back();
      return;
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); return submit(); }
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const listing = view.cards.find(card => !card.reasons.hidden);
    if (event.key === "Escape") {
      if (!typing && listing) { toggleUnable(listing, false); listing.cannot.focus(); }
      return typing ? view.submit.focus() : undefined;
    }
    if (typing) return;
    if (event.key === "Backspace") { event.preventDefault(); return undo(); }
    if (event.key === "Enter" && !target.matches("button, a, summary")) {
      event.preventDefault();
      const one = view.active, answered = one && one.stays && one.answered();
      return answered && firstOpen() ? goTo(nextOpen(one)) : submit();
    }
    const digit = digitOf(event);
    if (digit === null) return;
    if (listing) {
      const reason = listing.reasons.children[digit - 1];
      if (reason) { event.preventDefault(); reason.click(); }
      return;
    }
    const one = view.active;
    if (!one) return;
    event.preventDefault();
    if (!one.key(digit)) return;
    goTo(nextOpen(one));
  });
  // The second of two quick taps chooses nothing: another question may have moved below the finger.
  $("item").addEventListener("click", event => { if (event.detail > 1 && event.target.closest(".point")) event.preventDefault(); });
  $("item").addEventListener("submit", event => { event.preventDefault(); submit(); });
  // What is entered is active: by keys at once, by a finger when it is lifted, for nothing may move below it.
  let pressed = false;
  const enter = event => {
    const one = view && view.questions.find(other => other.group.contains(event.target));
    if (one && !pressed) activate(one);
  };
  for (const [kind, down] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]])
    document.addEventListener(kind, () => { pressed = down; }, true);
  for (const kind of ["focusin", "click"]) $("item").addEventListener(kind, enter);
  window.addEventListener("pagehide", () => { if (view) view.cards.forEach(keep); });

  // Another tab of the same rater: what is answered there is not asked here, and what is stored there is counted here.
  const channel = store.key && window.BroadcastChannel ? new BroadcastChannel(`plumbline ${store.rater || store.key}`) : null;
  const tell = id => { if (channel) channel.postMessage(id); };
  if (channel) channel.onmessage = event => {
    if (event.data === null) {
      if (store.stale) store.stale();
      return showProgress();
    }
    done.add(event.data);
    const at = queue.findIndex(item => item.id === event.data);
    if (at >= 0) queue.splice(at, 1);
    showProgress();
    const card = view && view.cards.find(({item}) => item.id === event.data);
    if (!card || card.box.hidden || isFinal(card.item)) return;
    clearTimeout(card.timer);
    say("tabs", word("elsewhere"));
    card.box.hidden = true;
    if (view.cards.every(one => one.box.hidden || stays(one))) leave(); else activate(firstOpen());
  };

  // The instructions: before the first item, and at any time behind a button.
  const makeGuide = (box, level) => {
    rendered(box, task.guidelines, level);
    if ((task.examples || []).length) {
      const examples = make(box, "details", {class: "examples"});
      make(examples, "summary", {dir: "auto"}, word("examples"));
      for (const {texts, right} of task.examples) {
        const example = make(examples, "div", {class: "example"});
        for (const one of texts) {
          make(example, level, {dir: "auto"}, one.title);
          make(example, "p", {class: "text", ...directed(one.text, one)}, one.text);
        }
        makeSolution(example, right);
      }
    }
    const sliders = task.questions.some(({kind}) => kind === "slider");
    make(box, "p", {class: "hint keys"}, [word("keyboard"), sliders ? word("slider") : ""].join(" "));
    if (task.contact) make(make(box, "p", {}, `${word("contact")} `), "bdi", {}, task.contact);
  };
  const makeIntro = begin => {
    const box = $("intro");
    make(box, "h2", {id: "intro-title"}, word("instructions"));
    makeGuide(box, "h3");
    const door = make(box, "form", {class: "door", novalidate: ""});
    let consent = null;
    if (task.consent) {
      const group = make(door, "fieldset");
      make(group, "legend", {}, word("consent"));
      const label = make(group, "label", {class: "point"});
      consent = make(label, "input", {type: "checkbox", required: ""});
      make(label, "span", {dir: "auto"}, task.consent);
    }
    const alert = make(door, "p", {role: "alert", class: "alert"});
    const go = make(door, "button", {id: "begin", "aria-describedby": "intro-title"}, word("begin"));
    if (store.closed) for (const element of door.elements) element.disabled = true;
    door.addEventListener("submit", event => {
      event.preventDefault();
      if (consent && !consent.checked) { alert.textContent = word("consent_missing"); return consent.focus(); }
      remember("seen", true);
      begin();
    });
    return consent || go;
  };
  const dialog = $("dialog");
  $("help").textContent = word("instructions");
  make(dialog, "h2", {id: "dialog-title"}, word("instructions"));
  makeGuide(dialog, "h3");
  button(dialog, word("close"), () => dialog.close(), {class: "button"});
  $("help").addEventListener("click", () => dialog.showModal());

  $("name").textContent = task.name;
  say("page", store.closed || store.notice || "");
  const open = async () => {
    fill();
    await send();  // first: whether an answer of an earlier visit has arrived is not known, and none is counted twice
    const n = await showProgress();
    counter = store.revisits ? 0 : n;
    const first = makeIntro(advance);
    if ((store.introduced || remembered().has("seen")) && !store.closed) return advance();
    page("intro");
    if (window === window.top) first.focus({preventScroll: true});  // the instructions begin at their first line
    if (store.closed) { await fill(); if (queue.length) show(nextPage()); $("intro").hidden = false; }
  };
  return open();
}
