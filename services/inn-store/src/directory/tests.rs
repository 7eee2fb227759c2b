use inn_ports::{Clock, Directory};
use inn_protocol::{AgentId, AppId, Digest, GrantId, TenantId, UserId};

use crate::DatabaseClock;
use crate::commit::fixture::World;

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_say_what_is_there_and_nothing_of_what_is_not() {
    let world = World::new().await;
    let store = &world.store;
    let app = store.app_by_slug("kanban").await.unwrap().unwrap();
    assert_eq!((app.id, app.tenant, app.epoch), (world.app.id, world.tenant, world.app.epoch));
    assert_eq!(app.definition, world.app.definition);
    for slug in ["Kanban", "", "x\0", "' OR 1=1 --"] {
        assert!(store.app_by_slug(slug).await.unwrap().is_none(), "{slug:?}");
    }
    assert!(store.app_by_id(AppId::new()).await.unwrap().is_none());

    let grant = store.grant(world.grant).await.unwrap().unwrap();
    assert_eq!(
        (grant.agent.clone(), grant.user, grant.epoch, grant.revoked),
        (world.agent.clone(), world.user, world.grant_epoch, false)
    );
    assert_eq!(grant.scopes.len(), 1);
    assert!(store.grant(GrantId::new()).await.unwrap().is_none());
    assert!(store.loopback_grant(Digest::of(b"x")).await.unwrap().is_none());

    let member = store.member(world.tenant, world.user).await.unwrap().unwrap();
    assert_eq!((&*member.email, member.epoch), ("owner@example.com", world.member_epoch));
    assert!(store.member(TenantId::new(), world.user).await.unwrap().is_none());
    assert!(store.member(world.tenant, UserId::new()).await.unwrap().is_none());
    assert!(store.session(Digest::of(b"x")).await.unwrap().is_none());
    assert!(store.app_record(&app, "x").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_live_grants_with_queue_scopes_are_for_claiming_and_unknown_scopes_allow_nothing() {
    let world = World::new().await;
    assert!(world.store.queue_grants(&world.agent).await.unwrap().is_empty());
    let admin = world.db.admin().await;
    admin.execute("UPDATE inn.grants SET scopes = '{queue:summarise,\"from the future\"}'", &[]).await.unwrap();
    let grants = world.store.queue_grants(&world.agent).await.unwrap();
    assert_eq!(grants.len(), 1);
    assert_eq!(grants[0].scopes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["queue:summarise"]);
    let other = AgentId::parse(&"x".repeat(43)).unwrap();
    assert!(world.store.queue_grants(&other).await.unwrap().is_empty());
    admin.execute("UPDATE inn.grants SET revoked_at = now()", &[]).await.unwrap();
    assert!(world.store.queue_grants(&world.agent).await.unwrap().is_empty());
    assert!(world.store.grant(world.grant).await.unwrap().unwrap().revoked);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_follows_the_database() {
    let world = World::new().await;
    let clock = DatabaseClock::default();
    let offset = clock.measure(&world.store).await.unwrap();
    assert!(offset.abs() < chrono::TimeDelta::seconds(5), "one machine, one clock: {offset}");
    let database = world.store.database_now().await.unwrap();
    assert!((clock.now() - database).abs() < chrono::TimeDelta::seconds(5));
}
