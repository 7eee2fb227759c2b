//! Accounts on a real database.

use std::collections::BTreeMap;
use std::sync::Arc;

use inn_ports::{AccountChange, AppAuth, AppUsers, Apps, DeployPlan, Directory, NewMail, NewTicket, TicketKind};
use inn_protocol::app::{AppDefinition, AppSnapshot};
use inn_protocol::call::AppUserCheck;
use inn_protocol::model::Collection;
use inn_protocol::plan::Write;
use inn_protocol::receipt::Verb;
use inn_protocol::register::{CallOutcome, CallRecord};
use inn_protocol::{Code, Digest};
use serde_json::{Map, Value, json};

use crate::people::fixture::World;

struct Club {
    world: World,
    app: Arc<AppSnapshot>,
    schema: String,
}

impl Club {
    async fn new() -> Self {
        let world = World::new().await;
        let field = |name: &str, kind: &str| json!({"id": format!("f_{name}"), "name": name, "type": kind});
        let mut id = field("id", "text");
        id["primaryKey"] = json!(true);
        let mut updated = field("updated", "autodate");
        updated["onUpdate"] = json!(true);
        let fields = json!([
            id,
            field("password", "password"),
            field("tokenKey", "text"),
            field("email", "email"),
            field("verified", "bool"),
            field("nick", "text"),
            updated,
        ]);
        let definition: AppDefinition = serde_json::from_value(json!({
            "declaredId": "club", "name": "Club", "dialect": "1.0", "authMode": "multi-user",
            "model": {"collections": [
                {"id": "users_id", "name": "users", "type": "auth", "fields": fields, "indexes": [
                    "CREATE UNIQUE INDEX idx_email ON users (email) WHERE email != ''",
                    "CREATE UNIQUE INDEX idx_key ON users (tokenKey)",
                ]},
                {"id": "notes_id", "name": "notes", "type": "base", "fields": [id]},
            ]},
            "operations": [], "operationsJson": {}, "capabilities": [], "limits": {},
        }))
        .unwrap();
        let plan = DeployPlan {
            tenant: world.tenant,
            slug: "club".to_owned(),
            definition: Arc::new(definition),
            release: Digest::of(b"club"),
            archive: Digest::of(b"archive"),
            archive_bytes: 7,
            files: BTreeMap::new(),
            ui_files: BTreeMap::new(),
            consented: vec![],
            allow_destructive: false,
            dry_run: false,
        };
        let id = world.store.deploy(&world.call("apps.deploy"), &plan).await.unwrap().app;
        let app = world.store.app_by_id(id).await.unwrap().unwrap();
        let schema = format!("app_{}", id.uuid().simple());
        let club = Self { world, app, schema };
        club.sql("INSERT INTO {}.users (id, email, \"tokenKey\", nick) VALUES ('u1', 'a@x.example', 'key1', 'ada'), ('u2', 'b@x.example', 'key2', '')").await;
        club
    }

    async fn sql(&self, text: &str) {
        self.world.admin.batch_execute(&text.replace("{}", &self.schema)).await.unwrap();
    }

    fn users(&self) -> &Collection {
        self.app.definition.model.collection("users").unwrap()
    }

    fn change(key: &str, set: &Value) -> AccountChange {
        AccountChange {
            record: "u1".to_owned(),
            token_key: key.to_owned(),
            set: set.as_object().cloned().unwrap(),
            sentence: "Changed".to_owned(),
        }
    }

    async fn row(&self) -> Map<String, Value> {
        self.world.store.app_user(&self.app, self.users(), "u1").await.unwrap().unwrap()
    }

    fn ticket(id: &str, kind: TicketKind, seconds: u32) -> NewTicket {
        NewTicket {
            id: id.to_owned(),
            kind,
            collection: "users".to_owned(),
            record: "u1".to_owned(),
            token_key: [1; 32],
            proof: b"proof".to_vec(),
            seconds,
        }
    }

    /// A call of somebody signed in as this record.
    fn by(&self, key: &str) -> CallRecord {
        let mut call = self.world.call("records.list");
        call.live.app_user = Some(AppUserCheck {
            app: self.app.id,
            collection: "users".to_owned(),
            record: "u1".to_owned(),
            token_key: Digest::of(key.as_bytes()),
        });
        call
    }
}

