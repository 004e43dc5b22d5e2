//! Connections under TLS: verified against a given authority, refused otherwise.

use crate::again::home;
use crate::cluster::{Cluster, give_to_server};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use windlass::low_level::stores::postgres::PostgresStore;
use windlass::low_level::stores::{Options, StoreError};

/// A server that uses TLS, with a certificate for `localhost`, and the authority that signed it.
pub struct Secured {
    pub cluster: Cluster,
    pub authority: TempDir,
}

impl Secured {
    pub fn start() -> Self {
        let authority = authority();
        let settings = "ssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'";
        let cluster = Cluster::start(settings, |data| {
            for name in ["server.crt", "server.key"] {
                let to = data.join(name);
                std::fs::copy(authority.path().join(name), &to).unwrap();
                set_permissions(&to, Permissions::from_mode(0o600)).unwrap();
                give_to_server(&to);
            }
        });
        Self { cluster, authority }
    }

    pub fn certificate(&self) -> String {
        self.authority.path().join("ca.crt").display().to_string()
    }
}

/// An authority, and a certificate it signed for `localhost`.
fn authority() -> TempDir {
    let home = home();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(home.path(), &format!("req -x509 {key} -keyout ca.key -out ca.crt -days 30 -subj /CN=windlass-test"));
    openssl(home.path(), &format!("req {key} -keyout server.key -out server.csr -subj /CN=localhost"));
    std::fs::write(home.path().join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    let sign =
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 30 -extfile names";
    openssl(home.path(), sign);
    home
}

fn openssl(home: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(home).output();
    let output = output.expect("these tests need the openssl command");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn open(url: &str) -> Result<(), StoreError> {
    PostgresStore::open(url, Options::default()).await.map(drop)
}

#[tokio::test]
async fn connections_follow_the_requested_sslmode() {
    let secured = Secured::start();
    only_certificates_signed_by_the_authority_are_trusted(&secured).await;
    tls_is_used_where_the_server_can_unless_configured_otherwise(&secured).await;
    a_server_without_tls_is_refused_if_tls_is_required(&secured).await;
}

async fn only_certificates_signed_by_the_authority_are_trusted(secured: &Secured) {
    let (url, authority) = (secured.cluster.url(), secured.certificate());
    open(&format!("{url}?sslmode=require&sslrootcert={authority}")).await.unwrap();
    open(&format!("{url}?sslmode=verify-full&sslrootcert={authority}")).await.unwrap();

    let strange = self::authority();
    let strange = strange.path().join("ca.crt").display().to_string();
    let by_number = url.replace("localhost", "127.0.0.1");
    for (url, why) in [
        (format!("{url}?sslmode=require"), "no authority is known that signed it"),
        (format!("{url}?sslmode=require&sslrootcert={strange}"), "another authority signed it"),
        (format!("{by_number}?sslmode=require&sslrootcert={authority}"), "it is for another name"),
    ] {
        assert_refused(&open(&url).await, "certificate", why);
    }
    let refused = open(&format!("{url}?sslmode=require&sslrootcert=/not/there")).await;
    assert!(matches!(&refused, Err(StoreError::Invalid(why)) if why.contains("/not/there")), "{refused:?}");
}

async fn tls_is_used_where_the_server_can_unless_configured_otherwise(secured: &Secured) {
    let url = secured.cluster.url();
    let plain = plain(&url).await;
    let count = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                 WHERE a.application_name = $1 AND s.ssl = $2";
    for (mode, name, is_encrypted) in [("prefer", "preferring", true), ("disable", "plain", false)] {
        let url = format!("{url}?sslmode={mode}&application_name={name}");
        let store = PostgresStore::open(&url, Options::default()).await.unwrap();
        let seen = async |ssl: bool| plain.query_one(count, &[&name, &ssl]).await.unwrap().get::<_, i64>(0);
        assert!(seen(is_encrypted).await > 0, "{mode}");
        assert_eq!(seen(!is_encrypted).await, 0, "{mode}");
        drop(store);
    }
}

async fn a_server_without_tls_is_refused_if_tls_is_required(secured: &Secured) {
    let url = secured.cluster.url();
    let plain = plain(&url).await;
    plain.batch_execute("ALTER SYSTEM SET ssl = off").await.unwrap();
    plain.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    // The server needs a moment to apply the new setting.
    let is_on = async || plain.query_one("SHOW ssl", &[]).await.unwrap().get::<_, String>(0) == "on";
    while is_on().await {
        tokio::task::yield_now().await;
    }
    let mut refused = open(&format!("{url}?sslmode=require&sslrootcert={}", secured.certificate())).await;
    while refused.is_ok() {
        refused = open(&format!("{url}?sslmode=require&sslrootcert={}", secured.certificate())).await;
    }
    assert_refused(&refused, "does not support TLS", "it has none");
    open(&format!("{url}?sslmode=prefer")).await.unwrap();
}

async fn plain(url: &str) -> tokio_postgres::Client {
    let url = format!("{url}?sslmode=disable");
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[track_caller]
fn assert_refused(opened: &Result<(), StoreError>, with: &str, why: &str) {
    let is_expected = matches!(opened, Err(StoreError::Unavailable(cause)) if cause.to_string().contains(with));
    assert!(is_expected, "{why}: {opened:?}");
}
