// Asks for a summary of a board and follows the request until it has ended.

import { Trouble, read, write } from "./api.js";

const CAPABILITY = "summarise-board";
const ENDED = ["completed", "failed", "canceled"];
const SHORTEST = 500;
const LONGEST = 15000;

// The newest request for this board, whoever asked for it and wherever; the server has them newest first.
export async function requestOf(board) {
  const tasks = (await read("/api/_a2app/tasks"))?.tasks ?? [];
  const mine = (task) => task?.request?.capability === CAPABILITY && task.request.payload?.board === board;
  return tasks.find(mine)?.id ?? "";
}

// Some dialects wrap the task, some answer it bare.
const bare = (answer) => answer?.task ?? answer ?? {};

export async function ask(board) {
  const task = bare(await write("POST", "/api/_a2app/tasks", { capability: CAPABILITY, payload: { board } }));
  if (typeof task.id !== "string" || !task.id) throw new Trouble("The server took the request but did not name it.");
  return task;
}

const pause = (ms, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

// Calls `show(task, trouble)` after each look, until the task has ended or `signal` says stop.
export async function follow(board, id, show, signal) {
  let failures = 0;
  while (!signal.aborted) {
    let wait = 2000;
    try {
      const task = bare(await read(`/api/_a2app/tasks/${encodeURIComponent(id)}`));
      if (signal.aborted) return;
      failures = 0;
      show(task, null);
      if (ENDED.includes(task.status)) return;
      wait = Number.isFinite(task.pollAfterMs) ? task.pollAfterMs : wait;
    } catch (trouble) {
      if (signal.aborted) return;
      show(null, trouble);
      if (trouble.status === 404) return;
      failures += 1;
      wait = 1000 * 2 ** failures;
    }
    await pause(Math.min(Math.max(wait, SHORTEST), LONGEST), signal);
  }
}

// What a person reads about a task, and how far it is (null: not known).
export function told(task) {
  const step = typeof task.progress?.step === "string" ? task.progress.step : "";
  const percent = Number.isFinite(task.progress?.percent) ? Math.min(Math.max(task.progress.percent, 0), 100) : null;
  switch (task.status) {
    case "submitted":
      return { text: "Waiting for an agent to take this up …", percent: null, busy: true };
    case "working":
      return { text: step ? `An agent is at work: ${step}` : "An agent is at work …", percent, busy: true };
    case "input-required":
      return { text: "The agent has a question. Answer it in the Innkeeper console.", percent, busy: true };
    case "completed":
      return { text: "Summary by an agent:", percent: 100, busy: false };
    case "canceled":
      return { text: "The request was called off.", percent: null, busy: false };
    case "failed":
      return { text: `No summary: ${task.reason || "the agent gave no reason"}.`, percent: null, busy: false };
    default:
      return { text: `The request is in a state this page does not know (${String(task.status)}).`, percent: null, busy: true };
  }
}
