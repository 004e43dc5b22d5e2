//! A minimal HTTP client, so that it does not hide mistakes of the server.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The longest wait for an answer.
const HANG: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub token: Option<String>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.body))
    }

    #[track_caller]
    pub fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.json()
    }
}

impl Client {
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "").expect("the server answers")
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, body).expect("the server answers")
    }

    pub fn send(&self, method: &str, path: &str, body: &str) -> std::io::Result<Answer> {
        self.send_with(method, path, "", body)
    }

    /// The same, with more headers: whole lines, each with its line end.
    pub fn send_with(&self, method: &str, path: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect_timeout(&self.address, HANG)?;
        stream.set_read_timeout(Some(HANG))?;
        let token = self.token.as_ref().map_or_else(String::new, |t| format!("Authorization: Bearer {t}\r\n"));
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let sent = write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{token}{kind}{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        // A server may refuse a request early and close. Its answer counts, even if the rest could not be sent.
        let (head, body) = read_message(&mut BufReader::new(stream)).map_err(|error| sent.err().unwrap_or(error))?;
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("no status in {head:?}")))?;
        Ok(Answer { status, body })
    }

    /// The state of a job.
    pub fn state(&self, id: i64) -> String {
        let job = self.get(&format!("/api/v1/jobs/{id}")).is(200);
        job["state"].as_str().unwrap_or_default().to_owned()
    }
}

/// The head and body of a message with a length, or until the end of the stream.
pub fn read_message(reader: &mut impl BufRead) -> std::io::Result<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = Vec::new();
    match length {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
        }
        None if head.to_ascii_lowercase().contains("transfer-encoding: chunked") => read_chunks(reader, &mut body)?,
        None => drop(reader.read_to_end(&mut body)?),
    }
    Ok((head, String::from_utf8_lossy(&body).into_owned()))
}

fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        body.extend_from_slice(&chunk[..length]);
    }
}

/// A receiver of calls that answers as the test chooses, and keeps the calls.
#[derive(Debug, Clone)]
pub struct Receiver {
    pub url: String,
    pub got: Arc<Mutex<Vec<(String, String)>>>,
}

impl Receiver {
    /// Answers the `n`th call with `status(n)`; if that is 0, closes the connection without an answer.
    pub fn new(status: impl Fn(usize) -> u16 + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let url = format!("http://{}/hook", listener.local_addr().expect("a bound socket has an address"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = got.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok((head, body)) = read_message(&mut BufReader::new(&stream)) else { continue };
                let number = {
                    let mut kept = kept.lock().unwrap();
                    kept.push((head, body));
                    kept.len()
                };
                let status = status(number);
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                if status > 0 {
                    // The caller may have been killed.
                    let _ = (&stream).write_all(answer.as_bytes());
                }
            }
        });
        Self { url, got }
    }

    pub fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    /// Every call as a webhook: its id and its body.
    pub fn webhooks(&self) -> Vec<(String, String)> {
        let got = self.got.lock().unwrap();
        got.iter()
            .map(|(head, body)| (header(head, "webhook-id").expect("a webhook has an id"), body.clone()))
            .collect()
    }
}

/// The value of a header.
pub fn header(head: &str, name: &str) -> Option<String> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(key, value)| key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_owned()))
}
