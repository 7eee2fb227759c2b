// Drives a server with the JavaScript SDK, as apps do, and says of each step whether it went well: one JSON line each.
//
//   node sdk.mjs FOLDER PACKAGE URL OWNER PASSWORD
//
// FOLDER has node_modules, PACKAGE is the SDK in it, URL the app's face, OWNER and PASSWORD of a superuser of the app.
// The collections are those of tests/it/pocketbase/clients.rs. Every step stands by itself, so that one that fails
// does not hide the others.

import assert from "node:assert/strict";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, name, url, owner, ownerPassword] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(path.join(folder, "node_modules", file)).href);
const { default: PocketBase, ClientResponseError } = await load(path.join(name, "dist/pocketbase.es.mjs"));
const { EventSource } = await load("eventsource/dist/index.js");
globalThis.EventSource = EventSource;

const password = "fair winds and following seas";
const made = `${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;
let count = 0;

function client() {
    const client = new PocketBase(url);
    client.autoCancellation(false);
    return client;
}

/** Somebody new, signed in. */
async function person(more = {}) {
    const pb = client();
    count += 1;
    const email = `${made}${count}@sea.example`;
    const body = { email, password, passwordConfirm: password, name: `Person ${count}`, ...more };
    const record = await pb.collection("users").create(body);
    await pb.collection("users").authWithPassword(email, password);
    return { pb, email, record };
}

async function refused(promise, status) {
    try {
        await promise;
    } catch (error) {
        assert.ok(error instanceof ClientResponseError, String(error));
        assert.equal(error.status, status, JSON.stringify(error.response));
        return error;
    }
    assert.fail(`expected ${status}, but it went through`);
}

async function until(what, look) {
    const deadline = Date.now() + 15_000;
    while (Date.now() < deadline) {
        const found = await look();
        if (found) {
            return found;
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.fail(`waited too long for ${what}`);
}

const steps = {
    async health() {
        const health = await client().health.check();
        assert.equal(health.code, 200);
    },

    async superuser() {
        const pb = client();
        await pb.collection("_superusers").authWithPassword(owner, ownerPassword);
        assert.ok(pb.authStore.isValid);
        assert.ok(pb.authStore.isSuperuser);
        const post = await pb.collection("posts").create({ title: `by root ${made}` });
        assert.equal((await pb.collection("posts").getOne(post.id)).title, `by root ${made}`);
        await pb.collection("_superusers").authRefresh();
        assert.ok(await pb.collection("posts").delete(post.id));
    },

    async auth() {
        const { pb, email, record } = await person();
        assert.ok(pb.authStore.isValid);
        assert.equal(pb.authStore.isSuperuser, false);
        assert.equal(pb.authStore.record.id, record.id);
        assert.equal(pb.authStore.record.email, email);
        assert.equal(pb.authStore.record.collectionName, "users");
        const again = await pb.collection("users").authRefresh();
        assert.equal(again.record.id, record.id);
        assert.ok(again.token.split(".").length === 3);
        const wrong = await refused(client().collection("users").authWithPassword(email, "wrong password"), 400);
        assert.deepEqual(wrong.response.data, {});
        const blank = await refused(client().collection("users").authWithPassword("", ""), 400);
        assert.equal(blank.response.data.identity.code, "validation_required");
        const methods = await client().collection("users").listAuthMethods();
        assert.equal(methods.password.enabled, true);
        assert.deepEqual(methods.password.identityFields, ["email"]);
        const renamed = await pb.collection("users").update(record.id, { name: "Renamed" });
        assert.equal(renamed.name, "Renamed");
        // With a new password every session ends, also this one.
        const next = "another very long password";
        await pb.collection("users").update(record.id, { password: next, passwordConfirm: next, oldPassword: password });
        await refused(pb.collection("users").authRefresh(), 401);
        await pb.collection("users").authWithPassword(email, next);
        assert.ok(await pb.collection("users").delete(record.id));
    },

    /** An SDK keeps its token until it is told otherwise, also when that has ended long ago. */
    async stale() {
        const { pb, email } = await person();
        const [head, body] = pb.authStore.token.split(".");
        pb.authStore.save(`${head}.${body}.${"A".repeat(43)}`, pb.authStore.record);
        assert.equal((await pb.collection("posts").getList(1, 1)).items.length, 0);
        await refused(pb.collection("users").authRefresh(), 401);
        await pb.collection("users").authWithPassword(email, password);
        await pb.collection("users").authRefresh();
    },

    async crud() {
        const { pb, record } = await person();
        const post = await pb.collection("posts").create({
            title: "Hello", rank: 3, author: record.id, tags: ["a", "b"], done: true, due: "2026-12-24 10:00:00.000Z", extra: { a: [1] },
        });
        assert.equal(post.collectionName, "posts");
        assert.equal(post.due, "2026-12-24 10:00:00.000Z");
        const seen = await pb.collection("posts").getOne(post.id);
        assert.deepEqual(seen, post);
        const changed = await pb.collection("posts").update(post.id, { "rank+": 2, "tags-": "a", title: "Changed" });
        assert.equal(changed.rank, 5);
        assert.deepEqual(changed.tags, ["b"]);
        assert.ok(await pb.collection("posts").delete(post.id));
        await refused(pb.collection("posts").getOne(post.id), 404);
        await refused(pb.collection("posts").update(post.id, { title: "x" }), 404);
        const wrong = await refused(pb.collection("posts").create({ title: "" }), 400);
        assert.equal(wrong.response.data.title.code, "validation_required");
        await refused(client().collection("posts").create({ title: "x" }), 400);
    },

    async lists() {
        const { pb, record } = await person();
        for (let rank = 0; rank < 7; rank += 1) {
            await pb.collection("posts").create({ title: `it's "${rank}"`, rank, author: record.id });
        }
        const filter = pb.filter("author = {:author}", { author: record.id });
        const all = await pb.collection("posts").getFullList({ filter, sort: "-rank", batch: 3 });
        assert.deepEqual(all.map((post) => post.rank), [6, 5, 4, 3, 2, 1, 0]);
        const page = await pb.collection("posts").getList(2, 3, { filter, sort: "rank" });
        assert.deepEqual([page.page, page.perPage, page.totalItems, page.totalPages], [2, 3, 7, 3]);
        assert.deepEqual(page.items.map((post) => post.rank), [3, 4, 5]);
        const titled = pb.filter("author = {:author} && title = {:title}", { author: record.id, title: "it's \"4\"" });
        const first = await pb.collection("posts").getFirstListItem(titled, { fields: "rank" });
        assert.deepEqual(first, { rank: 4 });
        await refused(pb.collection("posts").getFirstListItem(`${filter} && rank > 100`), 404);
        await refused(pb.collection("posts").getList(1, 1, { filter: "nothing = 1" }), 400);
        const nobodys = await client().collection("posts").getList(1, 1, { filter });
        assert.equal(nobodys.totalItems, 0);
    },

    async expand() {
        const { pb, record } = await person();
        const post = await pb.collection("posts").create({ title: "With author", author: record.id });
        await pb.collection("comments").create({ post: post.id, text: "first" });
        await pb.collection("comments").create({ post: post.id, text: "second" });
        const seen = await pb.collection("posts").getOne(post.id, { expand: "author,comments_via_post" });
        assert.equal(seen.expand.author.name, record.name);
        assert.deepEqual(seen.expand.comments_via_post.map((comment) => comment.text), ["first", "second"]);
        const comments = await pb.collection("comments").getFullList({
            filter: pb.filter("post.author.name = {:name} && post.id = {:post}", { name: record.name, post: post.id }),
            expand: "post.author",
            sort: "text",
        });
        assert.equal(comments.length, 2);
        assert.equal(comments[0].expand.post.expand.author.id, record.id);
    },

    async batch() {
        const { pb, record } = await person();
        const kept = await pb.collection("posts").create({ title: "kept", author: record.id });
        const batch = pb.createBatch();
        batch.collection("posts").create({ title: "one", author: record.id });
        batch.collection("posts").update(kept.id, { title: "two" });
        batch.collection("posts").upsert({ id: `u${made}`.padEnd(15, "0").slice(0, 15), title: "three", author: record.id });
        const answers = await batch.send();
        assert.deepEqual(answers.map((answer) => [answer.status, answer.body.title]), [[200, "one"], [200, "two"], [200, "three"]]);
        const failing = pb.createBatch();
        failing.collection("posts").update(kept.id, { title: "lost" });
        failing.collection("posts").create({ title: "" });
        const error = await refused(failing.send(), 400);
        assert.equal(error.response.data.requests[1].response.data.title.code, "validation_required");
        assert.equal((await pb.collection("posts").getOne(kept.id)).title, "two");
        const mixed = pb.createBatch();
        mixed.collection("posts").create({ title: "with a paper", author: record.id, papers: [new File(["batch"], "batch.txt")] });
        mixed.collection("posts").delete(kept.id);
        const [created, removed] = await mixed.send();
        assert.equal(created.body.papers.length, 1);
        assert.equal(await (await fetch(pb.files.getURL(created.body, created.body.papers[0]))).text(), "batch");
        assert.equal(removed.status, 204);
        await refused(pb.collection("posts").getOne(kept.id), 404);
    },

    async realtime() {
        const { pb, record } = await person();
        const { pb: other } = await person();
        const events = [];
        const single = [];
        const topic = (event) => events.push([event.action, event.record.title]);
        const post = await pb.collection("posts").create({ title: "before", author: record.id });
        await pb.collection("posts").subscribe("*", topic, { filter: pb.filter("author = {:id}", { id: record.id }) });
        await pb.collection("posts").subscribe(post.id, (event) => single.push(event.action));
        await pb.collection("posts").update(post.id, { title: "changed" });
        const second = await pb.collection("posts").create({ title: "second", author: record.id });
        await other.collection("posts").create({ title: "another's" });
        await pb.collection("posts").delete(second.id);
        await until("four events", () => events.length >= 3 && single.length >= 1);
        events.sort();
        assert.deepEqual(events, [["create", "second"], ["delete", "second"], ["update", "changed"]]);
        assert.deepEqual(single, ["update"]);
        await pb.collection("posts").unsubscribe();
        await pb.collection("posts").update(post.id, { title: "unheard" });
        const { pb: last } = await person();
        await last.collection("posts").subscribe("*", () => {});
        await last.collection("posts").unsubscribe("*");
        assert.equal(events.length, 3);
    },

    /** What is asked for with a topic comes with its events, and a stream that breaks off is taken up again. */
    async reconnect() {
        const { pb, record } = await person();
        const post = await pb.collection("posts").create({ title: "before", author: record.id });
        const names = [];
        const topic = (event) => names.push([event.record.title, event.record.expand.author.name, event.record.rank]);
        await pb.collection("posts").subscribe(post.id, topic, { expand: "author", fields: "title,expand.author.name" });
        const told = async (title) => {
            await pb.collection("posts").update(post.id, { title });
            return names.some((name) => name[0] === title);
        };
        await until("the first", () => told("first"));
        assert.deepEqual(names[0], ["first", record.name, undefined]);
        const before = pb.realtime.clientId;
        pb.realtime.eventSource.onerror(new Error("cut off"));
        await until("another stream", () => pb.realtime.clientId && pb.realtime.clientId !== before);
        await until("the second", () => told("second"));
        await pb.collection("posts").unsubscribe();
    },

    async files() {
        const { pb, record } = await person();
        const body = new FormData();
        body.append("title", "2026");
        body.append("author", record.id);
        body.append("tags", "a");
        body.append("tags", "b");
        body.append("papers", new Blob(["first"], { type: "text/plain" }), "First Paper.txt");
        body.append("papers", new Blob(["second"], { type: "text/plain" }), "second.txt");
        const post = await pb.collection("posts").create(body);
        assert.equal(post.title, "2026");
        assert.deepEqual(post.tags, ["a", "b"]);
        assert.equal(post.papers.length, 2);
        assert.match(post.papers[0], /^first_paper_[a-z0-9]{10}\.txt$/);
        const paper = await fetch(pb.files.getURL(post, post.papers[0]));
        assert.equal(paper.status, 200);
        assert.equal(await paper.text(), "first");
        const fewer = await pb.collection("posts").update(post.id, { "papers-": post.papers[0] });
        assert.deepEqual(fewer.papers, [post.papers[1]]);
        const more = await pb.collection("posts").update(post.id, { "papers+": new File(["third"], "third.txt") });
        assert.equal(more.papers.length, 2);
        const hidden = await pb.collection("posts").update(post.id, { secret: new File(["hush"], "hush.txt") });
        const place = pb.files.getURL(hidden, hidden.secret);
        assert.equal((await fetch(place)).status, 404);
        const token = await pb.files.getToken();
        const opened = await fetch(pb.files.getURL(hidden, hidden.secret, { token }));
        assert.equal(opened.status, 200);
        assert.equal(await opened.text(), "hush");
        const wrong = await refused(pb.collection("posts").update(post.id, { papers: [new File(["x".repeat(3000)], "big.txt")] }), 400);
        assert.equal(wrong.response.data.papers.code, "validation_file_size_limit");
        await pb.collection("posts").delete(post.id);
        await until("the file to go", async () => (await fetch(pb.files.getURL(more, more.papers[0]))).status === 404);
    },
};

for (const [step, run] of Object.entries(steps)) {
    let error = null;
    try {
        await run();
    } catch (caught) {
        const response = caught instanceof ClientResponseError ? ` ${caught.url} ${JSON.stringify(caught.response)}` : "";
        error = `${caught.stack}${response}`;
    }
    console.log(JSON.stringify({ step, ok: error === null, error }));
}
process.exit(0);
