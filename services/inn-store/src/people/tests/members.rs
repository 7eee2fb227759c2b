use inn_ports::{Grants, People, Requests, StoreError};
use inn_protocol::people::{Role, Tenant};
use inn_protocol::request::RequestState;
use inn_protocol::{Code, TenantId};

use crate::people::fixture::{World, call_in, code, offer, refusal};

async fn epoch(world: &World, email: &str) -> i64 {
    let text = "SELECT m.epoch FROM inn.members m JOIN inn.users u ON u.id = m.user_id WHERE u.email_key = $1";
    world.admin.query_one(text, &[&email]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_member_is_added_changed_and_removed_and_every_step_moves_the_epoch() {
    let world = World::new().await;
    let set = |role, password: Option<&'static str>| {
        let world = &world;
        async move {
            world.store.set_member(&world.call("members.set"), world.tenant, "Bob@Example.org", password, role).await
        }
    };
    assert_eq!(code(set(Role::Viewer, None).await), Code::InvalidParameter, "a new person needs a password");
    let added = set(Role::Viewer, Some("$first")).await.unwrap();
    assert_eq!(added.stored["newAccount"], true);
    let first = epoch(&world, "bob@example.org").await;
    set(Role::Viewer, None).await.unwrap();
    assert_eq!(epoch(&world, "bob@example.org").await, first, "nothing changed, nothing moves");
    assert_eq!(code(set(Role::Editor, Some("$stolen")).await), Code::Conflict, "never silently ignored");
    assert_eq!(epoch(&world, "bob@example.org").await, first, "and nothing changed");
    set(Role::Editor, None).await.unwrap();
    let second = epoch(&world, "bob@example.org").await;
    assert!(second > first);
    let bob = world.store.user_secret("bob@example.org").await.unwrap().unwrap();
    assert_eq!(bob.password, "$first", "nobody sets the password of somebody who exists");
    assert_eq!(world.store.members(world.tenant).await.unwrap().len(), 2);

    world.store.remove_member(&world.call("members.remove"), world.tenant, bob.user).await.unwrap();
    let third = epoch(&world, "bob@example.org").await;
    assert!(third > second);
    assert_eq!(world.store.members(world.tenant).await.unwrap().len(), 1);
    let again = world.store.remove_member(&world.call("members.remove"), world.tenant, bob.user).await;
    assert_eq!(code(again), Code::NotFound);
    set(Role::Editor, None).await.unwrap();
    assert!(epoch(&world, "bob@example.org").await > third, "a member who comes back has a new epoch");
}

#[tokio::test]
async fn the_last_owner_can_neither_be_lowered_nor_removed() {
    let world = World::new().await;
    let lower = |email: &'static str| {
        let world = &world;
        async move { world.store.set_member(&world.call("x"), world.tenant, email, None, Role::Editor).await }
    };
    assert_eq!(code(lower("ada@example.org").await), Code::Conflict);
    assert_eq!(code(world.store.remove_member(&world.call("x"), world.tenant, world.owner).await), Code::Conflict);
    let call = world.call("x");
    world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Owner).await.unwrap();
    lower("ada@example.org").await.unwrap();
    assert_eq!(code(lower("bob@example.org").await), Code::Conflict);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_owners_who_remove_each_other_leave_one() {
    let world = World::new().await;
    let call = world.call("x");
    world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Owner).await.unwrap();
    let bob = world.store.user_secret("bob@example.org").await.unwrap().unwrap().user;
    for _ in 0..5 {
        let removals = [(world.owner, bob), (bob, world.owner)].map(|(by, of)| {
            let (store, tenant, mut call) = (world.store.clone(), world.tenant, world.call("members.remove"));
            call.draft.user = Some(by);
            tokio::spawn(async move { store.remove_member(&call, tenant, of).await })
        });
        let mut removed = 0;
        for removal in removals {
            match removal.await.unwrap() {
                Ok(_) => removed += 1,
                Err(StoreError::Refused(refusal)) => assert_eq!(refusal.code, Code::Conflict),
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(removed, 1);
        assert_eq!(world.store.members(world.tenant).await.unwrap().len(), 1);
        for email in ["ada@example.org", "bob@example.org"] {
            world.store.set_member(&world.call("x"), world.tenant, email, None, Role::Owner).await.unwrap();
        }
    }
}

#[tokio::test]
async fn removing_a_member_takes_their_grants_claims_and_sessions_in_the_tenant() {
    let world = World::new().await;
    let call = world.call("members.set");
    world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Editor).await.unwrap();
    let bob = world.store.user_secret("bob@example.org").await.unwrap().unwrap().user;
    let session = world.session(bob, "bob").await;
    let elsewhere = Tenant { id: TenantId::new(), slug: "bobs".to_owned(), name: "Bob's".to_owned() };
    world.store.create_tenant(&world.call("x"), &elsewhere, bob).await.unwrap();
    let mut other = world.new_session(bob, "bob elsewhere");
    other.tenant = elsewhere.id;
    let other = world.store.open_session(&world.call("x"), &other).await.unwrap();
    let grant = world.granted(&world.agent, bob, &["queue:summarise-board"], true).await;
    let mine = world.queue_grant().await;
    let request = world.asked(&world.request()).await;
    let held = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap();
    assert_eq!(held[0].id, request.id);

    let receipt = world.store.remove_member(&world.call("members.remove"), world.tenant, bob).await.unwrap();
    assert_eq!((&receipt.stored["claimsFenced"], &receipt.stored["sessionsEnded"]), (&1.into(), &1.into()));
    assert!(world.store.grant_view(grant.id).await.unwrap().unwrap().revoked_at.is_some());
    assert!(world.store.grant_view(mine.id).await.unwrap().unwrap().revoked_at.is_none());
    assert!(world.store.session_view(session.id).await.unwrap().is_none());
    assert!(world.store.session_view(other.id).await.unwrap().is_some(), "their other tenants are their own business");
    let back = world.store.request(world.app.id, request.id).await.unwrap().unwrap();
    assert_eq!((back.state, back.holder, back.attempt), (RequestState::Submitted, None, 0));

    world.store.set_member(&world.call("x"), world.tenant, "bob@example.org", None, Role::Owner).await.unwrap();
    let still = world.store.grant_view(grant.id).await.unwrap().unwrap();
    assert!(still.revoked_at.is_some(), "coming back does not bring a grant back");
}

