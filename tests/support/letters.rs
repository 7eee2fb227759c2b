//! A mail server of a test's own, which takes every letter and keeps what it was told.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What clients said, one text a letter.
pub type Letters = Arc<Mutex<Vec<String>>>;

/// Its port, and the letters it will get.
pub async fn mail_server() -> (u16, Letters) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let letters = Letters::default();
    let kept = Arc::clone(&letters);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(listen(socket, Arc::clone(&kept)));
        }
    });
    (port, letters)
}

async fn listen(mut socket: TcpStream, letters: Letters) -> std::io::Result<()> {
    let (reader, mut writer) = socket.split();
    let mut lines = BufReader::new(reader).lines();
    let (mut heard, mut in_letter) = (String::new(), false);
    writer.write_all(b"220 test\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        heard.push_str(&line);
        heard.push('\n');
        if in_letter && line != "." {
            continue;
        }
        let answer = match line.split(' ').next().unwrap_or_default() {
            "." => {
                in_letter = false;
                letters.lock().expect("no panic").push(std::mem::take(&mut heard));
                "250 taken"
            }
            "DATA" => {
                in_letter = true;
                "354 go on"
            }
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        writer.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}
