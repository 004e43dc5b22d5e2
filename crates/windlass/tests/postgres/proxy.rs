//! A small TCP proxy that cuts its connections when the client sends a given text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Proxy {
    pub url: String,
    /// Whether to cut; it does so once, and then lets everything pass.
    armed: Arc<AtomicBool>,
}

/// Whether the server still gets what the client sent before the cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    BeforeServer,
    AfterServer,
}

impl Proxy {
    /// A proxy before the server of `url` that cuts where `trigger` is in what the client sends.
    pub async fn start(url: &str, trigger: &'static str, cut: Cut) -> Self {
        let mut parsed = url::Url::parse(url).unwrap();
        let server = format!("{}:{}", parsed.host_str().unwrap(), parsed.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        parsed.set_host(Some("127.0.0.1")).unwrap();
        parsed.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        parsed.set_query(Some("sslmode=disable"));
        let armed = Arc::new(AtomicBool::new(false));
        let is_armed = armed.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass(client, server, trigger, cut, is_armed.clone()));
            }
        });
        Self { url: parsed.to_string(), armed }
    }

    pub fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    pub fn has_cut(&self) -> bool {
        !self.armed.load(Ordering::SeqCst)
    }
}

async fn pass(client: TcpStream, server: TcpStream, trigger: &'static str, cut: Cut, armed: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let is_cut = AtomicBool::new(false);
    let up = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(count) = from_client.read(&mut buffer).await {
            if count == 0 {
                return;
            }
            let is_trigger = buffer[..count].windows(trigger.len()).any(|window| window == trigger.as_bytes());
            let cuts = is_trigger && armed.swap(false, Ordering::SeqCst);
            is_cut.store(cuts, Ordering::SeqCst);
            if (!cuts || cut == Cut::AfterServer) && to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
            if cuts {
                // Long enough for the server to act on what it got; the client never hears of it.
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                return;
            }
        }
    };
    let down = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(count) = from_server.read(&mut buffer).await {
            if is_cut.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if count == 0 || to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