#[tokio::test]
async fn an_apps_secret_is_made_once_and_lies_sealed() {
    let club = Club::new().await;
    let store = &club.world.store;
    assert!(store.app_secret(&club.app).await.unwrap().is_none());
    let (first, second) = tokio::join!(store.make_app_secret(&club.app), store.make_app_secret(&club.app));
    let secret = first.unwrap();
    assert!(secret == second.unwrap() && Some(&secret) == store.app_secret(&club.app).await.unwrap().as_ref());
    let row = club.world.admin.query_one("SELECT key, sealed FROM inn.app_secrets", &[]).await.unwrap();
    let sealed: Vec<u8> = row.get(1);
    assert_eq!((row.get::<_, i64>(0), sealed.len()), (1, 24 + 32 + 16));
    assert_eq!(store.sealed_with().await.unwrap(), [1]);
    assert!(!sealed.windows(8).any(|window| secret.bytes().windows(8).any(|part| part == window)));
    // Another app's row, or one that was changed, is not opened.
    club.sql("UPDATE inn.app_secrets SET sealed = set_byte(sealed, 30, (get_byte(sealed, 30) + 1) % 256)").await;
    assert!(store.app_secret(&club.app).await.is_err());
}

#[tokio::test]
async fn an_account_is_found_by_what_names_it_and_by_nothing_else() {
    let club = Club::new().await;
    let find = |fields: &'static [&'static str], text: &'static str| {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        let club = &club;
        async move {
            let row = club.world.store.app_user_by(&club.app, club.users(), &fields, text).await.unwrap();
            row.map(|row| row["id"].as_str().unwrap().to_owned())
        }
    };
    assert_eq!(find(&["email"], "a@x.example").await.as_deref(), Some("u1"));
    assert_eq!(find(&["nick", "email"], "b@x.example").await.as_deref(), Some("u2"));
    for text in ["A@x.example", "' OR true --", "", "a@x.example\0", "ada"] {
        assert_eq!(find(&["email"], text).await, None, "{text:?}");
    }
    assert_eq!(find(&["nick"], "").await, None, "nobody is named by nothing");
    let notes = club.app.definition.model.collection("notes").unwrap();
    club.sql("INSERT INTO {}.notes (id) VALUES ('n1')").await;
    assert!(club.world.store.app_user(&club.app, notes, "n1").await.unwrap().is_none());
}

#[tokio::test]
async fn a_change_holds_for_the_key_it_was_proved_with_and_leaves_entry_receipt_and_event() {
    let club = Club::new().await;
    let store = &club.world.store;
    let set = json!({"password": "$argon2id$new", "tokenKey": "key9", "verified": true});
    let late = Club::change("another", &set);
    let call = club.world.call("auth.confirm-password-reset");
    assert!(store.change_account(&call, &club.app, club.users(), &late).await.unwrap().is_none());
    assert_eq!(club.row().await["tokenKey"], "key1");
    assert_eq!(club.world.entries("auth.confirm-password-reset").await, 0, "nothing happened, nothing is entered");
    let receipt =
        store.change_account(&call, &club.app, club.users(), &Club::change("key1", &set)).await.unwrap().unwrap();
    let row = club.row().await;
    assert_eq!(
        (&row["password"], &row["tokenKey"], &row["verified"]),
        (&json!("$argon2id$new"), &json!("key9"), &json!(true))
    );
    assert_ne!(row["updated"], "");
    assert_eq!(receipt.stored["changed"], json!(["password", "verified"]));
    assert!(!json!(receipt).to_string().contains("argon2"), "names are told, values are not");
    assert_eq!(club.world.entries("auth.confirm-password-reset").await, 1);
    let told =
        "SELECT count(*) FROM inn.changes WHERE record = 'u1' AND verb = 'update' AND \"row\" !~ 'argon2|key[0-9]'";
    assert_eq!(club.world.count(told).await, 1, "told without the account's secrets");
}

#[tokio::test]
async fn an_email_somebody_else_has_is_refused_by_name() {
    let club = Club::new().await;
    let change = Club::change("key1", &json!({"email": "b@x.example", "tokenKey": "key9"}));
    let changed = club.world.store.change_account(&club.world.call("x"), &club.app, club.users(), &change).await;
    let refusal = crate::people::fixture::refusal(changed);
    assert_eq!((refusal.code, refusal.violations[0].field.as_str()), (Code::NotUnique, "email"));
    assert_eq!(club.row().await["tokenKey"], "key1", "nothing was kept");
}

