//! The same files downloaded from a real PocketBase and from us: parts of them, and thumbs in every mode.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, RgbImage};
use inn_tests::drawer::{self, Form};
use regex::Regex;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::compared::Both;

/// Status, headers and bytes of one answer.
struct Served {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Served {
    fn header(&self, name: &str) -> String {
        self.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }
}

impl Both {
    /// The file of that field of each side's record.
    async fn served(&self, records: &[(u16, Value); 2], field: &str, query: &str, range: Option<&str>) -> [Served; 2] {
        let http = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        let [theirs, ours] = records.each_ref().map(|(_, record)| {
            let name = record[field].as_array().map_or(&record[field], |names| &names[0]);
            format!("{}{query}", drawer::own(record, name))
        });
        let mut asked = http.get(format!("{}{theirs}", self.theirs.url()));
        let mut call = self.ours.door().get(ours).on_app(drawer::SLUG);
        if let Some(range) = range {
            asked = asked.header("range", range);
            call = call.header("range", range);
        }
        let answer = asked.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let theirs = Served { status, headers, body: answer.bytes().await.unwrap().to_vec() };
        let reply = call.send().await;
        [theirs, Served { status: reply.status, headers: reply.headers.clone(), body: reply.body }]
    }
}

#[tokio::test]
async fn parts_of_a_file_are_pocketbases() {
    let Some(mut both) = Both::start().await else { return };
    let records = both.create("a file", &Form::new().file("one", "t.txt", b"hello text file")).await;
    let boundary = Regex::new("boundary=([0-9a-f]+)").unwrap();
    for range in [
        "bytes=0-1,3-4",
        "bytes=0-1, 3-4 ,6-",
        "bytes=0-4,2-6",
        "bytes=0-0,-1",
        "bytes=14-,0-13",
        "bytes=0-7,8-14",
        "bytes=0-14,0-14",
        "bytes=0-9,0-9",
        "bytes=0-1,100-200",
        "bytes=100-200,300-",
        "bytes=,0-1",
        "bytes=,",
        "bytes=",
        "bytes=0-4",
        "bytes=0-14",
        "bytes= 0 - 1",
        "bytes=-20",
        "bytes=0-1,x",
        "bytes=5-2",
        "bytes=1",
        "Bytes=0-1",
    ] {
        let served = both.served(&records, "one", "", Some(range)).await;
        // A boundary is made up anew each time; how long the answer is follows from it.
        let shown = served.each_ref().map(|served| {
            assert_eq!(served.header("content-length"), served.body.len().to_string(), "{range}");
            let media_type = served.header("content-type");
            let body = String::from_utf8(served.body.clone()).unwrap();
            let made_up = boundary.captures(&media_type).map(|found| found[1].to_owned());
            let settled = |text: &str| made_up.as_ref().map_or(text.to_owned(), |made_up| text.replace(made_up, "B"));
            match served.status {
                416 => "416".to_owned(),
                status => {
                    format!("{status} {} {} {}", settled(&media_type), served.header("content-range"), settled(&body))
                }
            }
        });
        if shown[0] != shown[1] {
            both.differences.push(format!("{range}\n  theirs {:?}\n  ours   {:?}", shown[0], shown[1]));
        }
    }
    both.end();
}

/// Blocks of which each has a colour of its own, so that one sees which part of a picture is shown.
fn blocks(width: u32, height: u32) -> RgbImage {
    let step = |at: u32, of: u32| u8::try_from(at * 5 / of.max(1) * 50).unwrap();
    RgbImage::from_fn(width, height, |x, y| image::Rgb([step(x, width), step(y, height), 128]))
}

fn encoded(picture: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    match format {
        ImageFormat::Jpeg => picture.write_with_encoder(JpegEncoder::new_with_quality(&mut out, 60)).unwrap(),
        _ => picture.write_to(&mut out, format).unwrap(),
    }
    out.into_inner()
}

/// Mean difference of two pictures of one size, 0 to 255.
fn apart(one: &RgbImage, two: &RgbImage) -> f64 {
    let pairs = one.as_raw().iter().zip(two.as_raw());
    let sum: u64 = pairs.map(|(one, two)| u64::from(one.abs_diff(*two))).sum();
    #[allow(clippy::cast_precision_loss)]
    let mean = sum as f64 / one.as_raw().len() as f64;
    mean
}

/// The other scaler rounds otherwise, most in the smallest thumbs; the colours of a GIF are chosen otherwise.
fn tolerated(format: ImageFormat) -> f64 {
    if format == ImageFormat::Gif { 20.0 } else { 9.0 }
}

#[test]
fn the_wrong_part_of_a_picture_is_further_apart_than_is_tolerated() {
    let tall = blocks(100, 200);
    let cut = |top| image::imageops::crop_imm(&tall, 0, top, 100, 50).to_image();
    for (one, two) in [(0, 75), (75, 150), (0, 150)] {
        assert!(apart(&cut(one), &cut(two)) > 20.0, "{one} {two}: {}", apart(&cut(one), &cut(two)));
    }
}

#[tokio::test]
async fn thumbs_are_pocketbases_in_every_mode() {
    let Some(mut both) = Both::start().await else { return };
    for (width, height, format) in [
        (200, 100, ImageFormat::Png),
        (100, 200, ImageFormat::Png),
        (20, 10, ImageFormat::Png),
        (33, 77, ImageFormat::Png),
        (64, 64, ImageFormat::Jpeg),
        (30, 50, ImageFormat::Gif),
        (50, 30, ImageFormat::WebP),
    ] {
        let picture = encoded(&blocks(width, height), format);
        let extension = format.extensions_str()[0];
        let what = format!("{width}x{height} {extension}");
        let records = both.create(&what, &Form::new().file("many", &format!("pic.{extension}"), &picture)).await;
        for asked in [
            "100x100", "100x50", "100x50t", "100x50b", "100x50f", "0x30", "30x0", "7x3", "300x300f", "100x100t",
            "77x77", "x", "",
        ] {
            let served = both.served(&records, "many", &format!("?thumb={asked}"), None).await;
            let shown = served.each_ref().map(|served| {
                let named = served.header("content-disposition");
                let named = named.split("_pic").next().unwrap().split("pic_").next().unwrap().to_owned();
                (served.status, served.header("content-type"), named)
            });
            if shown[0] != shown[1] {
                both.differences.push(format!("{what} {asked}: {:?} became {:?}", shown[0], shown[1]));
                continue;
            }
            let [theirs, ours] = served.map(|served| image::load_from_memory(&served.body).unwrap().to_rgb8());
            if theirs.dimensions() != ours.dimensions() || apart(&theirs, &ours) > tolerated(format) {
                let found = (theirs.dimensions(), ours.dimensions());
                let apart = if found.0 == found.1 { apart(&theirs, &ours) } else { f64::INFINITY };
                both.differences.push(format!("{what} {asked}: {found:?}, {apart:.1} apart"));
            }
        }
    }
    both.end();
}
