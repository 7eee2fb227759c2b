//! An app that keeps files, forms to fill it, and pictures to put in.

use reqwest::Method;
use serde_json::{Value, json};

use crate::bundle::Files;
use crate::call::{Call, Door};

pub const SLUG: &str = "drawer";

/// Documents with files of every kind of field. `mode` is the manifest's `authMode`.
pub fn files(mode: &str) -> Files {
    let manifest = json!({
        "id": "test-drawer", "name": "Drawer", "description": "Keeps files.", "version": "1.0.0", "livingUIVersion": 2,
        "createdAt": "2026-11-30T00:00:00Z", "authMode": mode, "port": 3100, "pbVersion": "0.39.7",
        "pipeline": {"install": "", "build": "", "start": "", "health": "/api/health"},
    });
    let id = json!({"id": "f_id", "name": "id", "type": "text", "system": true, "required": true, "primaryKey": true,
        "min": 15, "max": 15, "pattern": "^[a-z0-9]+$", "autogeneratePattern": "[a-z0-9]{15}"});
    let mine = "id = @request.auth.id";
    let schema = json!([
        {"id": "c_docs", "name": "docs", "type": "base",
            "listRule": "", "viewRule": "title != 'secret'", "createRule": "", "updateRule": "", "deleteRule": "",
            "indexes": ["CREATE UNIQUE INDEX idx_code ON docs (code) WHERE code != ''"],
            "fields": [
                id,
                {"id": "f_title", "name": "title", "type": "text"},
                {"id": "f_code", "name": "code", "type": "text"},
                {"id": "f_num", "name": "num", "type": "number"},
                {"id": "f_meta", "name": "meta", "type": "json"},
                {"id": "f_tags", "name": "tags", "type": "select", "maxSelect": 3, "values": ["a", "b", "1"]},
                {"id": "f_one", "name": "one", "type": "file", "maxSelect": 1, "maxSize": 20_000_000},
                {"id": "f_many", "name": "many", "type": "file", "maxSelect": 3, "maxSize": 2000,
                    "thumbs": ["100x50", "100x50t", "100x50b", "100x50f", "0x30", "30x0", "7x3", "300x300f"]},
                {"id": "f_pdf", "name": "pdf", "type": "file", "maxSelect": 1, "mimeTypes": ["application/pdf", "text/plain"]},
                {"id": "f_safe", "name": "safe", "type": "file", "maxSelect": 1, "protected": true},
            ]},
        {"id": "c_shelf", "name": "shelf", "type": "view", "listRule": "", "viewRule": "title != 'hidden here'",
            "viewQuery": "SELECT id, title, one, many, safe FROM docs WHERE code != 'not shown'"},
        {"id": "c_users", "name": "users", "type": "auth", "listRule": mine, "viewRule": mine, "createRule": "",
            "updateRule": mine, "deleteRule": mine,
            "fields": [{"id": "f_avatar", "name": "avatar", "type": "file", "maxSelect": 1, "mimeTypes": ["image/png"], "protected": true}]},
    ]);
    let text = |value: &Value| value.to_string().into_bytes();
    Files::from([
        ("manifest.json".to_owned(), text(&manifest)),
        ("operations.json".to_owned(), text(&json!({"opsVersion": 1, "operations": []}))),
        ("pb/pb_schema.json".to_owned(), text(&schema)),
    ])
}

/// Path of the documents on the platform's face.
pub fn docs() -> String {
    format!("/apps/{SLUG}/api/collections/docs/records")
}

pub fn doc(id: &str) -> String {
    format!("{}/{id}", docs())
}

/// Path of a file on the platform's face; on the app's own origin without its first two parts.
pub fn file(record: &Value, name: &Value) -> String {
    format!("/apps/{SLUG}{}", own(record, name))
}

/// Path of a file on the app's own origin.
pub fn own(record: &Value, name: &Value) -> String {
    let (id, name) = (record["id"].as_str().expect("an id"), name.as_str().expect("a name"));
    format!("/api/files/docs/{id}/{name}")
}

/// A `multipart/form-data` body.
#[derive(Clone)]
pub struct Form {
    boundary: String,
    body: Vec<u8>,
}

impl Default for Form {
    fn default() -> Self {
        Self::new()
    }
}

impl Form {
    /// With a boundary nobody used before, as browsers make them.
    pub fn new() -> Self {
        Self { boundary: format!("----form{:032x}", rand::random::<u128>()), body: Vec::new() }
    }

    pub fn text(mut self, name: &str, value: &str) -> Self {
        let head = format!("--{}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n", self.boundary);
        self.body.extend_from_slice(head.as_bytes());
        self
    }

    pub fn file(mut self, name: &str, file_name: &str, content: &[u8]) -> Self {
        let head = format!(
            "--{}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\r\nContent-Type: application/x-lie\r\n\r\n",
            self.boundary
        );
        self.body.extend_from_slice(head.as_bytes());
        self.body.extend_from_slice(content);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    pub fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    pub fn body(&self) -> Vec<u8> {
        let mut body = self.body.clone();
        body.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        body
    }

    pub fn call(&self, door: &Door, method: Method, target: impl Into<String>) -> Call {
        door.call(method, target).header("content-type", self.content_type()).body(self.body())
    }

    pub fn create(&self, door: &Door) -> Call {
        self.call(door, Method::POST, docs())
    }

    pub fn update(&self, door: &Door, id: &str) -> Call {
        self.call(door, Method::PATCH, doc(id))
    }
}

/// A PNG: left half red, right half blue.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    let picture = image::RgbImage::from_fn(width, height, |x, _| {
        image::Rgb(if x * 2 < width { [255, 0, 0] } else { [0, 0, 255] })
    });
    let mut out = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut out, image::ImageFormat::Png).expect("a picture in memory");
    out.into_inner()
}
