//! Tells the service manager how the node is: one datagram to the socket that `NOTIFY_SOCKET` names, as systemd expects
//! of services with `Type=notify`. Without that variable nothing is sent.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The node does its work from now on.
pub(crate) fn ready() {
    send("READY=1\nSTATUS=running");
}

/// The node starts no new work; running jobs may finish.
pub(crate) fn stopping() {
    send("STOPPING=1\nSTATUS=stopping: running jobs may finish");
}

fn send(text: &str) {
    let Some(socket) = std::env::var("NOTIFY_SOCKET").ok().filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send_to(&socket, text) {
        tracing::warn!(%error, "the service manager could not be notified at {socket}");
    }
}

fn send_to(socket: &str, text: &str) -> io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => abstract_address(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address).map(drop)
}

/// A name that is in no file system.
#[cfg(target_os = "linux")]
fn abstract_address(name: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &str) -> io::Result<SocketAddr> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_datagram_arrives_at_either_kind_of_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("windlass-test-{}", std::process::id());
        let in_files = UnixDatagram::bind(&path).unwrap();
        let in_no_files = UnixDatagram::bind_addr(&abstract_address(&name).unwrap()).unwrap();
        for (socket, listener) in [(path.to_str().unwrap().to_owned(), in_files), (format!("@{name}"), in_no_files)] {
            send_to(&socket, "READY=1").unwrap();
            let mut buffer = [0; 64];
            let length = listener.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1", "{socket}");
        }
        assert!(send_to("/nowhere/at/all", "READY=1").is_err());
    }
}
