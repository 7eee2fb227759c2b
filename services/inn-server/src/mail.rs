//! The mail server the settings name.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use inn_mail::{Credentials, SmtpConfig};
use inn_ports::Mail;

use crate::config::{MailSettings, SettingError};

/// For connecting, and for every answer of the server.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What is half set is refused: mail that silently goes nowhere is worse than none.
pub(crate) fn open(settings: &MailSettings, loopback: bool) -> anyhow::Result<Arc<dyn Mail>> {
    Ok(inn_mail::choose(smtp(settings)?.as_ref(), loopback)?)
}

fn smtp(settings: &MailSettings) -> Result<Option<SmtpConfig>, SettingError> {
    let Some(host) = &settings.smtp_host else { return Ok(None) };
    let refused = |what: &str| SettingError(format!("INN_SMTP_HOST is set, and {what}"));
    let from =
        settings.from.clone().ok_or_else(|| refused("INN_MAIL_FROM is not: mails need an address they come from"))?;
    let credentials = match (&settings.smtp_user, &settings.smtp_password_file) {
        (None, None) => None,
        (Some(user), Some(file)) => {
            let text = fs::read_to_string(file).map_err(|error| {
                SettingError(format!("INN_SMTP_PASSWORD_FILE: {} cannot be read: {error}", file.display()))
            })?;
            let password = text.trim_end_matches(['\n', '\r']).to_owned();
            if password.is_empty() || password.contains('\n') {
                let what =
                    format!("INN_SMTP_PASSWORD_FILE: {} must hold the password, alone on one line", file.display());
                return Err(SettingError(what));
            }
            Some(Credentials { user: user.clone(), password })
        }
        _ => return Err(refused("of INN_SMTP_USER and INN_SMTP_PASSWORD_FILE only one: signing in needs both")),
    };
    Ok(Some(SmtpConfig {
        host: host.clone(),
        port: settings.smtp_port,
        tls: settings.smtp_tls,
        credentials,
        from,
        timeout: TIMEOUT,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn settings() -> MailSettings {
        let host = Some("mail.example".to_owned());
        MailSettings { smtp_host: host, from: Some("inn@example.org".to_owned()), ..Settings::default().mail }
    }

    #[test]
    fn a_host_alone_is_not_enough_and_half_of_the_credentials_neither() {
        let refused = |settings: MailSettings| smtp(&settings).err().unwrap().0;
        assert!(refused(MailSettings { from: None, ..settings() }).contains("INN_MAIL_FROM"));
        let user = Some("inn".to_owned());
        assert!(refused(MailSettings { smtp_user: user.clone(), ..settings() }).contains("needs both"));
        let file = Some("/nowhere/password".into());
        assert!(refused(MailSettings { smtp_password_file: file.clone(), ..settings() }).contains("needs both"));
        let missing = refused(MailSettings { smtp_user: user, smtp_password_file: file, ..settings() });
        assert!(missing.contains("/nowhere/password"), "{missing}");
    }

    #[test]
    fn every_setting_reaches_the_server() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "s3cret\n").unwrap();
        let given = MailSettings {
            smtp_port: 2525,
            smtp_tls: inn_mail::Tls::Implicit,
            smtp_user: Some("inn".to_owned()),
            smtp_password_file: Some(file.path().to_owned()),
            ..settings()
        };
        let config = smtp(&given).unwrap().unwrap();
        assert_eq!((config.host.as_str(), config.port, config.tls), ("mail.example", 2525, inn_mail::Tls::Implicit));
        assert_eq!(config.from, "inn@example.org");
        let credentials = config.credentials.unwrap();
        assert_eq!((credentials.user.as_str(), credentials.password.as_str()), ("inn", "s3cret"));
        fs::write(file.path(), "").unwrap();
        assert!(smtp(&given).err().unwrap().0.contains("alone on one line"));
    }

    #[test]
    fn without_a_host_mail_is_shown_on_loopback_and_cannot_leave_elsewhere() {
        let nothing = Settings::default().mail;
        assert!(open(&nothing, true).unwrap().is_ready());
        assert!(!open(&nothing, false).unwrap().is_ready());
        assert!(open(&settings(), false).unwrap().is_ready());
    }
}
