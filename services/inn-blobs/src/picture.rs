//! One picture, smaller. Hostile pictures are the normal case: what a file claims about its size is believed only within
//! limits, before anything is unpacked.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::{self, FilterType};
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};
use inn_rules::files::ThumbSpec;

const LONGEST_SIDE: u32 = 20_000;
const MOST_PIXELS: u64 = 50_000_000;
/// For what the decoder itself allocates.
const MOST_MEMORY: u64 = 200 << 20;
const JPEG_QUALITY: u8 = 90;

/// The thumb in the format of the source; of WebP, which is only read, as PNG.
///
/// # Errors
/// What is wrong with the picture, for the log.
pub(crate) fn thumb(source: &[u8], spec: ThumbSpec) -> Result<Vec<u8>, String> {
    let mut reader = ImageReader::new(Cursor::new(source)).with_guessed_format().map_err(|error| error.to_string())?;
    let format = reader.format().ok_or("it is no picture")?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(LONGEST_SIDE);
    limits.max_image_height = Some(LONGEST_SIDE);
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(format!("it has {width} × {height} pixels"));
    }
    let orientation = decoder.orientation().map_err(|error| error.to_string())?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| error.to_string())?;
    // Cameras turn pictures by a note in the file.
    picture.apply_orientation(orientation);
    let layout = spec.layout(picture.width(), picture.height());
    let part = imageops::crop_imm(&picture, layout.left, layout.top, layout.cut_width, layout.cut_height);
    let small = DynamicImage::from(imageops::resize(&*part, layout.width, layout.height, FilterType::Triangle));
    encode(&small, format)
}

fn encode(picture: &DynamicImage, format: ImageFormat) -> Result<Vec<u8>, String> {
    let mut out = Cursor::new(Vec::new());
    let written = match format {
        ImageFormat::Jpeg => {
            picture.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(&mut out, JPEG_QUALITY))
        }
        ImageFormat::Gif => picture.write_to(&mut out, ImageFormat::Gif),
        _ => picture.write_to(&mut out, ImageFormat::Png),
    };
    written.map_err(|error| error.to_string())?;
    Ok(out.into_inner())
}
