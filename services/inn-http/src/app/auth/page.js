"use strict";
// What a link in a mail asks for. Nothing is sent before somebody presses the button.
const KINDS = {
  "confirm-verification": { title: "Is this address yours?", button: "Yes, it is mine", fields: [], done: "The address is confirmed." },
  "confirm-password-reset": { title: "Choose a new password", button: "Set the password", fields: ["password", "confirm"], done: "The new password is set. Sign in with it; you were signed out everywhere." },
  "confirm-email-change": { title: "Use this address from now on?", button: "Yes, use it", fields: ["password"], done: "The address was changed. Sign in again." },
};
const element = (id) => document.getElementById(id);
const say = (text) => { element("text").textContent = text; };

function collectionOf(token) {
  try {
    const part = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    return JSON.parse(atob(part)).collectionId;
  } catch (error) {
    return null;
  }
}

function start() {
  const [, kind, token] = /^#\/auth\/([a-z-]+)\/(.+)$/.exec(location.hash) || [];
  const what = KINDS[kind];
  const collection = token && collectionOf(token);
  if (!what || !collection) {
    say("This link is not complete. Copy it from the mail once more.");
    return;
  }
  element("title").textContent = what.title;
  say("");
  element("button").textContent = what.button;
  for (const name of what.fields) element(name + "-line").hidden = false;
  if (kind === "confirm-password-reset") element("password").autocomplete = "new-password";
  element("form").hidden = false;
  element("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    element("button").disabled = true;
    const body = { token };
    if (what.fields.includes("password")) body.password = element("password").value;
    if (what.fields.includes("confirm")) body.passwordConfirm = element("confirm").value;
    try {
      const answer = await fetch("/api/collections/" + encodeURIComponent(collection) + "/" + kind, {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
      });
      if (answer.ok) {
        element("form").hidden = true;
        say(what.done);
        history.replaceState(null, "", location.pathname);
        return;
      }
      const refusal = await answer.json();
      const wrong = Object.values(refusal.data || {}).map((field) => field.message);
      say(wrong.join(" ") || refusal.message);
    } catch (error) {
      say("The app does not answer. Try again.");
    }
    element("button").disabled = false;
  });
}

start();
