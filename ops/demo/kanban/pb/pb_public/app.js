// The board: loads it, draws it, and carries out what the person does.
//
// There is no timer behind the board itself: every read of a signed-in person is a line in the register, so the page
// reads again after a change, when it is looked at again, and on "Refresh". Only a running request is polled.

import { Trouble, create, list, run, update } from "./api.js";
import { ask, follow, requestOf, told } from "./summary.js";
import { archivedItem, el, listColumn, redraw } from "./view.js";

const at = (id) => document.getElementById(id);
const START_LISTS = ["To do", "Doing", "Done"];
// Filters are texts with a limit: so many lists are named in one.
const LISTS_PER_FILTER = 20;

const state = { boards: [], board: "", lists: [], labels: new Map(), cards: [], archived: [], focus: "" };
const pending = new Set();
let queue = Promise.resolve();
let watch = new AbortController();

// ---- saying things

function say(text) {
  at("status").textContent = text;
}

function complain(trouble) {
  const problem = at("problem");
  problem.textContent = trouble instanceof Trouble ? trouble.message : "This page has made a mistake. Reload it and try again.";
  problem.hidden = false;
  say("");
  if (!(trouble instanceof Trouble)) console.error(trouble);
}

function calm() {
  at("problem").hidden = true;
  at("problem").textContent = "";
}

// ---- loading

async function cardsOf(lists, archived) {
  const parts = [];
  for (let start = 0; start < lists.length; start += LISTS_PER_FILTER) {
    const some = lists.slice(start, start + LISTS_PER_FILTER).map((one) => `list = "${one.id}"`);
    parts.push(list("cards", { filter: `(${some.join(" || ")}) && archived = ${archived}`, sort: "position,created" }));
  }
  return (await Promise.all(parts)).flat();
}

async function loadBoards(wanted = "") {
  state.boards = await list("boards", { sort: "name" });
  const known = [wanted, state.board, location.hash.slice(1)].find((id) => state.boards.some((one) => one.id === id));
  choose(known ?? state.boards[0]?.id ?? "");
}

async function loadBoard(focus = "") {
  const { board } = state;
  state.focus = focus;
  if (!board) return;
  const filter = `board = "${board}"`;
  const [lists, labels] = await Promise.all([list("lists", { filter, sort: "position,created" }), list("labels", { filter })]);
  const open = at("archive").open;
  const [cards, archived] = await Promise.all([cardsOf(lists, false), open ? cardsOf(lists, true) : []]);
  // The person went to another board meanwhile: what was read is of no use.
  if (board !== state.board) return loadBoard();
  Object.assign(state, { lists, cards, archived, labels: new Map(labels.map((one) => [one.id, one])) });
}

function choose(board) {
  if (board !== state.board) {
    Object.assign(state, { board, lists: [], cards: [], archived: [], labels: new Map() });
    at("archive").open = false;
    resume();
  }
  history.replaceState(null, "", board ? `#${board}` : location.pathname);
}

// ---- drawing

function draw() {
  const { focus } = state;
  state.focus = "";
  const select = at("board");
  const options = state.boards.map((one) => el("option", { value: one.id, selected: one.id === state.board }, one.name));
  select.replaceChildren(...(options.length ? options : [el("option", { value: "" }, "No board yet")]));
  select.disabled = !options.length;
  const some = Boolean(state.board);
  at("summary").hidden = !some;
  at("new-list").hidden = !some;
  at("archive").hidden = !some;
  const actions = { lists: state.lists, labels: state.labels, onMove: move, onArchive: archive, onAdd: add };
  const columns = state.lists.map((one) => listColumn(one, state.cards.filter((card) => card.list === one.id), actions));
  const empty = some ? "This board has no lists yet. Add the first one below." : "There is no board yet. Name one above and add it.";
  redraw(at("lists"), columns.length ? columns : [el("p", { class: "quiet" }, empty)], focus);
  const items = state.archived.map((card) => archivedItem(card, { onRestore: restore, onDelete: remove }));
  redraw(at("archived"), items.length ? items : [el("li", { class: "quiet" }, "Nothing is archived.")]);
}

// ---- doing: one thing after another; a second click for the same thing, while the first is under way, does nothing

function doing(what, work) {
  if (pending.has(what)) return;
  pending.add(what);
  document.body.setAttribute("aria-busy", "true");
  queue = queue.then(async () => {
    try {
      calm();
      await work();
    } catch (trouble) {
      complain(trouble);
    }
    pending.delete(what);
    if (!pending.size) document.body.removeAttribute("aria-busy");
    draw();
  });
}

const reload = () => doing("load", () => loadBoard());

async function everything() {
  await loadBoards();
  await loadBoard();
}

const after = (cards) => cards.reduce((most, card) => Math.max(most, Number(card.position) || 0), 0) + 1;
const inList = (id) => state.cards.filter((card) => card.list === id);