#[tokio::test]
async fn a_caller_whose_own_membership_moved_commits_nothing() {
    let world = World::new().await;
    let old = epoch(&world, "ada@example.org").await;
    world.admin.batch_execute("UPDATE inn.members SET epoch = nextval('inn.epoch')").await.unwrap();
    let mut call = world.call("members.set");
    call.live.member = Some((world.tenant, world.owner, old));
    let refused = world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Viewer).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    assert!(world.store.user_secret("bob@example.org").await.unwrap().is_none(), "not even the account");
    call.live.member = Some((world.tenant, world.owner, epoch(&world, "ada@example.org").await));
    world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Viewer).await.unwrap();
}

#[tokio::test]
async fn what_is_no_address_is_refused() {
    let world = World::new().await;
    let long = format!("{}@example.org", "a".repeat(250));
    for email in ["", "ada", "@x", "x@", "a@b@c", "a b@c", "a\0@c", "a\n@c", &long] {
        let refused = world.store.set_member(&world.call("x"), world.tenant, email, Some("$x"), Role::Viewer).await;
        assert_eq!(code(refused), Code::InvalidParameter, "{email:?}");
    }
}

#[tokio::test]
async fn a_password_for_an_address_with_an_account_changes_nothing_and_says_so() {
    let world = World::new().await;
    let elsewhere = second_tenant(&world).await;
    for (tenant, email) in [(world.tenant, "ada@example.org"), (elsewhere, "CARL@example.org")] {
        let set = world.store.set_member(&world.call("x"), tenant, email, Some("$mine now"), Role::Owner).await;
        let refused = refusal(set);
        assert_eq!(refused.code, Code::Conflict, "{email}");
        assert!(refused.message.contains("password"), "{}", refused.message);
    }
    let passwords = "SELECT count(*) FROM inn.users WHERE password = '$mine now'";
    assert_eq!(world.count(passwords).await, 0);
    assert_eq!(world.entries("x").await, 0);
}

/// A tenant of Carl, who is nobody in the first one.
async fn second_tenant(world: &World) -> TenantId {
    let stranger = world.member("carl@example.org", Role::Viewer).await;
    let tenant = Tenant { id: TenantId::new(), slug: "carls".to_owned(), name: "Carl's".to_owned() };
    world.store.create_tenant(&world.call("tenants.create"), &tenant, stranger).await.unwrap();
    world.store.remove_member(&world.call("members.remove"), world.tenant, stranger).await.unwrap();
    tenant.id
}

#[tokio::test]
async fn only_owners_of_the_first_tenant_create_accounts() {
    let world = World::new().await;
    let elsewhere = second_tenant(&world).await;
    let by = |email: &'static str| {
        let world = &world;
        async move { world.store.user_secret(email).await.unwrap().unwrap().user }
    };
    let (stranger, ada) = (by("carl@example.org").await, world.owner);
    let editor = world.member("eve@example.org", Role::Editor).await;
    let add = |caller, email: &'static str, password| {
        let mut call = call_in(elsewhere, "members.set");
        call.draft.user = Some(caller);
        let world = &world;
        async move { world.store.set_member(&call, elsewhere, email, password, Role::Viewer).await }
    };
    for caller in [stranger, editor] {
        let refused = refusal(add(caller, "new@example.org", Some("$x")).await);
        assert_eq!((refused.code, refused.leg), (Code::Forbidden, Some("user")));
        assert!(refused.message.contains("first tenant") && refused.who_can_fix.is_some(), "{}", refused.message);
    }
    assert!(world.store.user_secret("new@example.org").await.unwrap().is_none());
    let refused = refusal(add(stranger, "new@example.org", None).await);
    assert_eq!((refused.code, refused.violations[0].field.as_str()), (Code::InvalidParameter, "password"));
    // Who has an account already can be added by any owner.
    add(stranger, "eve@example.org", None).await.unwrap();
    // An owner of the first tenant creates accounts wherever they are an owner.
    assert_eq!(add(ada, "new@example.org", Some("$x")).await.unwrap().stored["newAccount"], true);
    add(stranger, "new@example.org", None).await.unwrap();
    // And no longer when they are none.
    world.member("eve@example.org", Role::Owner).await;
    world.store.remove_member(&world.call("x"), world.tenant, ada).await.unwrap();
    assert_eq!(code(add(ada, "newer@example.org", Some("$x")).await), Code::Forbidden);
}
