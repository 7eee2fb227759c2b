//! Time zones by their IANA names. An offset is no zone: it is wrong for half of the year.

use chrono_tz::{TZ_VARIANTS, Tz};

/// Reads an IANA name, as it is spelled there.
pub(super) fn parse(text: &str) -> Result<Tz, String> {
    if let Ok(zone) = text.parse() {
        return Ok(zone);
    }
    if let Some(near) = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(text)) {
        return Err(format!("an IANA time zone as it is spelled: {}", near.name()));
    }
    Err("an IANA time zone such as Europe/Berlin, never an offset: `UTC` when none is meant".to_owned())
}