function add(target, { title, priority, due }, done) {
  if (!title) return;
  doing(`add ${target.id}`, async () => {
    const body = { title, list: target.id, priority, position: after(inList(target.id)) };
    if (due) body.due_date = `${due} 00:00:00.000Z`;
    await create("cards", body);
    done();
    say(`Added "${title}" to ${target.title}.`);
    await loadBoard(`title-${target.id}`);
  });
}

function move(card, to) {
  doing(`move ${card.id} ${to}`, async () => {
    await update("cards", card.id, { list: to, position: after(inList(to)) });
    say(`Moved "${card.title}" to ${state.lists.find((one) => one.id === to)?.title ?? "another list"}.`);
    await loadBoard(`move-${card.id}`);
  });
}

function archive(card) {
  doing(`archive ${card.id}`, async () => {
    await run("cards.archive", { id: card.id, archived: true });
    say(`Archived "${card.title}".`);
    await loadBoard(`head-${card.list}`);
  });
}

function restore(card) {
  doing(`restore ${card.id}`, async () => {
    await update("cards", card.id, { archived: false });
    say(`Put "${card.title}" back.`);
    await loadBoard(`move-${card.id}`);
  });
}

function remove(card) {
  const sure = at("sure");
  at("sure-what").textContent = `"${card.title}" cannot be brought back.`;
  sure.returnValue = "no";
  sure.addEventListener(
    "close",
    () => {
      if (sure.returnValue !== "yes") return;
      doing(`delete ${card.id}`, async () => {
        await run("cards.delete-archived", { id: card.id });
        say(`Deleted "${card.title}".`);
        await loadBoard();
        at("archive").querySelector("summary").focus();
      });
    },
    { once: true },
  );
  sure.showModal();
}

// ---- the summary

function showTask(task, trouble) {
  const line = at("summary-state");
  const bar = at("summary-progress");
  const button = at("summarise");
  if (trouble) {
    const gone = trouble.status === 404;
    line.textContent = gone ? "The request is no longer known. Ask again." : `${trouble.message} Looking again shortly.`;
    button.disabled = !gone;
    if (gone) bar.hidden = true;
    return;
  }
  const { text, percent, busy } = told(task);
  // Setting the same text again would make a screen reader say it again.
  if (line.textContent !== text) line.textContent = text;
  button.disabled = busy;
  bar.hidden = !busy;
  if (percent === null) bar.removeAttribute("value");
  else bar.value = percent;
  const summary = task.status === "completed" && typeof task.result?.summary === "string" ? task.result.summary : "";
  const words = at("summary-text");
  if (words.textContent !== summary) words.textContent = summary;
  words.hidden = !summary;
}

async function resume() {
  watch.abort();
  watch = new AbortController();
  at("summary-state").textContent = "No summary yet. An agent that is linked to this app writes one when you ask.";
  at("summary-text").textContent = "";
  at("summary-text").hidden = true;
  at("summary-progress").hidden = true;
  at("summarise").disabled = false;
  const { board } = state;
  const { signal } = watch;
  if (!board) return;
  try {
    const id = await requestOf(board);
    // Another board may have been chosen, or a summary asked for, meanwhile.
    if (id && !signal.aborted) follow(board, id, showTask, signal);
  } catch (trouble) {
    if (!signal.aborted) showTask(null, trouble);
  }
}

async function summarise() {
  const board = state.board;
  calm();
  at("summarise").disabled = true;
  try {
    const task = await ask(board);
    if (board !== state.board) return;
    watch.abort();
    watch = new AbortController();
    showTask(task, null);
    follow(board, task.id, showTask, watch.signal);
  } catch (trouble) {
    if (board === state.board) at("summarise").disabled = false;
    complain(trouble);
  }
}

// ---- wiring

function onSubmit(id, field, work) {
  at(id).addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at(field).value.trim();
    if (!text) return;
    doing(id, async () => {
      await work(text);
      at(id).reset();
    });
  });
}

onSubmit("new-board", "board-name", async (name) => {
  const board = await create("boards", { name });
  // Named before the lists are made, so that the board shows even if one of them fails.
  await loadBoards(board.id);
  for (const [place, title] of START_LISTS.entries()) {
    await create("lists", { title, board: board.id, position: place + 1 });
  }
  say(`Added the board "${name}".`);
  await loadBoard();
});

onSubmit("new-list", "list-title", async (title) => {
  await create("lists", { title, board: state.board, position: after(state.lists) });
  say(`Added the list "${title}".`);
  await loadBoard();
});

at("board").addEventListener("change", (event) => {
  choose(event.target.value);
  reload();
});
at("refresh").addEventListener("click", () => {
  doing("everything", async () => {
    await everything();
    say("Refreshed.");
  });
});
at("archive").addEventListener("toggle", () => at("archive").open && reload());
at("summarise").addEventListener("click", summarise);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && reload());
window.addEventListener("hashchange", () => {
  const wanted = location.hash.slice(1);
  if (!state.boards.some((one) => one.id === wanted)) return;
  choose(wanted);
  reload();
});

doing("everything", everything);
