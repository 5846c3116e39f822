// The store of raters who are signed in: items out of their own queue in Argilla, answers by Argilla's API with their rights.
const DATASET = location.pathname.split("/").pop(), AGAIN_MS = 20000, MOST = 100, EARLIER = 100;
const terms = (entity, property, ...values) => ({type: "terms", scope: {entity, property}, values});
const given = status => [terms("response", "status", status)];
const OPEN = [terms("response", "status", "pending", "draft"), terms("record", "status", "pending")];
// A participant of a crowd who discarded too much for the code is asked again about what they discarded.
const AGAIN = location.hash === "#discarded";

const argilla = async (task, questions, list, reader) => {
  const types = new Map(questions.map(question => [question.name, question.settings.type]));
  const kinds = new Map(task.questions.map(question => [question.name, question.kind]));
  const written = values => Object.fromEntries(Object.entries(values).map(([name, value]) => (
    [name, {value: typeof value === "number" && types.get(name) !== "rating" ? String(value) : value}])));
  const read = values => Object.fromEntries(Object.entries(values || {}).map(([name, {value}]) => (
    [name, ["rating", "slider"].includes(kinds.get(name)) ? Number(value) : value])));

  // A participant of a crowd comes by the entrance of a room, which their browser's cookie opens again.
  const room = reader.username.startsWith("worker-") && `${BASE}/crowd/enter/${encodeURIComponent(task.queue.split("-crowd-").pop())}`;

  // Somebody else may have signed in meanwhile, in another tab: nothing of one rater's goes out in another's name.
  let token = session();
  const call = async (path, body, method) => {
    if (session() && session() !== token) {
      if ((await ask("me")).id !== reader.id) { location.replace(room || `${BASE}/work`); throw failed(401); }
      token = session();
    }
    return ask(path, body, method);
  };
  const search = async (filters, limit, sort = {}) => {
    const path = `me/datasets/${DATASET}/records/search?include=responses&offset=0&limit=${limit}`;
    return (await call(path, {filters: {type: "and", and: filters}, ...sort})).items.map(({record}) => record);
  };

  const responses = new Map(), handed = new Set(), waiting = new Set(), answered = new Set();
  const itemOf = record => {
    const [response] = record.responses || [], asked = record.fields.asked;
    if (response) responses.set(record.id, response.id);
    if (response && response.status !== "draft") answered.add(record.id);
    return {
      id: record.id, texts: task.texts.map(({name}) => name === list.field ? entriesOf(record.fields[name], list.number) : record.fields[name]), asked,
      answer: response ? {values: read(response.values), status: response.status} : null,
      right: (task.known || {})[record.external_id],
    };
  };
  const handOut = records => {
    const fresh = records.filter(record => !handed.has(record.id));
    for (const record of fresh) { handed.add(record.id); waiting.add(record.id); }
    return fresh.map(itemOf);
  };

  // Counted anew now and then: others finish items too.
  let rest = null, here = {done: 0, left: 0}, countedAt = 0, finals = new Set(), saving = 0, saves = 0;
  const recount = async () => {
    const before = saves;
    if (!rest) {
      const work = await allWork();
      here = work.find(one => one.id === DATASET) || here;
      rest = work.filter(one => one.id !== DATASET && ours(one));
    } else {
      here = await counted(DATASET);
    }
    // What was being stored meanwhile may be in these numbers or not: the next look counts anew.
    [countedAt, finals] = [saving || saves !== before ? 0 : Date.now(), new Set()];
  };

  // A draft takes the place of a draft alone: an answer may have come from another browser meanwhile.
  const outdated = async (id, status) => (
    status === "draft" && !(await search(given("draft"), MOST)).some(record => record.id === id));
  const store = async (id, body) => {
    if (responses.has(id)) {
      if (await outdated(id, body.status)) return;
      await call(`responses/${responses.get(id)}`, body, "PUT");
      return;
    }
    try {
      responses.set(id, (await call(`records/${id}/responses`, body)).id);
    } catch (error) {
      if (error.status !== 409) throw error;  // the reply to an earlier try was lost, or another tab answered
      countedAt = 0;  // the numbers may hold that answer already
      const [record] = await search([terms("record", "id", id)], 1);
      if (!record) throw failed(404);
      responses.set(id, record.responses[0].id);
      await store(id, body);
    }
  };

  let earlier = null;
  return {
    introduced: Boolean(room),  // participants of a crowd have read it all at the entrance
    key: `${task.study} ${task.queue} ${reader.id}`,
    rater: reader.id,
    door: {href: room || `${BASE}/work?to=${encodeURIComponent(location.pathname)}`, label: WORDS.sign_in},
    // A search also finds what was handed out and is open still; among the discarded, all that was not rated since.
    next: async n => handOut(AGAIN
      ? await search(given("discarded"), Math.min(n + handed.size, MOST))
      : await search(OPEN, Math.min(n + waiting.size, MOST))),
    revisits: AGAIN,
    save: async (id, values, status, _, again) => {
      saving++;
      try {
        await store(id, {status, values: written(values)});
      } finally {
        saving--;
        saves++;
      }
      if (status === "draft") return;
      waiting.delete(id);
      if (!again && !answered.has(id)) finals.add(id);
      answered.add(id);
    },
    stale: () => { countedAt = 0; rest = null; },
    progress: async () => {
      if (Date.now() - countedAt > AGAIN_MS) await recount();
      const all = [here, ...rest], done = sum(all, "done") + finals.size;
      const several = rest.some(one => one.done || one.left);
      return {done, total: Math.max(sum(all, "done") + sum(all, "left"), done), of: several ? WORDS.title : ""};
    },
    previous: async id => {
      if (!earlier) {
        const sort = {sort: [{scope: {entity: "record", property: "updated_at"}, order: "desc"}]};
        const found = [...await search(given("submitted"), EARLIER, sort), ...await search(given("discarded"), EARLIER, sort)];
        const at = record => record.responses[0].updated_at;
        earlier = found.filter(record => !handed.has(record.id)).sort((a, b) => at(a) < at(b) ? 1 : -1);
      }
      const record = earlier.shift();
      return record && record.id !== id ? itemOf(record) : null;
    },
    end: async () => {
      if (room) { location.replace(room); return new Promise(() => {}); }  // which shows the code
      const work = await allWork(), on = next(work);
      const text = work.length && !sum(work, "left") && !sum(work, "out") ? "" : summary(work);  // "": all is answered
      if (!on) return {text, href: `${BASE}/work`, label: WORDS.title};
      if (on.id !== DATASET) { location.replace(target(on)); return new Promise(() => {}); }
      return {text, href: target(on), label: WORDS.go_on};
    },
  };
};

