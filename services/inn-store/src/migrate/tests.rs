use super::{migrate, pending};
use crate::SetupError;
use crate::testdb::TestDb;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_nodes_at_once_migrate_once() {
    let db = TestDb::empty().await;
    let all = pending(db.url()).await.unwrap();
    assert!(all.len() >= 3, "{all:?}");
    let nodes: Vec<_> = (0..4)
        .map(|_| {
            let url = db.url().to_owned();
            tokio::spawn(async move { migrate(&url).await.unwrap() })
        })
        .collect();
    let mut applied = Vec::new();
    for node in nodes {
        applied.extend(node.await.unwrap());
    }
    assert_eq!(applied, all);
    assert!(pending(db.url()).await.unwrap().is_empty());
    assert!(migrate(db.url()).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_address_is_told_and_says_no_password() {
    for url in ["postgresql://x:secret@%2Fnowhere%2Fat-all/x", "nonsense=secret", "postgresql://x:secret@h:notaport/x"]
    {
        let error = migrate(url).await.unwrap_err();
        assert!(matches!(error, SetupError::Unreachable(_) | SetupError::InvalidUrl(_)), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
