//! Small pictures of pictures: which ones there are and what part of the original they show.

use inn_protocol::model::{Field, FieldKind};

/// Always there, whatever the field declares.
const ALWAYS: &str = "100x100";
/// Longest side of a thumb; a larger one is not made.
const LONGEST_SIDE: u32 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// Fills the box; what sticks out is cut off evenly.
    Center,
    /// Fills the box; cut off below.
    Top,
    /// Fills the box; cut off above.
    Bottom,
    /// Whole picture inside the box, never enlarged.
    Fit,
    /// One side given, the other one follows.
    Scale,
}

/// One size of thumbs: `WxH`, `WxHt`, `WxHb`, `WxHf`, `0xH`, `Wx0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThumbSpec {
    width: u32,
    height: u32,
    kind: Kind,
}

/// How to make a thumb: cut a part out of the picture, then bring it to a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub left: u32,
    pub top: u32,
    pub cut_width: u32,
    pub cut_height: u32,
    pub width: u32,
    pub height: u32,
}

impl ThumbSpec {
    /// The thumb a caller asks for, when the field declares it.
    pub fn declared(field: &Field, asked: &str) -> Option<Self> {
        let FieldKind::File { thumbs, .. } = &field.kind else { return None };
        (asked == ALWAYS || thumbs.iter().any(|thumb| thumb == asked)).then(|| Self::parse(asked)).flatten()
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (sizes, kind) = match text.as_bytes().last()? {
            b't' => (text.strip_suffix('t')?, Kind::Top),
            b'b' => (text.strip_suffix('b')?, Kind::Bottom),
            b'f' => (text.strip_suffix('f')?, Kind::Fit),
            _ => (text, Kind::Center),
        };
        let (width, height) = sizes.split_once('x')?;
        let (width, height) = (side(width)?, side(height)?);
        let kind = if width == 0 || height == 0 { Kind::Scale } else { kind };
        (width.max(height) > 0).then_some(Self { width, height, kind })
    }

    /// A short word that names this size in storage.
    pub fn mark(&self) -> String {
        let kind = match self.kind {
            Kind::Center | Kind::Scale => "",
            Kind::Top => "t",
            Kind::Bottom => "b",
            Kind::Fit => "f",
        };
        format!("{}x{}{kind}", self.width, self.height)
    }

    /// The part of a picture of this size, and the size it is brought to. Nothing comes out empty.
    pub fn layout(&self, width: u32, height: u32) -> Layout {
        let (width, height) = (width.max(1), height.max(1));
        let whole = |to_width: u64, to_height: u64| Layout {
            left: 0,
            top: 0,
            cut_width: width,
            cut_height: height,
            width: bounded(to_width),
            height: bounded(to_height),
        };
        let (w, h) = (u64::from(width), u64::from(height));
        let (to_w, to_h) = (u64::from(self.width), u64::from(self.height));
        match self.kind {
            Kind::Scale if self.width == 0 => whole(rounded(w * to_h, h), to_h),
            Kind::Scale => whole(to_w, rounded(h * to_w, w)),
            Kind::Fit if w <= to_w && h <= to_h => whole(w, h),
            // The side that is longer in proportion decides.
            Kind::Fit if w * to_h > h * to_w => whole(to_w, rounded(h * to_w, w)),
            Kind::Fit => whole(rounded(w * to_h, h), to_h),
            Kind::Center | Kind::Top | Kind::Bottom => {
                let (cut_w, cut_h) = if w * to_h > h * to_w {
                    (rounded(h * to_w, to_h).min(w), h)
                } else {
                    (w, rounded(w * to_h, to_w).min(h))
                };
                let top = match self.kind {
                    Kind::Top => 0,
                    Kind::Bottom => h - cut_h,
                    _ => (h - cut_h) / 2,
                };
                Layout {
                    left: narrow((w - cut_w) / 2),
                    top: narrow(top),
                    cut_width: narrow(cut_w),
                    cut_height: narrow(cut_h),
                    width: bounded(to_w),
                    height: bounded(to_h),
                }
            }
        }
    }
}

/// Types thumbs are made of.
pub fn is_image(media_type: &str) -> bool {
    matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

fn side(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|side| digits && *side <= LONGEST_SIDE)
}

fn rounded(dividend: u64, divisor: u64) -> u64 {
    ((dividend + divisor / 2) / divisor.max(1)).max(1)
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// A very long strip must not become a very long thumb.
fn bounded(value: u64) -> u32 {
    narrow(value).clamp(1, LONGEST_SIDE)
}
