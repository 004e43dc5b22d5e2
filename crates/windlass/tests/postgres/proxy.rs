//! A small TCP proxy that cuts its connections when the client sends a given text, or all of them when it is shut.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Proxy {
    pub url: String,
    cut: Cut,
    /// How to cut; it does so once, and then lets everything pass.
    armed: Arc<Mutex<Option<Cut>>>,
    gate: watch::Sender<Gate>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    Shut,
    /// Connections are accepted, and nothing passes.
    Frozen,
}

/// Whether the server still gets what the client sent before the cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    BeforeServer,
    AfterServer,
}

impl Proxy {
    /// A proxy in front of the server of `url` that cuts the connection when the client sends `trigger`.
    pub async fn start(url: &str, trigger: &'static str, cut: Cut) -> Self {
        let mut parsed = url::Url::parse(url).unwrap();
        let server = format!("{}:{}", parsed.host_str().unwrap(), parsed.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        parsed.set_host(Some("127.0.0.1")).unwrap();
        parsed.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        parsed.set_query(Some("sslmode=disable"));
        let armed = Arc::new(Mutex::new(None));
        let is_armed = armed.clone();
        let (gate, _) = watch::channel(Gate::Open);
        let at_gate = gate.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut gate = at_gate.subscribe();
                if *gate.borrow_and_update() == Gate::Shut {
                    continue;
                }
                if *gate.borrow() == Gate::Frozen {
                    let held = async move { drop((gate.wait_for(|gate| *gate != Gate::Frozen).await, client)) };
                    tokio::spawn(held);
                    continue;
                }
                // If the server is missing, the connection ends at once.
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                let passing = pass(client, server, trigger, is_armed.clone(), at_gate.subscribe());
                tokio::spawn(async move {
                    tokio::select! {
                        () = passing => {}
                        _ = gate.wait_for(|gate| *gate == Gate::Shut) => {}
                    }
                });
            }
        });
        Self { url: parsed.to_string(), cut, armed, gate }
    }

    /// Cuts where the trigger is next.
    pub fn arm(&self) {
        self.arm_for(self.cut);
    }

    /// The same, but cuts in this way.
    #[allow(dead_code)] // Not every test that shares this file does.
    pub fn arm_for(&self, cut: Cut) {
        *self.armed.lock().unwrap() = Some(cut);
    }

    pub fn has_cut(&self) -> bool {
        self.armed.lock().unwrap().is_none()
    }

    /// Cuts every connection, and ends new ones at once until it is opened.
    #[allow(dead_code)] // Not every test that shares this file does.
    pub fn shut(&self) {
        self.gate.send_replace(Gate::Shut);
    }

    /// Lets nothing pass, and cuts nothing: the server seems to be frozen.
    #[allow(dead_code)] // Not every test that shares this file does.
    pub fn freeze(&self) {
        self.gate.send_replace(Gate::Frozen);
    }

    #[allow(dead_code)] // Not every test that shares this file does.
    pub fn open(&self) {
        self.gate.send_replace(Gate::Open);
    }
}

async fn thawed(gate: &mut watch::Receiver<Gate>) {
    // The proxy lives as long as its test.
    let _ = gate.wait_for(|gate| *gate != Gate::Frozen).await;
}

async fn pass(
    client: TcpStream,
    server: TcpStream,
    trigger: &'static str,
    armed: Arc<Mutex<Option<Cut>>>,
    mut gate: watch::Receiver<Gate>,
) {
    let mut back = gate.clone();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let is_cut = AtomicBool::new(false);
    let up = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(count) = from_client.read(&mut buffer).await {
            if count == 0 {
                return;
            }
            thawed(&mut gate).await;
            let is_trigger = buffer[..count].windows(trigger.len()).any(|window| window == trigger.as_bytes());
            let cut = if is_trigger { armed.lock().unwrap().take() } else { None };
            is_cut.store(cut.is_some(), Ordering::SeqCst);
            if cut != Some(Cut::BeforeServer) && to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
            if cut.is_some() {
                // Long enough for the server to act on what it got; the client never gets the answer.
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                return;
            }
        }
    };
    let down = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(count) = from_server.read(&mut buffer).await {
            thawed(&mut back).await;
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
