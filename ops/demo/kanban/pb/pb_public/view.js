// Makes elements. Text from records goes in as text, never as markup.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const COLOURS = ["red", "orange", "yellow", "green", "blue", "purple", "grey"];
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });

function due(text) {
  const day = String(text).slice(0, 10);
  const when = new Date(`${day}T00:00:00Z`);
  if (Number.isNaN(when.getTime())) return null;
  const late = day < new Date().toISOString().slice(0, 10);
  return el("time", { class: late ? "due late" : "due", datetime: day }, `${late ? "Was due" : "Due"} ${DAY.format(when)}`);
}

function marks(card, labels) {
  const priority = ["high", "urgent"].includes(card.priority) ? card.priority : "";
  const ids = Array.isArray(card.labels) ? card.labels : [];
  const chips = ids
    .map((id) => labels.get(id))
    .filter(Boolean)
    .map((label) => el("span", { class: `chip ${COLOURS.includes(label.color) ? label.color : "grey"}` }, label.name));
  const when = card.due_date ? due(card.due_date) : null;
  if (!priority && !chips.length && !when) return null;
  return el("p", { class: "marks" }, priority ? el("span", { class: `priority ${priority}` }, priority) : null, ...chips, when);
}

export function cardItem(card, { lists, labels, onMove, onArchive }) {
  const move = el(
    "select",
    { "data-key": `move-${card.id}`, "aria-label": `Move "${card.title}" to`, onchange: (event) => onMove(card, event.target.value) },
    ...lists.map((list) => el("option", { value: list.id, selected: list.id === card.list }, list.title)),
  );
  const archive = el(
    "button",
    { type: "button", "data-key": `archive-${card.id}`, "aria-label": `Archive "${card.title}"`, onclick: () => onArchive(card) },
    "Archive",
  );
  return el(
    "li",
    { class: "card" },
    el("h3", {}, card.title),
    marks(card, labels),
    card.description ? el("p", { class: "description" }, card.description) : null,
    el("div", { class: "row actions" }, move, archive),
  );
}

function addForm(list, { onAdd }) {
  const key = (name) => `${name}-${list.id}`;
  const title = el("input", { id: key("title"), "data-key": key("title"), name: "title", type: "text", maxlength: 200, required: true, autocomplete: "off" });
  const priority = el(
    "select",
    { id: key("priority"), "data-key": key("priority"), name: "priority" },
    ...["low", "normal", "high", "urgent"].map((value) => el("option", { value, selected: value === "normal" }, value)),
  );
  const day = el("input", { id: key("due"), "data-key": key("due"), name: "due", type: "date" });
  const form = el(
    "form",
    { class: "add", "aria-label": `Add a card to ${list.title}` },
    el("label", { for: key("title") }, "New card"),
    title,
    el(
      "details",
      { "data-key": key("more") },
      el("summary", {}, "Priority and day"),
      el("div", { class: "more" }, el("label", { for: key("priority") }, "Priority"), priority, el("label", { for: key("due") }, "Due"), day),
    ),
    el("button", { type: "submit" }, "Add card"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onAdd(list, { title: title.value.trim(), priority: priority.value, due: day.value }, () => form.reset());
  });
  return form;
}

export function listColumn(list, cards, actions) {
  const count = cards.length === 1 ? "1 card" : `${cards.length} cards`;
  return el(
    "section",
    { class: "list", "aria-labelledby": `head-${list.id}` },
    el("h2", { id: `head-${list.id}`, "data-key": `head-${list.id}`, tabindex: -1 }, list.title, " ", el("span", { class: "count" }, count)),
    cards.length ? el("ul", { class: "cards" }, ...cards.map((card) => cardItem(card, actions))) : el("p", { class: "quiet" }, "Nothing here."),
    addForm(list, actions),
  );
}

export function archivedItem(card, { onRestore, onDelete }) {
  const button = (text, key, onclick, style) =>
    el("button", { type: "button", class: style, "data-key": `${key}-${card.id}`, "aria-label": `${text} "${card.title}"`, onclick }, text);
  return el(
    "li",
    {},
    el("span", { class: "title" }, card.title),
    button("Put back", "restore", () => onRestore(card), null),
    button("Delete for good", "delete", () => onDelete(card), "danger"),
  );
}

// Replaces what `root` shows but keeps what somebody is typing, which details are open, and where the focus is.
export function redraw(root, nodes, focus = "") {
  const typed = new Map();
  for (const field of root.querySelectorAll("form [data-key]")) {
    typed.set(field.dataset.key, field instanceof HTMLDetailsElement ? field.open : field.value);
  }
  const active = root.contains(document.activeElement) ? document.activeElement.dataset.key : "";
  root.replaceChildren(...nodes);
  for (const field of root.querySelectorAll("form [data-key]")) {
    const value = typed.get(field.dataset.key);
    if (value === undefined) continue;
    if (field instanceof HTMLDetailsElement) field.open = value;
    else field.value = value;
  }
  const wanted = focus || active;
  if (wanted) root.querySelector(`[data-key="${CSS.escape(wanted)}"]`)?.focus();
}
