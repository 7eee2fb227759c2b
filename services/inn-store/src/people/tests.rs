mod handoffs;
mod members;

use inn_ports::People;
use inn_protocol::people::{Role, Tenant};
use inn_protocol::{Code, SessionId, TenantId, UserId};

use super::fixture::{World, code};
use crate::testdb::TestDb;

fn tenant(slug: &str) -> Tenant {
    Tenant { id: TenantId::new(), slug: slug.to_owned(), name: slug.to_uppercase() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_platform_is_founded_once_whoever_tries_at_the_same_time() {
    let (store, _db) = TestDb::new().await;
    let attempts = (0..8).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let email = format!("owner{number}@example.org");
            store.found(&tenant(&format!("t{number}")), UserId::new(), &email, "$argon2id$x").await.unwrap()
        })
    });
    let mut founded = 0;
    for attempt in attempts {
        founded += i32::from(attempt.await.unwrap());
    }
    assert_eq!(founded, 1);
}

#[tokio::test]
async fn an_address_is_the_same_in_any_ascii_case() {
    let world = World::new().await;
    for email in ["ada@example.org", "ADA@EXAMPLE.ORG", " Ada@example.org "] {
        let secret = world.store.user_secret(email).await.unwrap().unwrap();
        assert_eq!((secret.user, secret.email.as_str()), (world.owner, "Ada@Example.org"));
        assert_eq!(secret.password, "$argon2id$ada");
        assert_eq!(secret.tenants.len(), 1);
    }
    assert!(world.store.user_secret("ada@example.orG\0").await.unwrap().is_some(), "NUL is no error");
    assert!(world.store.user_secret("nobody@example.org").await.unwrap().is_none());
    assert!(world.store.user_secret_by_id(world.owner).await.unwrap().is_some());
    assert!(world.store.user_secret_by_id(UserId::new()).await.unwrap().is_none());
}

#[tokio::test]
async fn the_database_keeps_the_digest_of_a_session_token_and_not_the_token() {
    let world = World::new().await;
    world.session(world.owner, "ses_secret").await;
    let text = "SELECT count(*) FROM inn.sessions s WHERE s::text LIKE '%ses_secret%' OR token = 'ses_secret'::bytea";
    assert_eq!(world.count(text).await, 0);
    assert_eq!(world.count("SELECT count(*) FROM inn.sessions WHERE octet_length(token) = 32").await, 1);
}

#[tokio::test]
async fn a_session_ends_by_sign_out_by_time_and_with_the_account() {
    let world = World::new().await;
    let session = world.session(world.owner, "a").await;
    assert_eq!((session.role, session.tenant.slug.as_str()), (Role::Owner, "home"));
    assert!(world.store.session_view(session.id).await.unwrap().is_some());
    world.store.end_session(&world.call("sessions.sign-out"), session.id).await.unwrap();
    assert!(world.store.session_view(session.id).await.unwrap().is_none());
    let again = world.store.end_session(&world.call("sessions.sign-out"), session.id).await.unwrap();
    assert_eq!(again.stored["ended"], 0);
    assert_eq!(code(world.store.end_session(&world.call("x"), SessionId::new()).await), Code::NotFound);

    let late = world.session(world.owner, "b").await;
    world.admin.batch_execute("UPDATE inn.sessions SET expires_at = now() - interval '1 s'").await.unwrap();
    assert!(world.store.session_view(late.id).await.unwrap().is_none());
    assert_eq!(code(world.store.refresh_session(&world.call("x"), late.id).await), Code::NotFound);

    let last = world.session(world.owner, "c").await;
    world.admin.batch_execute("UPDATE inn.users SET disabled_at = now()").await.unwrap();
    assert!(world.store.session_view(last.id).await.unwrap().is_none());
    let refused = world.store.open_session(&world.call("x"), &world.new_session(world.owner, "d")).await;
    assert_eq!(code(refused), Code::Forbidden);
}

#[tokio::test]
async fn a_session_is_only_opened_where_the_person_is_a_member() {
    let world = World::new().await;
    let mut stranger = world.new_session(UserId::new(), "s");
    assert_eq!(code(world.store.open_session(&world.call("x"), &stranger).await), Code::Forbidden);
    stranger.user = world.owner;
    stranger.tenant = TenantId::new();
    assert_eq!(code(world.store.open_session(&world.call("x"), &stranger).await), Code::Forbidden);
    assert_eq!(world.count("SELECT count(*) FROM inn.sessions").await, 0);
}