#[tokio::test]
async fn one_mail_of_a_purpose_goes_to_a_record_in_its_pause() {
    let club = Club::new().await;
    let mail = |purpose: &str, record: &str| NewMail {
        record: record.to_owned(),
        purpose: purpose.to_owned(),
        pause: 60,
        sentence: "A mail went out".to_owned(),
    };
    let ticket = Club::ticket("t1", TicketKind::Otp, 60);
    let (store, call) = (&club.world.store, || club.world.call("auth.request-otp"));
    assert!(store.open_mail(&call(), &club.app, &mail("otp", "u1"), Some(&ticket)).await.unwrap());
    let second = Club::ticket("t2", TicketKind::Otp, 60);
    assert!(!store.open_mail(&call(), &club.app, &mail("otp", "u1"), Some(&second)).await.unwrap());
    assert!(store.open_mail(&call(), &club.app, &mail("reset", "u1"), None).await.unwrap());
    assert!(store.open_mail(&call(), &club.app, &mail("otp", "u2"), None).await.unwrap());
    assert_eq!(club.world.count("SELECT count(*) FROM inn.app_tickets").await, 1);
    assert_eq!(club.world.entries("auth.request-otp").await, 4, "each has an entry, sent or not");
    club.sql("UPDATE inn.app_mails SET sent_at = sent_at - interval '1 minute'").await;
    assert!(store.open_mail(&call(), &club.app, &mail("otp", "u1"), Some(&second)).await.unwrap());
}

#[tokio::test]
async fn a_ticket_is_tried_five_times_and_used_once() {
    let club = Club::new().await;
    let store = &club.world.store;
    for id in ["t1", "t2"] {
        store.open_ticket(&club.world.call("x"), &club.app, &Club::ticket(id, TicketKind::Otp, 60)).await.unwrap();
    }
    let attempt = |id: &'static str, kind, collection: &'static str| store.try_ticket(&club.app, kind, collection, id);
    for _ in 0..5 {
        let ticket = attempt("t1", TicketKind::Otp, "users").await.unwrap().unwrap();
        assert_eq!((ticket.record.as_str(), ticket.proof.as_slice()), ("u1", b"proof".as_slice()));
    }
    assert!(attempt("t1", TicketKind::Otp, "users").await.unwrap().is_none(), "the sixth");
    for (id, kind, collection) in [
        ("t2", TicketKind::Mfa, "users"),
        ("t2", TicketKind::Otp, "staff"),
        ("t3", TicketKind::Otp, "users"),
        ("t\0", TicketKind::Otp, "users"),
    ] {
        assert!(attempt(id, kind, collection).await.unwrap().is_none(), "{id:?} {kind:?} {collection}");
    }
    let call = club.world.call("auth.with-otp");
    let (one, two) = tokio::join!(
        store.use_ticket(&call, &club.app, TicketKind::Otp, "t2", "Signed in"),
        store.use_ticket(&call, &club.app, TicketKind::Otp, "t2", "Signed in"),
    );
    assert_eq!([one.unwrap(), two.unwrap()].iter().filter(|used| **used).count(), 1);
    assert_eq!(club.world.count("SELECT count(*) FROM inn.app_tickets").await, 0, "the others of the record went too");
    assert_eq!(club.world.entries("auth.with-otp").await, 1);
}

#[tokio::test]
async fn a_ticket_ends_with_its_time_and_old_rows_are_cleared_away() {
    let club = Club::new().await;
    let store = &club.world.store;
    for number in 0..15 {
        let ticket = Club::ticket(&format!("t{number}"), TicketKind::Mfa, 60);
        store.open_ticket(&club.world.call("x"), &club.app, &ticket).await.unwrap();
    }
    assert_eq!(club.world.count("SELECT count(*) FROM inn.app_tickets").await, 10, "the oldest go");
    club.sql("UPDATE inn.app_tickets SET expires_at = clock_timestamp() - interval '2 hours'").await;
    assert!(store.try_ticket(&club.app, TicketKind::Mfa, "users", "t14").await.unwrap().is_none());
    assert!(!store.use_ticket(&club.world.call("x"), &club.app, TicketKind::Mfa, "t14", "x").await.unwrap());
    let mail = NewMail { record: "u1".into(), purpose: "otp".into(), pause: 60, sentence: String::new() };
    store.open_mail(&club.world.call("x"), &club.app, &mail, None).await.unwrap();
    club.sql("UPDATE inn.app_mails SET sent_at = clock_timestamp() - interval '2 days'").await;
    assert_eq!(store.housekeeping().await.unwrap().account_rows, 11);
}

