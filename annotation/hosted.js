// The store of a page that stands alone in a file: items and answers are in the page, and a form takes the answers along.
//
// data: {task, items, drawn, submit_to, style}. Without an address nothing is stored: the page is a trial.
const hosted = data => {
  const {task, items, drawn, submit_to: address} = data;
  const assignment = new URLSearchParams(location.search).get("assignmentId") || "ASSIGNMENT_ID_NOT_AVAILABLE";
  const preview = Boolean(address) && assignment === "ASSIGNMENT_ID_NOT_AVAILABLE";

  // Numbers from 0 to 1 that a word decides (FNV-1a, then mulberry32): an assignment has one order, however often it is opened.
  const drawing = word => {
    let state = 2166136261;
    for (const letter of word) state = Math.imul(state ^ letter.codePointAt(0), 16777619);
    return () => {
      state = state + 0x6D2B79F5 | 0;
      let mixed = Math.imul(state ^ state >>> 15, 1 | state);
      mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
      return ((mixed ^ mixed >>> 14) >>> 0) / 4294967296;
    };
  };
  const shuffled = (list, what) => {
    const made = [...list], draw = drawing(`${drawn.seed} ${assignment} ${what}`);
    for (let last = made.length - 1; last > 0; last--) {
      const place = Math.floor(draw() * (last + 1));
      [made[last], made[place]] = [made[place], made[last]];
    }
    return made;
  };
  // The items in the order of this assignment; those of one query one after another, each with its place among them.
  const arranged = () => {
    if (!drawn) return items;
    const named = items.map((item, at) => ({...item, group: drawn.groups[at]}));
    const groups = shuffled([...new Set(named.map(item => item.group || item.id))], "");
    return groups.flatMap(group => {
      const own = shuffled(named.filter(item => (item.group || item.id) === group), group);
      return own.map((item, at) => ({...item, order: item.group ? [at + 1] : []}));
    });
  };
  // An item with its candidates in an order of its own. What is answered names the candidate: only words keep their places.
  const reordered = item => {
    const list = drawn ? item.texts[drawn.field] : null;
    if (!Array.isArray(list)) return item;
    const order = shuffled(list.keys(), item.id);
    const texts = item.texts.map((text, at) => at === drawn.field ? order.map(entry => list[entry]) : text);
    const name = (names, one) => {
      const place = names.indexOf(one);
      return place < 0 || place >= order.length ? one : names[order[place]];
    };
    const questions = task.questions.map(question => ({...question, name: name(drawn.questions, question.name),
      ...question.points ? {points: question.points.map(([point, meaning]) => [name(drawn.options, point), meaning])} : {}}));
    return {...item, texts, questions, order: order.map(entry => entry + 1)};
  };
  const all = arranged().map(reordered);

  const key = address && !preview ? `${task.study} ${task.queue} ${assignment}` : "";
  const answers = new Map(), name = `plumbline-form ${key}`;
  // What another tab has answered, too, but for an item that is being answered here.
  const merge = but => {
    try {
      const stored = key ? JSON.parse(localStorage.getItem(name)) || [] : [];
      for (const [id, answer] of stored) if (id !== but) answers.set(id, answer);
    } catch { /* a browser that keeps nothing */ }
  };
  merge();
  const isDone = item => answers.has(item.id) && answers.get(item.id).status !== "draft";
  const open = all.filter(item => !isDone(item));

  // A ranking as records have it: `b > a = c`.
  const ordered = ranks => [...new Set(ranks.map(one => one.rank))].sort((a, b) => a - b)
    .map(rank => ranks.filter(one => one.rank === rank).map(one => one.value).sort().join(" = ")).join(" > ");
  const flat = value => !Array.isArray(value) ? String(value) : value.length && value[0].rank ? ordered(value) : value.join(", ");
  const fields = () => {
    const sent = [["assignmentId", assignment], ["study", task.study], ["batch", task.queue]];
    if (task.consent) sent.push(["consent", "yes"]);
    all.forEach(item => {
      const {values, status, seconds} = answers.get(item.id);
      for (const question of task.questions) sent.push([`${item.id}.${question.name}`, flat(values[question.name] ?? "")]);
      sent.push([`${item.id}.comment`, values[task.comment.name] || ""], [`${item.id}.seconds`, seconds.toFixed(1)]);
      if (status === "discarded") sent.push([`${item.id}.discarded`, "yes"]);
    });
    return sent;
  };
  const post = () => {
    const form = document.createElement("form");
    Object.assign(form, {method: "post", action: address, hidden: true});
    for (const [field, value] of fields()) {
      const input = document.createElement("input");
      Object.assign(input, {type: "hidden", name: field, value});
      form.append(input);
    }
    document.body.append(form);
    form.submit();
  };
  return {
    key,
    closed: preview ? task.words.preview : "",
    notice: address ? "" : task.words.trial,
    next: n => open.splice(0, n).map(item => ({...item, answer: answers.get(item.id)})),
    save: (id, values, status, seconds) => {
      merge(id);
      answers.set(id, {values, status, seconds});
      try { if (key) localStorage.setItem(name, JSON.stringify([...answers])); } catch { /* the page has it */ }
    },
    progress: () => { merge(); return {done: all.filter(isDone).length, total: all.length}; },
    previous: id => {
      const place = id === null ? all.length : all.findIndex(item => item.id === id), before = all.slice(0, place).filter(isDone).at(-1);
      return before ? {...before, answer: answers.get(before.id)} : null;
    },
    end: () => address ? {text: task.words.all_answered, label: task.words.submit, go: post} : {text: task.words.trial},
  };
};
const packed = Uint8Array.from(atob(document.getElementById("data").textContent), letter => letter.charCodeAt(0));
new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json()
  .then(data => {
    const sheet = new CSSStyleSheet();  // packed with the rest, for services limit a page's length
    sheet.replaceSync(data.style);
    document.adoptedStyleSheets = [sheet];
    start(data.task, hosted(data));
  });
