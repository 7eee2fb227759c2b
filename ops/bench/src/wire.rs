//! One kept-alive HTTP connection, with as little of the client's own work as possible.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use inn_client::Prepared;
use serde_json::Value;
use tokio::net::TcpStream;

/// A request ready to be written, signature and all.
pub(crate) type Ready = Request<Full<Bytes>>;

pub(crate) struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("{address} cannot be reached"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with its socket; what went wrong on it is told by `send`.
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Sends and reads the answer to its end, whatever its status.
    pub(crate) async fn send(&mut self, request: Ready) -> anyhow::Result<(u16, Bytes)> {
        self.0.ready().await.context("the server closed the connection")?;
        let answer = self.0.send_request(request).await?;
        let status = answer.status().as_u16();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    /// As [`Self::send`]; anything but 2xx is an error with the beginning of the answer in it.
    pub(crate) async fn send_ok(&mut self, request: Ready) -> anyhow::Result<Bytes> {
        let (status, body) = self.send(request).await?;
        if !(200..300).contains(&status) {
            let text: String = String::from_utf8_lossy(&body).chars().take(300).collect();
            bail!("status {status}: {text}");
        }
        Ok(body)
    }

    pub(crate) async fn json(&mut self, request: Ready) -> anyhow::Result<Value> {
        let body = self.send_ok(request).await?;
        if body.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_slice(&body)?) }
    }
}

/// A request of our client's making, for a connection that is already there.
pub(crate) fn ready(prepared: &Prepared) -> anyhow::Result<Ready> {
    let request = prepared.request();
    let url = request.url();
    let uri = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let body = request.body().and_then(|body| body.as_bytes()).map(Bytes::copy_from_slice).unwrap_or_default();
    let mut ready = Request::builder().method(request.method().clone()).uri(uri).body(Full::new(body))?;
    ready.headers_mut().clone_from(request.headers());
    ready.headers_mut().insert(HOST, HeaderValue::try_from(url.authority())?);
    Ok(ready)
}
