// Talks to the app's own API. Everything a person may have to read comes out as a Trouble with words in it.

export class Trouble extends Error {
  constructor(message, { status = 0, code = "", id = "", again = false } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.id = id;
    // True when the same request may be sent once more with the same key.
    this.again = again;
  }
}

const OURS = new Map([
  [401, "You are not signed in here. Open this app from the Innkeeper console and try again."],
  [404, "That is no longer there. Somebody else may have removed it: refresh the board."],
  [413, "That is too long to be stored."],
  [429, "Too many requests at once."],
  [503, "The server has its hands full."],
]);

// "due_date: expected …" for each field that was turned down, in either of the two shapes a refusal can have.
function fieldsOf(body) {
  if (Array.isArray(body.violations) && body.violations.length) {
    return body.violations.map((one) => `${one.field}: expected ${one.expected}`);
  }
  return Object.entries(body.data ?? {}).map(([field, why]) => `${field}: ${why?.message ?? "not accepted"}`);
}

function words(status, body, retryAfter) {
  const fields = status === 400 || status === 422 ? fieldsOf(body) : [];
  const said = typeof body.message === "string" ? body.message : "";
  let text = body.outcome === "unknown" ? said : (OURS.get(status) ?? said);
  if (fields.length) text = `Not accepted. ${fields.join("; ")}`;
  if (!text) text = `The server answered with error ${status}.`;
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  if ((status === 429 || status === 503) && seconds > 0) text += ` Try again in ${seconds} s.`;
  return text;
}

async function once(method, path, body, key) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch {
    throw new Trouble("The server cannot be reached. Nothing is lost: try again when it is back.", { again: true });
  }
  if (answer.status === 204) return null;
  let data;
  try {
    data = await answer.json();
  } catch {
    data = null;
  }
  if (answer.ok && data !== null) return data;
  if (answer.ok) throw new Trouble("The server sent an answer that cannot be read.", { status: answer.status });
  const told = data && typeof data === "object" ? data : {};
  throw new Trouble(words(answer.status, told, answer.headers.get("Retry-After")), {
    status: answer.status,
    code: typeof told.code === "string" ? told.code : "",
    id: typeof told.id === "string" ? told.id : "",
    again: told.retry === "same_key" || told.outcome === "unknown",
  });
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const read = (path) => once("GET", path);

const TRIES = 3;
const BETWEEN_TRIES = 800;

// A write carries a key of its own, so that a lost answer can be asked for again without doing the thing twice.
export async function write(method, path, body) {
  const key = newKey();
  for (let turn = 1; ; turn += 1) {
    try {
      return await once(method, path, body, key);
    } catch (trouble) {
      if (!(trouble instanceof Trouble)) throw trouble;
      // An earlier attempt had landed after all: that is success.
      if (turn > 1 && trouble.code === "duplicate_request") return { id: trouble.id };
      if (!trouble.again || turn === TRIES) throw trouble;
    }
    await new Promise((done) => setTimeout(done, BETWEEN_TRIES * turn));
  }
}

const records = (entity) => `/api/collections/${entity}/records`;

export const create = (entity, body) => write("POST", records(entity), body);
export const update = (entity, id, body) => write("PATCH", `${records(entity)}/${id}`, body);
export const run = (operation, params) => write("POST", `/api/ops/${operation}`, params);

const PAGE = 200;
const MOST = 5000;

// All records of an entity that match, page after page, up to MOST.
export async function list(entity, { filter = "", sort = "" } = {}) {
  const found = [];
  for (let page = 1; found.length < MOST; page += 1) {
    const query = new URLSearchParams({ page: String(page), perPage: String(PAGE) });
    if (filter) query.set("filter", filter);
    if (sort) query.set("sort", sort);
    const answer = await read(`${records(entity)}?${query}`);
    const items = Array.isArray(answer.items) ? answer.items : [];
    found.push(...items);
    if (items.length < PAGE) return found;
  }
  return found;
}
