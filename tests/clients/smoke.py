"""Drives a server with the Python client, as scripts do, and says of each step whether it went well: one JSON line each.

    python smoke.py URL OWNER PASSWORD

The collections are those of tests/it/pocketbase/clients.rs.
"""

import json
import sys
import time
import traceback

from pocketbase import PocketBase
from pocketbase.client import FileUpload
from pocketbase.errors import ClientResponseError

URL, OWNER, OWNER_PASSWORD = sys.argv[1:4]
PASSWORD = "fair winds and following seas"
EMAIL = f"python{time.time_ns()}@sea.example"


def person():
    client = PocketBase(URL)
    users = client.collection("users")
    try:
        users.create({"email": EMAIL, "password": PASSWORD, "passwordConfirm": PASSWORD, "name": "Python"})
    except ClientResponseError as error:
        # A step before this one has made it.
        assert error.status == 400, error.data
    signed_in = users.auth_with_password(EMAIL, PASSWORD)
    assert signed_in.is_valid
    return client, signed_in.record


def health():
    assert PocketBase(URL).health.check().code == 200


def superuser():
    client = PocketBase(URL)
    signed_in = client.collection("_superusers").auth_with_password(OWNER, OWNER_PASSWORD)
    assert signed_in.is_valid
    post = client.collection("posts").create({"title": "by root"})
    assert client.collection("posts").delete(post.id)


def crud():
    client, me = person()
    posts = client.collection("posts")
    post = posts.create({"title": "Hello", "rank": 1, "author": me.id, "tags": ["a"]})
    assert posts.get_one(post.id).title == "Hello"
    assert posts.update(post.id, {"rank+": 4}).rank == 5
    assert posts.delete(post.id)
    try:
        posts.get_one(post.id)
    except ClientResponseError as error:
        assert error.status == 404, error.data
    else:
        raise AssertionError("a deleted record is still there")


def lists():
    client, me = person()
    posts = client.collection("posts")
    for rank in range(5):
        posts.create({"title": f"post {rank}", "rank": rank, "author": me.id})
    options = {"filter": f"author = '{me.id}' && title ~ 'post'", "sort": "-rank", "expand": "author"}
    found = posts.get_full_list(batch=2, query_params=options)
    assert [post.rank for post in found] == [4, 3, 2, 1, 0], found
    assert found[0].expand["author"].name == "Python"
    page = posts.get_list(2, 2, options)
    assert (page.total_items, page.total_pages, len(page.items)) == (5, 3, 2)
    assert posts.get_first_list_item("rank = 3").rank == 3


def auth():
    client, me = person()
    users = client.collection("users")
    again = users.auth_refresh()
    assert again.is_valid and again.record.id == me.id
    assert users.list_auth_methods().username_password is not None
    try:
        PocketBase(URL).collection("users").auth_with_password(EMAIL, "wrong password")
    except ClientResponseError as error:
        assert error.status == 400, error.data
    else:
        raise AssertionError("a wrong password signs in")
    assert users.update(me.id, {"name": "Python"}).name == "Python"


def files():
    client, me = person()
    posts = client.collection("posts")
    upload = FileUpload(("paper.txt", b"written in python", "text/plain"))
    post = posts.create({"title": "with a paper", "author": me.id, "papers": upload})
    assert len(post.papers) == 1, post.papers
    paper = client.http_client.get(client.files.get_url(post, post.papers[0]))
    assert (paper.status_code, paper.content) == (200, b"written in python")


# No stream: this client opens one before it listens for the greeting, and on a busy machine misses it.
for step in (health, superuser, auth, crud, lists, files):
    error = None
    try:
        step()
    except ClientResponseError as caught:
        error = f"{traceback.format_exc()} {caught.url} {caught.data}"
    except Exception:  # noqa: BLE001: what it is, is told
        error = traceback.format_exc()
    print(json.dumps({"step": step.__name__, "ok": error is None, "error": error}), flush=True)