#[tokio::test]
async fn switching_works_between_ones_own_tenants_only() {
    let world = World::new().await;
    let session = world.session(world.owner, "a").await;
    let second = tenant("second");
    world.store.create_tenant(&world.call("tenants.create"), &second, world.owner).await.unwrap();
    let foreign = tenant("foreign");
    world
        .store
        .create_tenant(&world.call("tenants.create"), &foreign, {
            let call = world.call("members.set");
            world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Viewer).await.unwrap();
            world.store.user_secret("bob@example.org").await.unwrap().unwrap().user
        })
        .await
        .unwrap();

    let moved = world.store.switch_tenant(&world.call("sessions.switch"), session.id, second.id).await.unwrap();
    assert_eq!((moved.tenant.slug.as_str(), moved.role), ("second", Role::Owner));
    let refused = world.store.switch_tenant(&world.call("sessions.switch"), session.id, foreign.id).await;
    assert_eq!(code(refused), Code::Forbidden);
    let mine = world.store.tenants_of(world.owner).await.unwrap();
    let slugs: Vec<_> = mine.iter().map(|(tenant, _)| tenant.slug.as_str()).collect();
    assert_eq!(slugs, ["home", "second"], "oldest first");
}

#[tokio::test]
async fn a_tenants_slug_is_taken_once_and_well_formed() {
    let world = World::new().await;
    let refused = world.store.create_tenant(&world.call("x"), &tenant("home"), world.owner).await;
    assert_eq!(code(refused), Code::SlugTaken);
    for slug in ["", "-a", "a-", "A", "a b", "ü", &"a".repeat(64)] {
        let refused = world.store.create_tenant(&world.call("x"), &tenant(slug), world.owner).await;
        assert_eq!(code(refused), Code::InvalidParameter, "{slug}");
    }
    assert_eq!(world.count("SELECT count(*) FROM inn.tenants").await, 1);
}

#[tokio::test]
async fn a_new_password_ends_every_other_session() {
    let world = World::new().await;
    let (kept, other) = (world.session(world.owner, "a").await, world.session(world.owner, "b").await);
    let before = world.store.password_changed_at(world.owner).await.unwrap().unwrap();
    world.store.set_password(&world.call("sessions.password"), world.owner, "$new", Some(kept.id)).await.unwrap();
    assert!(world.store.session_view(kept.id).await.unwrap().is_some());
    assert!(world.store.session_view(other.id).await.unwrap().is_none());
    assert_eq!(world.store.user_secret_by_id(world.owner).await.unwrap().unwrap().password, "$new");
    assert!(world.store.password_changed_at(world.owner).await.unwrap().unwrap() > before);
    assert_eq!(world.store.end_sessions(&world.call("x"), world.owner).await.unwrap(), 1);
    assert!(world.store.session_view(kept.id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_person_has_a_hundred_sessions_at_most() {
    let world = World::new().await;
    let text = "INSERT INTO inn.sessions (id, user_id, tenant, token, created_at, expires_at)
        SELECT gen_random_uuid(), $1, $2, sha256(n::text::bytea), now() - interval '1 hour', now() + interval '1 hour'
        FROM generate_series(1, 150) n";
    world.admin.execute(text, &[&world.owner.uuid(), &world.tenant.uuid()]).await.unwrap();
    let newest = world.session(world.owner, "new").await;
    assert_eq!(world.count("SELECT count(*) FROM inn.sessions WHERE ended_at IS NULL").await, 100);
    assert!(world.store.session_view(newest.id).await.unwrap().is_some());
}

#[tokio::test]
async fn every_change_leaves_its_entry_and_receipt() {
    let world = World::new().await;
    let session = world.session(world.owner, "a").await;
    world.store.refresh_session(&world.call("sessions.refresh"), session.id).await.unwrap();
    world.store.end_session(&world.call("sessions.sign-out"), session.id).await.unwrap();
    for action in ["sessions.sign-in", "sessions.refresh", "sessions.sign-out"] {
        assert_eq!(world.entries(action).await, 1, "{action}");
    }
    let text = "SELECT count(*) FROM inn.receipts WHERE action = 'sessions.sign-in' AND sentence = 'Ada@Example.org signed in to Home'";
    assert_eq!(world.count(text).await, 1);
}
