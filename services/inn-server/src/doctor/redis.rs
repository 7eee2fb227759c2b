//! Does the Redis server answer? Spoken by hand: four lines of protocol, and no client that would retry.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::Check;

const NAME: &str = "redis";
const PATIENCE: Duration = Duration::from_secs(3);
const ADVICE: &str = "Start it or correct REDIS_URL. Until then several nodes wake each other late (they stay right); one node needs none";

pub(super) async fn check(url: &str) -> Check {
    let Ok(url) = Url::parse(url) else { return Check::fail(NAME, "REDIS_URL cannot be read", ADVICE) };
    let host = url.host_str().unwrap_or("127.0.0.1").trim_matches(['[', ']']).to_owned();
    let port = url.port().unwrap_or(6379);
    let place = format!("{host}:{port}");
    match timeout(PATIENCE, ask(&url, &host, port)).await {
        Err(_) => Check::warn(NAME, format!("{place} does not answer"), ADVICE),
        Ok(Err(error)) => Check::warn(NAME, format!("{place}: {error}"), ADVICE),
        Ok(Ok(answer)) if answer == "+PONG" => Check::ok(NAME, format!("{place} answers")),
        Ok(Ok(answer)) => Check::warn(NAME, format!("{place} answers: {}", answer.trim_start_matches('-')), ADVICE),
    }
}

async fn ask(url: &Url, host: &str, port: u16) -> std::io::Result<String> {
    let mut stream = BufReader::new(TcpStream::connect((host, port)).await?);
    if let Some(password) = url.password() {
        let user = if url.username().is_empty() { "default".to_owned() } else { decoded(url.username()) };
        let answer = tell(&mut stream, &["AUTH", &user, &decoded(password)]).await?;
        if answer != "+OK" {
            return Ok(answer);
        }
    }
    tell(&mut stream, &["PING"]).await
}

async fn tell(stream: &mut BufReader<TcpStream>, words: &[&str]) -> std::io::Result<String> {
    let words_text: String =
        words.iter().flat_map(|word| [format!("${}\r\n", word.len()), format!("{word}\r\n")]).collect();
    let text = format!("*{}\r\n{words_text}", words.len());
    stream.get_mut().write_all(text.as_bytes()).await?;
    let mut line = String::new();
    let mut limited = tokio::io::AsyncReadExt::take(&mut *stream, 512);
    limited.read_line(&mut line).await?;
    Ok(line.trim().to_owned())
}

fn decoded(text: &str) -> String {
    // `form_urlencoded` would also turn a plus into a space, which is a character of passwords.
    let escaped = text.replace('+', "%2B");
    url::form_urlencoded::parse(format!("x={escaped}").as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::super::State;
    use super::*;

    async fn server(answers: &'static [&'static str]) -> (u16, tokio::task::JoinHandle<String>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = String::new();
            for answer in answers {
                let mut bytes = vec![0; 512];
                let length = stream.read(&mut bytes).await.unwrap();
                heard.push_str(&String::from_utf8_lossy(&bytes[..length]));
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            heard
        });
        (port, heard)
    }

    #[tokio::test]
    async fn a_server_that_answers_is_fine() {
        let (port, heard) = server(&["+PONG\r\n"]).await;
        assert_eq!(check(&format!("redis://127.0.0.1:{port}/0")).await.state, State::Ok);
        assert_eq!(heard.await.unwrap(), "*1\r\n$4\r\nPING\r\n");
    }

    #[tokio::test]
    async fn the_password_is_sent_decoded_and_never_shown() {
        let (port, heard) = server(&["-WRONGPASS invalid password\r\n"]).await;
        let told = check(&format!("redis://u:p%40+ss@127.0.0.1:{port}")).await;
        assert!(told.state == State::Warn && told.found.contains("WRONGPASS"), "{told:?}");
        assert!(!format!("{told:?}").contains("p@"), "{told:?}");
        assert_eq!(heard.await.unwrap(), "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$5\r\np@+ss\r\n");
    }

    #[tokio::test]
    async fn a_server_that_is_down_is_told_with_the_remedy() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let told = check(&format!("redis://127.0.0.1:{port}")).await;
        assert!(told.state == State::Warn && told.advice.unwrap().contains("REDIS_URL"));
    }
}
