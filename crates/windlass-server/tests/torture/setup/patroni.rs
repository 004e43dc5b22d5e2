//! Three Postgres servers under Patroni, with etcd, each in a network namespace of its own, so that a cable can be
//! pulled. Every commit waits for a standby (strict synchronous mode). Needs root, Patroni, etcd, HAProxy and iproute2.

use crate::setup::cluster::{binaries, server_user};
use crate::tools::eventually;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub const MEMBERS: usize = 3;

#[derive(Debug)]
pub struct Patroni {
    home: tempfile::TempDir,
    net: Net,
    /// Patroni itself, by member.
    managers: Vec<Child>,
    others: Vec<Child>,
}

impl Patroni {
    /// Starts all servers and waits until one leads and another follows synchronously.
    pub fn start() -> Self {
        // The server's user may not have access to root's temporary directory; it has access to /tmp.
        let home = tempfile::Builder::new().prefix("windlass-patroni.").tempdir_in("/tmp").unwrap();
        let net = Net::new();
        let mut cluster = Self { home, net, managers: Vec::new(), others: Vec::new() };
        cluster.start_etcd();
        for member in 0..MEMBERS {
            cluster.configure(member);
        }
        let all = cluster.home.path().to_path_buf();
        assert!(Command::new("chown").args(["-R", server_user().expect("root")]).arg(&all).status().unwrap().success());
        for member in 0..MEMBERS {
            let manager = cluster.manager(member);
            cluster.managers.push(manager);
        }
        cluster.wait_whole();
        cluster
    }

    /// The URL that names all servers and takes the one that can be written to.
    pub fn url(&self) -> String {
        let hosts =
            (0..MEMBERS).map(|member| format!("{}:5432", self.net.address(member))).collect::<Vec<_>>().join(",");
        format!("postgres://windlass:windlass@{hosts}/postgres?target_session_attrs=read-write")
    }

    /// Starts a proxy that always leads to the primary, and returns its URL.
    pub fn proxy(&mut self) -> String {
        let file = self.home.path().join("haproxy.cfg");
        let servers = (0..MEMBERS).map(|member| {
            let address = self.net.address(member);
            format!("    server m{member} {address}:5432 check port 8008\n")
        });
        let text = format!(
            "global\n    maxconn 400\ndefaults\n    mode tcp\n    timeout connect 2s\n    timeout client 30m\n    timeout server 30m\n    \
             timeout check 2s\nlisten primary\n    bind {}:5000\n    option httpchk OPTIONS /primary\n    http-check expect status 200\n    \
             default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions\n{}",
            self.net.host(),
            servers.collect::<String>()
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&file);
        self.others.push(started(command, &self.home.path().join("haproxy.log")));
        format!("postgres://windlass:windlass@{}:5000/postgres", self.net.host())
    }

    /// Whoever holds the leader's key in etcd.
    pub fn leader(&self) -> Option<usize> {
        let shown = fetched(&format!("{}/v2/keys/service/windlass/leader", self.etcd()))?;
        let key: serde_json::Value = serde_json::from_str(&shown).unwrap_or_default();
        key["node"]["value"].as_str()?.strip_prefix('m')?.parse().ok()
    }

    /// Waits until a member other than `old` leads and can be written to.
    pub fn wait_replaced(&self, old: usize) {
        eventually("another server leads", || {
            self.leader().is_some_and(|leader| leader != old && self.ask(leader, "/primary").is_some())
        });
    }

    /// Waits until one server leads, one follows synchronously, and one more is ready.
    pub fn wait_whole(&self) {
        eventually("all three servers take part", || {
            let shown = self.leader().and_then(|leader| self.ask(leader, "/cluster")).unwrap_or_default();
            let state: serde_json::Value = serde_json::from_str(&shown).unwrap_or_default();
            let members = state["members"].as_array().cloned().unwrap_or_default();
            let count = |role: &str| members.iter().filter(|member| member["role"] == role).count();
            let is_up = |member: &serde_json::Value| {
                member["role"] == "leader" || member["lag"].as_u64().is_some_and(|lag| lag < 16 << 20)
            };
            let up = members.iter().filter(|member| is_up(member)).count();
            (count("leader"), count("sync_standby"), up) == (1, 1, MEMBERS)
        });
    }

