//! Passwords: argon2id (RFC 9106) in PHC strings. About 17 ms of CPU each way: run it off the workers.

use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use inn_protocol::{Code, Refusal, Result, Violation};

/// Least length, in characters.
pub const MIN_PASSWORD: usize = 10;
/// Greatest length, in characters.
pub const MAX_PASSWORD: usize = 256;

/// Hash of a random password nobody knows. Verifying against it when there is no such person takes the same time as
/// for one there is, so the answer's delay does not tell which addresses have accounts.
pub const DECOY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Is this long enough to be a password, and short enough to hash? Nothing else is asked of it (NIST SP 800-63B 3.1.1.2).
pub fn check_password(password: &str) -> Result<()> {
    let length = password.chars().take(MAX_PASSWORD + 1).count();
    if (MIN_PASSWORD..=MAX_PASSWORD).contains(&length) {
        return Ok(());
    }
    let expected = format!("{MIN_PASSWORD} to {MAX_PASSWORD} characters");
    let message = format!("The password must have {expected}.");
    Err(Refusal::violations(message, vec![Violation::new(Code::InvalidValue, "password", expected)]))
}

/// A PHC string with argon2id, 19 MiB, 2 passes, 1 lane. `salt` must be fresh random bytes.
///
/// Checks the length first, so that a password that cannot be used is never stored.
pub fn hash(password: &str, salt: [u8; 16]) -> Result<String> {
    check_password(password)?;
    hash_of_app(password, salt)
}

/// The same for an account of an app, whose field says how long its passwords are (at most [`MAX_PASSWORD`] characters).
pub fn hash_of_app(password: &str, salt: [u8; 16]) -> Result<String> {
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|_| Refusal::internal())
}

/// Is it the password of this PHC string? Too long a text, or a string that is no argon2id hash, is never right.
pub fn verify(password: &str, phc: &str) -> bool {
    password.len() <= MAX_PASSWORD * 4
        && phc.starts_with("$argon2id$")
        && Argon2::default().verify_password(password.as_bytes(), phc).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_its_password_and_no_other() {
        let phc = hash("correct horse", [7; 16]).unwrap();
        assert!(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{phc}");
        assert!(verify("correct horse", &phc));
        assert!(!verify("correct horsf", &phc));
        assert_ne!(hash("correct horse", [8; 16]).unwrap(), phc, "the salt counts");
    }

    #[test]
    fn the_length_is_counted_in_characters_from_10_to_256() {
        for (password, fine) in [
            ("123456789".to_owned(), false),
            ("1234567890".to_owned(), true),
            ("äöüäöüäöüä".to_owned(), true),
            ("x".repeat(256), true),
            ("x".repeat(257), false),
            (String::new(), false),
        ] {
            assert_eq!(check_password(&password).is_ok(), fine, "{password}");
            assert!(fine || hash(&password, [0; 16]).unwrap_err().violations[0].field == "password");
        }
    }

    #[test]
    fn the_decoy_costs_a_whole_hash_and_nothing_fits_it() {
        assert!(argon2::PasswordHash::new(DECOY).is_ok(), "it must parse, or it would be refused at once");
        let cost = |phc: &str| phc.split('$').nth(3).unwrap().to_owned();
        assert_eq!(cost(DECOY), cost(&hash("correct horse", [7; 16]).unwrap()));
        assert!(!verify("correct horse", DECOY));
    }

    #[test]
    fn broken_hashes_and_endless_passwords_are_never_right() {
        let phc = hash("correct horse", [7; 16]).unwrap();
        for broken in ["", "$argon2id$", "correct horse", "$2b$10$abc"] {
            assert!(!verify("correct horse", broken), "{broken}");
        }
        assert!(!verify(&"x".repeat(100_000), &phc));
    }
}
