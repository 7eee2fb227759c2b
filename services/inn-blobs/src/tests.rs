use bytes::Bytes;
use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use inn_ports::{Blobs as _, FileKey, Objects as _, PIECE_BYTES, StoreError};
use inn_protocol::{AppId, Digest, FileId};
use inn_rules::files::ThumbSpec;

use super::*;

fn store(dir: &std::path::Path) -> BlobStore {
    BlobStore::open(BlobConfig::directory(dir, tokio::runtime::Handle::current())).unwrap()
}

fn key() -> FileKey {
    FileKey { app: AppId::new(), file: FileId::new() }
}

fn files_below(dir: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[tokio::test]
async fn blobs_are_kept_by_digest_and_checked_when_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store.check().await.unwrap();
    let bytes = Bytes::from_static(b"bundle");
    let digest = Digest::of(&bytes);
    assert!(store.get(digest).await.unwrap().is_none());
    store.put(digest, bytes.clone()).await.unwrap();
    store.put(digest, bytes.clone()).await.unwrap();
    assert_eq!(store.get(digest).await.unwrap().unwrap(), bytes);
    assert!(matches!(store.put(Digest::of(b"other"), bytes).await, Err(StoreError::Broken)));
    let name = digest.to_string();
    let file = dir.path().join(name.get(..2).unwrap()).join(&name);
    std::fs::write(&file, b"damaged").unwrap();
    assert!(matches!(store.get(digest).await, Err(StoreError::Broken)));
}

#[tokio::test]
async fn a_files_pieces_come_back_and_go_together() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let (one, other) = (key(), key());
    store.put_piece(one, 0, Bytes::from(vec![1; PIECE_BYTES])).await.unwrap();
    store.put_piece(one, 1, Bytes::from_static(b"tail")).await.unwrap();
    store.put_piece(other, 0, Bytes::from_static(b"stays")).await.unwrap();
    assert_eq!(store.piece(one, 0, 5..8).await.unwrap().unwrap().as_ref(), [1, 1, 1]);
    assert_eq!(store.piece(one, 1, 0..4).await.unwrap().unwrap().as_ref(), b"tail");
    assert!(store.piece(one, 2, 0..1).await.unwrap().is_none());
    // What a crash in the middle of a write leaves goes too, though no listing shows it.
    let folder = dir.path().join(files_folder(one));
    std::fs::write(folder.join("1#7"), b"half").unwrap();
    store.remove(one).await.unwrap();
    store.remove(one).await.unwrap();
    assert!(store.piece(one, 0, 0..1).await.unwrap().is_none());
    assert!(store.piece(other, 0, 0..5).await.unwrap().is_some());
    assert_eq!(files_below(dir.path()), 1);
}

fn files_folder(key: FileKey) -> String {
    let name = key.file.uuid().simple().to_string();
    let spread: String = name.chars().skip(30).collect();
    format!("files/{}/{spread}/{name}", key.app.uuid().simple())
}

fn drawn(width: u32, height: u32, format: ImageFormat) -> Bytes {
    // The left half is red, the right one blue.
    let picture =
        RgbaImage::from_fn(
            width,
            height,
            |x, _| if x * 2 < width { Rgba([255, 0, 0, 255]) } else { Rgba([0, 0, 255, 255]) },
        );
    let picture = DynamicImage::from(picture);
    let picture = if format == ImageFormat::Jpeg { DynamicImage::from(picture.to_rgb8()) } else { picture };
    let mut out = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut out, format).unwrap();
    out.into_inner().into()
}

async fn put_whole(store: &BlobStore, key: FileKey, bytes: &Bytes) -> u64 {
    store.put_piece(key, 0, bytes.clone()).await.unwrap();
    bytes.len() as u64
}

#[tokio::test]
async fn a_thumb_is_made_once_in_the_sources_format() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let cases = [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, "image/gif"),
        (ImageFormat::WebP, "image/png"),
    ];
    for (format, expected) in cases {
        let key = key();
        let size = put_whole(&store, key, &drawn(300, 100, format)).await;
        let spec = ThumbSpec::parse("50x50").unwrap();
        let made = store.thumb(key, size, spec).await.unwrap().unwrap();
        assert_eq!(made.media_type, expected, "{format:?}");
        let opened = image::load_from_memory(&made.bytes).unwrap().to_rgba8();
        assert_eq!(opened.dimensions(), (50, 50));
        // The middle of the picture is where red meets blue.
        assert!(opened.get_pixel(2, 25)[0] > 200 && opened.get_pixel(47, 25)[2] > 200, "{format:?}");
        // The second time it is read: the source is not needed any more.
        std::fs::remove_file(dir.path().join(files_folder(key)).join("0")).unwrap();
        assert_eq!(store.thumb(key, size, spec).await.unwrap().unwrap().bytes, made.bytes);
    }
}

#[tokio::test]
async fn what_is_no_picture_has_no_thumb() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let spec = ThumbSpec::parse("100x100").unwrap();
    let whole = drawn(40, 40, ImageFormat::Png);
    for bytes in [Bytes::from_static(b"%PDF-1.4"), Bytes::from_static(b"\x89PNG\r\n\x1a\n"), whole.slice(..40), bomb()]
    {
        let key = key();
        let size = put_whole(&store, key, &bytes).await;
        assert!(store.thumb(key, size, spec).await.unwrap().is_none(), "{:?}", &bytes[..8]);
        assert!(store.thumb(key, size, spec).await.unwrap().is_none());
    }
    let missing = key();
    assert!(store.thumb(missing, 10, spec).await.unwrap().is_none());
    assert!(store.thumb(missing, 1 << 40, spec).await.unwrap().is_none());
}

/// A small PNG that says it has 60,000 × 60,000 pixels.
fn bomb() -> Bytes {
    let mut bytes = drawn(40, 40, ImageFormat::Png).to_vec();
    bytes[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
    bytes.into()
}

#[test]
fn a_bomb_is_not_unpacked() {
    let spec = ThumbSpec::parse("100x100").unwrap();
    let began = std::time::Instant::now();
    assert!(picture::thumb(&bomb(), spec).is_err());
    assert!(began.elapsed() < std::time::Duration::from_secs(1));
}
