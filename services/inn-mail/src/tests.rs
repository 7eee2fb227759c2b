use std::time::Duration;

use inn_ports::{MailError, Message};
use inn_protocol::{AppId, TenantId};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use super::*;
use crate::text::plain;

fn message(to: &str) -> Message {
    Message {
        tenant: TenantId::PLATFORM,
        app: AppId::new(),
        app_name: "Böard\r\nBcc: evil@example.org".to_owned(),
        to: to.to_owned(),
        subject: "Réset\r\nBcc: evil@example.org".to_owned(),
        html: "<p>Hello <b>you</b>,</p><p><a href=\"https://app.example/_/#/x?a=1&amp;b=2\">Reset</a></p>".to_owned(),
    }
}

fn config(port: u16) -> SmtpConfig {
    SmtpConfig {
        host: "127.0.0.1".to_owned(),
        port,
        tls: Tls::None,
        credentials: None,
        from: "inn@example.org".to_owned(),
        timeout: Duration::from_secs(5),
    }
}

/// A mail server for one connection: answers `RCPT` as told, and gives back everything it was sent.
async fn server(rcpt: &'static str) -> (u16, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let (reader, mut writer) = socket.split();
        let mut lines = BufReader::new(reader).lines();
        let mut heard = String::new();
        writer.write_all(b"220 test\r\n").await.unwrap();
        let mut in_data = false;
        while let Ok(Some(line)) = lines.next_line().await {
            heard.push_str(&line);
            heard.push('\n');
            let answer = match line.split(' ').next().unwrap_or_default() {
                _ if in_data && line != "." => continue,
                "." => {
                    in_data = false;
                    "250 taken"
                }
                "EHLO" => "250-test\r\n250 AUTH PLAIN",
                "AUTH" => "235 welcome",
                "RCPT" => rcpt,
                "DATA" => {
                    in_data = true;
                    "354 go on"
                }
                "QUIT" => {
                    writer.write_all(b"221 bye\r\n").await.unwrap();
                    break;
                }
                _ => "250 ok",
            };
            writer.write_all(format!("{answer}\r\n").as_bytes()).await.unwrap();
            if answer == "250 taken" {
                break;
            }
        }
        heard
    });
    (port, task)
}

#[tokio::test]
async fn a_mail_is_given_to_the_server_whole_and_nothing_slips_into_its_header() {
    let (port, server) = server("250 ok").await;
    let smtp = Smtp::new(&config(port)).unwrap();
    smtp.send(&message("ada@example.org")).await.unwrap();
    let heard = server.await.unwrap();
    assert!(heard.contains("MAIL FROM:<inn@example.org>") && heard.contains("RCPT TO:<ada@example.org>"), "{heard}");
    assert!(heard.contains("Auto-Submitted: auto-generated"), "{heard}");
    assert!(heard.contains("multipart/alternative") && heard.contains("text/plain") && heard.contains("text/html"));
    assert!(!heard.lines().any(|line| line.starts_with("Bcc")), "{heard}");
    assert_eq!(heard.matches("RCPT").count(), 1, "{heard}");
}

#[tokio::test]
async fn credentials_are_shown_to_the_server_and_to_nobody_else() {
    let (port, server) = server("250 ok").await;
    let credentials = Some(Credentials { user: "inn".to_owned(), password: "secret".to_owned() });
    let smtp = Smtp::new(&SmtpConfig { credentials, ..config(port) }).unwrap();
    smtp.send(&message("ada@example.org")).await.unwrap();
    assert!(server.await.unwrap().contains("AUTH PLAIN AGlubgBzZWNyZXQ="));
}

#[tokio::test]
async fn a_server_that_says_never_and_one_that_says_later_are_told_apart() {
    let (port, _server) = server("550 no such person").await;
    let refused = Smtp::new(&config(port)).unwrap().send(&message("ada@example.org")).await;
    assert!(
        matches!(&refused, Err(MailError::Never(what)) if what.contains("550") && !what.contains("person")),
        "{refused:?}"
    );
    let (port, _server) = server("451 try again").await;
    let refused = Smtp::new(&config(port)).unwrap().send(&message("ada@example.org")).await;
    assert!(matches!(&refused, Err(MailError::Later(_))), "{refused:?}");
}

#[tokio::test]
async fn nobody_listening_is_later_and_an_address_that_is_none_is_never() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let smtp = Smtp::new(&config(port)).unwrap();
    assert!(matches!(smtp.send(&message("ada@example.org")).await, Err(MailError::Later(_))));
    for wrong in ["", "ada", "ada@", "a b@example.org", "ada@example.org\r\nRCPT TO:<x@example.org>"] {
        assert!(matches!(smtp.send(&message(wrong)).await, Err(MailError::Never(_))), "{wrong}");
    }
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_when_it_was_asked_for() {
    let (port, _server) = server("250 ok").await;
    let smtp = Smtp::new(&SmtpConfig { tls: Tls::StartTls, ..config(port) }).unwrap();
    assert!(smtp.send(&message("ada@example.org")).await.is_err());
}

#[test]
fn an_address_nobody_could_send_from_is_refused_at_start() {
    let wrong = SmtpConfig { from: "nobody".to_owned(), ..config(25) };
    assert_eq!(Smtp::new(&wrong).err(), Some(SetupError::From("nobody".to_owned())));
}

#[tokio::test]
async fn in_development_each_tenant_is_shown_its_own_mails_newest_first() {
    let mail = choose(None, true).unwrap();
    let other = TenantId::new();
    for (tenant, subject) in [(TenantId::PLATFORM, "one"), (other, "two"), (TenantId::PLATFORM, "three")] {
        mail.send(&Message { tenant, subject: subject.to_owned(), ..message("ada@example.org") }).await.unwrap();
    }
    let subjects =
        |tenant| -> Vec<String> { mail.shown(tenant).unwrap().into_iter().map(|mail| mail.message.subject).collect() };
    assert_eq!(subjects(TenantId::PLATFORM), ["three", "one"]);
    assert_eq!(subjects(other), ["two"]);
    for _ in 0..300 {
        mail.send(&message("ada@example.org")).await.unwrap();
    }
    assert_eq!(mail.shown(TenantId::PLATFORM).unwrap().len(), 200, "memory has an end");
}

#[tokio::test]
async fn off_loopback_without_a_server_mail_cannot_leave() {
    let mail = choose(None, false).unwrap();
    assert!(!mail.is_ready() && mail.shown(TenantId::PLATFORM).is_none());
    assert!(mail.send(&message("ada@example.org")).await.is_err());
    assert!(choose(Some(&config(25)), true).unwrap().shown(TenantId::PLATFORM).is_none());
}

#[test]
fn html_is_told_in_words_with_its_links() {
    let text = plain(&message("x").html);
    assert_eq!(text, "Hello you,\n\nReset (https://app.example/_/#/x?a=1&b=2)");
    assert_eq!(plain("a<br>b < c"), "a\nb < c");
    assert_eq!(plain("<style>p { }</style><p>x &lt;y&gt;</p>"), "x <y>");
    assert_eq!(plain(""), "");
}

#[test]
fn a_server_may_be_named_and_forgotten_where_no_runtime_is() {
    drop(Smtp::new(&config(25)).unwrap());
}
