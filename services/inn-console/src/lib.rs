//! inn-console