#[tokio::test]
async fn nothing_commits_and_nothing_is_read_under_a_key_that_changed() {
    let club = Club::new().await;
    let store = &club.world.store;
    let read = |call| inn_ports::Ledger::record(store, call, CallOutcome::Done);
    read(club.by("key1")).await.unwrap();
    assert!(matches!(read(club.by("old key")).await, Err(inn_ports::StoreError::Stale)));
    store.open_account(&club.by("key1"), "x").await.unwrap();
    let stale = store.open_account(&club.by("old key"), "x").await;
    assert!(matches!(stale, Err(inn_ports::StoreError::Stale)), "{stale:?}");
    club.sql("DELETE FROM {}.users WHERE id = 'u1'").await;
    assert!(matches!(read(club.by("key1")).await, Err(inn_ports::StoreError::Stale)));
    assert!(matches!(store.open_account(&club.by("key1"), "x").await, Err(inn_ports::StoreError::Stale)));
    // A refusal is written all the same.
    inn_ports::Ledger::record(store, club.by("key1"), CallOutcome::Refused { code: "x" }).await.unwrap();
}

#[tokio::test]
async fn ending_the_tokens_waits_for_a_commit_under_them_and_other_changes_do_not() {
    let club = Club::new().await;
    let mut client = club.world.store.client().await.unwrap();
    let step = club.world.store.begin(&mut client, &club.by("key1")).await.unwrap();
    // What is not the key goes through.
    club.sql("UPDATE {}.users SET nick = 'countess' WHERE id = 'u1'").await;
    let sql =
        format!("SET lock_timeout = '300ms'; UPDATE {}.users SET \"tokenKey\" = 'key9' WHERE id = 'u1'", club.schema);
    let waits = club.world.admin.batch_execute(&sql).await.unwrap_err();
    assert_eq!(waits.code().unwrap().code(), "55P03", "{waits:?}");
    step.commit("x".to_owned(), Map::new()).await.unwrap();
    club.world.admin.batch_execute(&sql).await.unwrap();
}

#[tokio::test]
async fn a_record_is_written_under_a_key_that_holds_and_under_no_other() {
    let club = Club::new().await;
    let write = |key: &str, verb, nick: &str| {
        let values: Map<String, Value> = json!({ "nick": nick }).as_object().cloned().unwrap();
        let sentence = inn_rules::sentence::shape(verb, club.users(), &club.app.definition.model, &[]);
        let write = Write {
            verb,
            entity: "users".to_owned(),
            id: if verb == Verb::Create { "u9".to_owned() } else { "u2".to_owned() },
            values,
            increments: Map::new(),
            read_back: Vec::new(),
            rule: None,
            fixed: None,
            sentence,
        };
        let plan = inn_ports::Plan { record: club.by(key), app: Arc::clone(&club.app), write };
        async { inn_ports::Ledger::commit(&club.world.store, &{ plan }).await }
    };
    for verb in [Verb::Update, Verb::Create, Verb::Delete] {
        let stale = write("old key", verb, "x").await;
        assert!(matches!(stale, Err(inn_ports::StoreError::Stale)), "{verb:?}: {stale:?}");
    }
    assert_eq!(
        club.world.count(&format!("SELECT count(*) FROM {}.users WHERE nick = 'x' OR id = 'u9'", club.schema)).await,
        0
    );
    assert_eq!(write("key1", Verb::Update, "countess").await.unwrap().row["nick"], "countess");
    write("key1", Verb::Delete, "").await.unwrap();
    assert_eq!(club.world.count(&format!("SELECT count(*) FROM {}.users", club.schema)).await, 1);
}