// Candidates that are drawn in an order for each rater are stored as one text: `1. first`, a blank line, `2. second`. Where the
// number after a blank line could be a candidate's own, the text stays as it is.
const entriesOf = (text, number) => {
  const starts = [0];
  for (let entry = 2; entry <= number; entry++) {
    const start = text.indexOf(`\n\n${entry}. `);
    if (start < starts.at(-1) || start !== text.lastIndexOf(`\n\n${entry}. `)) return text;
    starts.push(start);
  }
  return starts.map((start, at) => text.slice(start, starts[at + 1]).trimStart().slice(`${at + 1}. `.length));
};

// Items of a list under other names: those that are drawn get the drawn names in the server's order.
const renamed = (list, drawn, order, nameOf, rename) => {
  const names = order.filter(name => drawn.includes(name)).values();
  return list.map(item => drawn.includes(nameOf(item)) ? rename(item, names.next().value) : item);
};
// The task in this rater's order, where the server draws one: questions and labels about one candidate each get the names in
// the server's order, while the words of a place, such as "passage 2", stay there.
const ordered = (task, questions, {questions: about = [], options: labels = []} = {}) => {
  const optionsOf = name => (questions.find(question => question.name === name).settings.options || []).map(({value}) => value);
  const names = questions.map(question => question.name);
  const asked = renamed(task.questions, about, names, ({name}) => name, (question, name) => ({...question, name}));
  return {...task, questions: asked.map(question => question.points ? {...question, points: renamed(
    question.points, labels, optionsOf(question.name), ([value]) => value, ([, words], value) => [value, words])} : question)};
};

const begin = async () => {
  if (!session()) { location.replace(`${BASE}/work?to=${encodeURIComponent(location.pathname)}`); return; }
  try {
    const [reader, dataset, {items}] = await Promise.all(
      [ask("me"), ask(`datasets/${DATASET}`), ask(`datasets/${DATASET}/questions`)]);
    const {rate: task, drawn} = dataset.metadata || {};
    if (!task) { location.replace(`${BASE}/dataset/${DATASET}/annotation-mode`); return; }
    [document.documentElement.lang, document.documentElement.dir] = [task.language, task.direction];
    document.title = task.name;
    start(ordered(task, items, drawn), await argilla(task, items, drawn || {}, reader));
  } catch (error) {
    if ([401, 403, 404].includes(error.status)) { location.replace(`${BASE}/work`); return; }
    document.getElementById("notice").textContent = WORDS.trouble;
    setTimeout(begin, 5000);
  }
};
begin();
