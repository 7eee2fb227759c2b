use super::*;
use crate::testdb::TestDb;

#[tokio::test]
async fn blobs_are_kept_by_digest_and_checked_when_read() {
    let (store, db) = TestDb::new().await;
    let bytes = Bytes::from_static(b"bundle");
    let digest = Digest::of(&bytes);
    assert!(store.get(digest).await.unwrap().is_none());
    store.put(digest, bytes.clone()).await.unwrap();
    store.put(digest, bytes.clone()).await.unwrap();
    assert_eq!(store.get(digest).await.unwrap().unwrap(), bytes);
    assert!(matches!(store.put(Digest::of(b"other"), bytes).await, Err(StoreError::Broken)));
    let name = digest.to_string();
    let file = db.config().blob_dir.join(name.get(..2).unwrap()).join(&name);
    std::fs::write(&file, b"damaged").unwrap();
    assert!(matches!(store.get(digest).await, Err(StoreError::Broken)));
}
