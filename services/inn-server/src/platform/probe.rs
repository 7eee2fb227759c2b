//! One question to oneself, over a real connection: does everything answer?

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);
const ONE_TRY: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks `/readyz` until it says 200. `authority` goes into the `Host` header.
pub(super) async fn wait_until_ready(address: SocketAddr, authority: String) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let told = match timeout(ONE_TRY, ask(address, &authority)).await {
            Ok(Ok(told)) => told,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if status(&told) == Some(200) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            let line = told.lines().next().unwrap_or_default();
            bail!("the platform did not become ready within {} seconds; /readyz said last: {line}", PATIENCE.as_secs());
        }
        sleep(PAUSE).await;
    }
}

async fn ask(address: SocketAddr, authority: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: inn\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(16 * 1024).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Of an HTTP/1.1 status line.
fn status(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.1 ")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_line_has_a_status() {
        assert_eq!(status("HTTP/1.1 200 OK\r\n"), Some(200));
        assert_eq!(status("HTTP/1.1 503 Service Unavailable\r\n"), Some(503));
        assert_eq!(status("SSH-2.0-x"), None);
        assert_eq!(status(""), None);
    }

    #[tokio::test]
    async fn it_waits_until_the_answer_is_200() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            for line in ["503 Service Unavailable", "200 OK"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = vec![0; 1024];
                let length = stream.read(&mut asked).await.unwrap();
                assert!(String::from_utf8_lossy(&asked[..length]).contains("Host: inn.test:1\r\n"));
                stream.write_all(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await.unwrap();
            }
        });
        wait_until_ready(address, "inn.test:1".to_owned()).await.unwrap();
        server.await.unwrap();
    }
}