    /// Asks the cluster to make another server the primary, in good order.
    pub fn switch_over(&self, leader: usize) {
        let url = format!("http://{}:8008/switchover", self.net.address(leader));
        let body = format!("{{\"leader\": \"m{leader}\"}}");
        let status = Command::new("curl")
            .args(["-s", "-m", "60", "-X", "POST", "-d", &body, &url])
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "the switchover was not accepted");
    }

    /// Sends a signal to a member's Postgres; to its Patroni too if `whole`.
    pub fn signal(&self, member: usize, name: &str, whole: bool) {
        for id in self.net.processes(member) {
            let is_server =
                std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm.trim() == "postgres");
            if whole || is_server {
                // A process may have ended meanwhile.
                let _ = Command::new("kill").args([name, &id]).stderr(Stdio::null()).status();
            }
        }
    }

    /// Starts a member again after all of it was killed.
    pub fn revive(&mut self, member: usize) {
        let _ = self.managers[member].wait();
        self.managers[member] = self.manager(member);
    }

    /// Pulls a member's cable, or plugs it in again.
    pub fn cable(&self, member: usize, is_in: bool) {
        self.net.cable(member, is_in);
    }

    fn etcd(&self) -> String {
        format!("http://{}:2379", self.net.address(MEMBERS))
    }

    fn start_etcd(&mut self) {
        let (url, peers) = (self.etcd(), format!("http://{}:2380", self.net.address(MEMBERS)));
        let mut command = self.net.inside(MEMBERS);
        // Patroni 3.0 loses the key of the synchronous standby with the newer interface when a leader was frozen.
        command.args(["etcd", "--enable-v2", "--name", "e", "--data-dir"]).arg(self.home.path().join("etcd"));
        command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url, "--listen-peer-urls", &peers]);
        command.args(["--initial-advertise-peer-urls", &peers, "--initial-cluster", &format!("e={peers}")]);
        self.others.push(started(command, &self.home.path().join("etcd.log")));
    }

    fn configure(&self, member: usize) {
        let (home, address) = (self.home.path().display(), self.net.address(member));
        let (bin, network, etcd) = (binaries().display().to_string(), self.net.network(), self.net.address(MEMBERS));
        // Times are the shortest that Patroni accepts. A synchronous standby has all that was acknowledged, but on a
        // busy machine it may lag by more than the usual 1 MB of what was not; then no server would ever take over.
        let text = format!(
            "scope: windlass
name: m{member}
restapi: {{listen: '{address}:8008', connect_address: '{address}:8008'}}
etcd: {{host: '{etcd}:2379'}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 268435456
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters: {{max_connections: 200, wal_keep_size: 512MB}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}, data-checksums]
postgresql:
  listen: '{address}:5432'
  connect_address: '{address}:5432'
  data_dir: {home}/m{member}
  bin_dir: {bin}
  pgpass: {home}/pgpass{member}
  pg_hba: ['host all all {network} trust', 'host replication all {network} trust', 'local all all trust']
  parameters: {{unix_socket_directories: ''}}
  authentication:
    superuser: {{username: windlass, password: windlass}}
    replication: {{username: copies, password: copies}}
"
        );
        std::fs::write(self.home.path().join(format!("m{member}.yml")), text).unwrap();
    }

    fn manager(&self, member: usize) -> Child {
        let mut command = self.net.inside(member);
        command.args(["runuser", "-u", server_user().expect("root"), "--", "patroni"]);
        command.arg(self.home.path().join(format!("m{member}.yml"))).current_dir(self.home.path());
        started(command, &self.home.path().join(format!("m{member}.log")))
    }

    /// What a member's Patroni answers with 200.
    fn ask(&self, member: usize, path: &str) -> Option<String> {
        fetched(&format!("http://{}:8008{path}", self.net.address(member)))
    }
}

