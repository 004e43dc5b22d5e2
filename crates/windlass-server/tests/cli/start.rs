//! The first minutes: a configuration, a server that says where things are and when it is ready, its health check, the
//! manual.

use crate::servers::Server;
use crate::world::World;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;

fn code(world: &World, args: &[&str]) -> Option<i32> {
    world.run("100", args).status.code()
}

#[test]
fn init_writes_a_private_file_that_serve_reads_and_never_replaces_one_unasked() {
    let world = World::empty();
    let shown = world.out("100", &["init", "--listen", "127.0.0.1:8123"]);
    assert!(shown.contains("windlass serve") && shown.contains("http://127.0.0.1:8123/"), "{shown}");
    let mode = std::fs::metadata(world.path("windlass.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it may hold secrets");
    assert!(world.out("100", &["config"]).contains("127.0.0.1:8123"));
    std::fs::write(world.path("windlass.toml"), "concurrency = 7\n").unwrap();
    assert_eq!(code(&world, &["init"]), Some(4));
    assert_eq!(std::fs::read_to_string(world.path("windlass.toml")).unwrap(), "concurrency = 7\n");
    assert_eq!(code(&world, &["init", "--listen", "everywhere"]), Some(2));
    assert_eq!(code(&world, &["init", "--force"]), Some(0));
    assert!(world.out("100", &["init", "-"]).contains("# store = \"sqlite:windlass.db\""));
}

#[test]
fn the_health_check_asks_the_running_server_and_starts_none() {
    let world = World::empty();
    assert_eq!(code(&world, &["serve", "--check", "--listen", "127.0.0.1:1"]), Some(5));
    assert_eq!(world.files(), Vec::<String>::new(), "nothing was created");
    assert_eq!(code(&world, &["work", "--check"]), Some(2));
    let server = Server::start(&world);
    let address = server.url.trim_start_matches("http://").to_owned();
    let shown = world.out("100", &["serve", "--check", "--within", "30s", "--listen", &address]);
    assert!(shown.contains("is ready, on sqlite"), "{shown}");
    let log = server.stop();
    for part in ["dashboard at /", "jobs are kept in", "windlass init", "before production:", "windlass token create"] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[test]
fn the_service_manager_learns_when_the_server_is_ready_and_when_it_stops() {
    let world = World::empty();
    let socket = UnixDatagram::bind(world.path("notify")).unwrap();
    let path = world.path("notify");
    let world = world.with("NOTIFY_SOCKET", &path);
    let next = || {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let server = Server::start(&world);
    assert!(next().starts_with("READY=1\n"));
    server.stop();
    assert!(next().starts_with("STOPPING=1\n"));
}

#[test]
fn the_version_and_the_manual_are_complete() {
    let world = World::empty();
    let version = world.out("100", &["--version"]);
    for part in [env!("CARGO_PKG_VERSION"), "commit", "features  sqlite, postgres", "target"] {
        assert!(version.contains(part), "{part}: {version}");
    }
    world.out("100", &["man", "pages"]);
    let page = std::fs::read_to_string(world.path("pages/windlass-serve.1")).unwrap();
    assert!(page.starts_with(".ie") && page.contains("\\-\\-check"), "{page}");
}
