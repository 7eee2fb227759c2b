use inn_ports::{Directory, People};
use inn_protocol::people::Role;
use inn_protocol::{AppId, Code, Digest, SessionId, TenantId};

use crate::people::fixture::{World, code, install};

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

#[tokio::test]
async fn a_code_opens_one_session_on_its_app_once() {
    let world = World::new().await;
    let platform = world.session(world.owner, "a").await;
    let call = world.call("sessions.hand-over");
    world.store.open_handoff(&call, digest("code"), platform.id, world.app.id).await.unwrap();
    let other = install(&world.admin, world.tenant, "other").await;

    let take = |app, token: &'static str| {
        let world = &world;
        async move {
            let call = world.call("sessions.take-over");
            world.store.take_handoff(&call, digest("code"), app, SessionId::new(), digest(token)).await.unwrap()
        }
    };
    assert!(take(other.id, "x").await.is_none(), "a code is for one app");
    let opened = take(world.app.id, "y").await.unwrap();
    assert_eq!((opened.user, opened.tenant.id, opened.expires_at), (world.owner, world.tenant, platform.expires_at));
    assert!(take(world.app.id, "z").await.is_none(), "a code counts once");
    assert_eq!(world.entries("sessions.take-over").await, 1, "codes that did not count left no done entry");

    world.store.end_session(&world.call("sessions.sign-out"), platform.id).await.unwrap();
    assert!(world.store.session_view(opened.id).await.unwrap().is_none(), "signing out signs out of the app");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_take_one_code_at_once_one_gets_in() {
    let world = World::new().await;
    let platform = world.session(world.owner, "a").await;
    world.store.open_handoff(&world.call("x"), digest("code"), platform.id, world.app.id).await.unwrap();
    let racers: Vec<_> = (0..10)
        .map(|number| {
            let (store, app, call) = (world.store.clone(), world.app.id, world.call("x"));
            tokio::spawn(async move {
                let token = digest(&format!("token {number}"));
                store.take_handoff(&call, digest("code"), app, SessionId::new(), token).await.unwrap().is_some()
            })
        })
        .collect();
    let mut opened = 0;
    for racer in racers {
        opened += i32::from(racer.await.unwrap());
    }
    assert_eq!(opened, 1);
}

#[tokio::test]
async fn a_code_is_worth_nothing_after_a_minute_a_sign_out_or_a_removal() {
    let world = World::new().await;
    let call = world.call("members.set");
    world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Viewer).await.unwrap();
    let bob = world.store.user_secret("bob@example.org").await.unwrap().unwrap().user;
    let take = |code: &'static str| {
        let world = &world;
        async move {
            let (call, token) = (world.call("x"), digest(&format!("token of {code}")));
            world.store.take_handoff(&call, digest(code), world.app.id, SessionId::new(), token).await.unwrap()
        }
    };

    let session = world.session(bob, "late").await;
    world.store.open_handoff(&world.call("x"), digest("late"), session.id, world.app.id).await.unwrap();
    let left = "SELECT count(*) FROM inn.handoffs WHERE expires_at BETWEEN now() AND now() + interval '60 s'";
    assert_eq!(world.count(left).await, 1);
    world.admin.batch_execute("UPDATE inn.handoffs SET expires_at = now() - interval '1 ms'").await.unwrap();
    assert!(take("late").await.is_none());

    let session = world.session(bob, "signed out").await;
    world.store.open_handoff(&world.call("x"), digest("out"), session.id, world.app.id).await.unwrap();
    world.store.end_session(&world.call("x"), session.id).await.unwrap();
    assert!(take("out").await.is_none());

    let session = world.session(bob, "removed").await;
    world.store.open_handoff(&world.call("x"), digest("removed"), session.id, world.app.id).await.unwrap();
    world.store.remove_member(&world.call("x"), world.tenant, bob).await.unwrap();
    assert!(take("removed").await.is_none());
}

#[tokio::test]
async fn a_code_is_only_given_for_an_app_of_a_tenant_one_is_a_member_of() {
    let world = World::new().await;
    let session = world.session(world.owner, "a").await;
    let foreign = TenantId::new();
    let text = "INSERT INTO inn.tenants (id, slug, name) VALUES ($1, 'foreign', 'Foreign')";
    world.admin.execute(text, &[&foreign.uuid()]).await.unwrap();
    let app = install(&world.admin, foreign, "secret").await;
    let refused = world.store.open_handoff(&world.call("x"), digest("code"), session.id, app.id).await;
    assert_eq!(code(refused), Code::Forbidden);
    assert_eq!(world.count("SELECT count(*) FROM inn.handoffs").await, 0);
}

#[tokio::test]
async fn a_code_for_no_app_opens_one_session_on_the_platform() {
    let world = World::new().await;
    let platform = AppId::from_uuid(uuid::Uuid::nil());
    let from = world.session(world.owner, "a").await;
    world.store.open_handoff(&world.call("x"), digest("link"), from.id, platform).await.unwrap();
    let take = |app, token: &'static str| {
        let world = &world;
        async move {
            let call = world.call("sessions.sign-in");
            world.store.take_handoff(&call, digest("link"), app, SessionId::new(), digest(token)).await.unwrap()
        }
    };
    assert!(take(world.app.id, "x").await.is_none(), "it opens no app");
    let opened = take(platform, "y").await.unwrap();
    assert_eq!((opened.user, opened.tenant.id), (world.owner, world.tenant));
    assert!(take(platform, "z").await.is_none(), "it counts once");
    let state = world.store.session(digest("y")).await.unwrap().unwrap();
    assert!(state.app.is_none(), "a session of the platform, which may consent");

    world.store.open_handoff(&world.call("x"), digest("app"), from.id, world.app.id).await.unwrap();
    let call = world.call("x");
    let other = world.store.take_handoff(&call, digest("app"), platform, SessionId::new(), digest("w")).await.unwrap();
    assert!(other.is_none(), "a code for an app opens nothing on the platform");
}
