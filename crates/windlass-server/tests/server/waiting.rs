//! A database that is not there: when a node starts, and later.

use super::node::{Node, Place, eventually};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A way to the server that can be closed.
struct Way {
    address: SocketAddr,
    is_open: Arc<AtomicBool>,
}

impl Way {
    fn to(url: &str) -> (Self, String) {
        let mut parsed = url::Url::parse(url).unwrap();
        let server = format!("{}:{}", parsed.host_str().unwrap(), parsed.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_open = Arc::new(AtomicBool::new(false));
        let open = is_open.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if open.load(Ordering::SeqCst) {
                    let Ok(server) = TcpStream::connect(&server) else { continue };
                    pass(&client, &server, &open);
                    pass(&server, &client, &open);
                }
            }
        });
        parsed.set_host(Some("127.0.0.1")).unwrap();
        parsed.set_port(Some(address.port())).unwrap();
        parsed.set_query(Some("sslmode=disable"));
        (Self { address, is_open }, parsed.to_string())
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
    }
}

fn pass(from: &TcpStream, to: &TcpStream, is_open: &Arc<AtomicBool>) {
    let (mut from, mut to, is_open) = (from.try_clone().unwrap(), to.try_clone().unwrap(), is_open.clone());
    from.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while is_open.load(Ordering::SeqCst) {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) if to.write_all(&buffer[..count]).is_err() => break,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        // The other side may have ended it.
        let _ = from.shutdown(std::net::Shutdown::Both);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

fn url() -> String {
    std::env::var("WINDLASS_TEST_POSTGRES").expect("these tests need a Postgres: scripts/with-postgres")
}

#[test]
fn a_node_waits_for_its_database_alive_and_not_ready_unless_it_shall_not() {
    let (way, store) = Way::to(&url());
    let place = Place::at(&store);
    let mut command = place.command(&["serve", "--no-wait", "--listen", "127.0.0.1:0"]);
    assert!(!command.output().unwrap().status.success(), "--no-wait");

    let node = place.serve_until(" answers health checks", &[]);
    node.client.get("/healthz").is(200);
    node.client.get("/readyz").is(503);
    node.client.post("/api/v1/jobs", r#"{"kind":"a"}"#).is(503);
    way.open();
    eventually("the node is ready", || node.client.get("/readyz").status == 200);
    node.client.post("/api/v1/jobs", r#"{"kind":"a"}"#).is(201);
    assert_eq!(node.logged("waiting for it"), 1);
    assert_ne!(way.address, node.client.address);
}

#[test]
fn a_database_that_does_not_exist_ends_the_node_at_once() {
    let mut parsed = url::Url::parse(&url()).unwrap();
    parsed.set_path("/no_such_database");
    let output = Place::at(parsed.as_str()).command(&["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no_such_database"), "{said}");
}

#[test]
fn an_outage_is_a_line_when_it_begins_and_one_when_it_ends_however_many_requests_are_refused() {
    let (way, store) = Way::to(&url());
    way.open();
    let node: Node = Place::at(&store).serve(&[]);
    node.client.post("/api/v1/jobs", r#"{"kind":"a"}"#).is(201);
    way.close();
    eventually("requests are refused", || node.client.get("/api/v1/jobs").status == 503);
    let before = node.logged("");
    for _ in 0..50 {
        node.client.post("/api/v1/jobs", r#"{"kind":"a"}"#).is(503);
    }
    eventually("the outage is logged", || node.logged("the store cannot be reached") == 1);
    assert!(node.logged("") < before + 10, "50 refused requests are not 50 lines");
    way.open();
    eventually("the end is logged", || node.logged("the store is back after") == 1);
    assert_eq!(node.logged("the store cannot be reached"), 1);
    node.client.post("/api/v1/jobs", r#"{"kind":"a"}"#).is(201);
}