/// What is answered with 200, if it is soon.
fn fetched(url: &str) -> Option<String> {
    let answer = Command::new("curl").args(["-s", "-f", "-m", "2", url]).output().unwrap();
    answer.status.success().then(|| String::from_utf8_lossy(&answer.stdout).into_owned())
}

impl Drop for Patroni {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for member in 0..MEMBERS {
                let log = std::fs::read_to_string(self.home.path().join(format!("m{member}.log"))).unwrap_or_default();
                let lines = log.lines().collect::<Vec<_>>();
                eprintln!("m{member}:\n{}", lines[lines.len().saturating_sub(15)..].join("\n"));
            }
        }
        (0..=MEMBERS).for_each(|place| self.net.kill(place));
        for child in self.managers.iter_mut().chain(&mut self.others) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts a program with its output in a file, in a process group of its own.
fn started(mut command: Command, log: &Path) -> Child {
    let file = std::fs::File::options().create(true).append(true).open(log).unwrap();
    let again = file.try_clone().unwrap();
    command.stdin(Stdio::null()).stdout(file).stderr(again).process_group(0);
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// A switch with a cable to this machine and one to each network namespace: the members', and etcd's as the last.
#[derive(Debug)]
struct Net {
    name: String,
    third: u32,
}

impl Net {
    fn new() -> Self {
        // The kernel removes the cables of an earlier test of this process late, so every network has names of its own.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let third = std::process::id().wrapping_add(made) % 250;
        let net = Self { name: format!("wl{}x{made}", std::process::id() % 100_000), third };
        let bridge = &net.name;
        ip(&["link", "add", bridge, "type", "bridge"]);
        ip(&["address", "add", &format!("{}/24", net.host()), "dev", bridge]);
        ip(&["link", "set", bridge, "up"]);
        for place in 0..=MEMBERS {
            let (space, cable, inner) = (net.space(place), net.cable_name(place), "eth0");
            ip(&["netns", "add", &space]);
            ip(&["link", "add", &cable, "type", "veth", "peer", "name", inner, "netns", &space]);
            ip(&["link", "set", &cable, "master", bridge]);
            ip(&["link", "set", &cable, "up"]);
            ip(&["-n", &space, "address", "add", &format!("{}/24", net.address(place)), "dev", inner]);
            ip(&["-n", &space, "link", "set", "lo", "up"]);
            ip(&["-n", &space, "link", "set", inner, "up"]);
        }
        net
    }

    fn network(&self) -> String {
        format!("10.213.{}.0/24", self.third)
    }

    /// This machine's address.
    fn host(&self) -> String {
        format!("10.213.{}.254", self.third)
    }

    fn address(&self, place: usize) -> String {
        format!("10.213.{}.{}", self.third, place + 1)
    }

    fn space(&self, place: usize) -> String {
        format!("{}n{place}", self.name)
    }

    fn cable_name(&self, place: usize) -> String {
        format!("{}c{place}", self.name)
    }

    fn cable(&self, place: usize, is_in: bool) {
        ip(&["link", "set", &self.cable_name(place), if is_in { "up" } else { "down" }]);
    }

    fn inside(&self, place: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(place)]);
        command
    }

    fn processes(&self, place: usize) -> Vec<String> {
        let shown = Command::new("ip").args(["netns", "pids", &self.space(place)]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).split_whitespace().map(String::from).collect()
    }

    fn kill(&self, place: usize) {
        for id in self.processes(place) {
            let _ = Command::new("kill").args(["-KILL", &id]).stderr(Stdio::null()).status();
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for place in 0..=MEMBERS {
            self.kill(place);
            let _ = Command::new("ip").args(["netns", "delete", &self.space(place)]).status();
        }
        let _ = Command::new("ip").args(["link", "delete", &self.name]).status();
    }
}

fn ip(words: &[&str]) {
    let status = Command::new("ip").args(words).status().expect("iproute2 is there");
    assert!(status.success(), "ip {words:?}: making networks needs root");
}
