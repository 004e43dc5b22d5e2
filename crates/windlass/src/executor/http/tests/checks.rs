//! Calls refused before they are stored, and headers as they are shown.

use super::*;

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn wrong_field(method: &str, url: &str, pairs: &[(&str, &str)]) -> Option<&'static str> {
    check_call(method, url, &headers(pairs)).err().map(|error| error.field)
}

#[test]
fn good_calls_pass() {
    let long = format!("https://a.example/{}", "x".repeat(8000));
    for url in [
        "http://a.example",
        "https://a.example:8443/x?y={z}#f",
        "https://bücher.example/ü",
        &long,
        "https://[2606:4700::1]/",
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "post"] {
            let ok = [("X-Any", "thing"), ("Authorization", "Bearer x"), ("Cookie", "a=b"), ("x-any", "é")];
            assert_eq!(check_call(method, url, &headers(&ok)), Ok(()), "{method} {url}");
        }
    }
}

#[test]
fn wrong_methods_and_urls_are_named() {
    for method in ["", "CONNECT", "TRACE", "GET ", "G\r\nET", "BREW"] {
        assert_eq!(wrong_field(method, "https://a.example/", &[]), Some("method"), "{method:?}");
    }
    let long_name = format!("https://{}/", ["a".repeat(60).as_str(); 5].join("."));
    let long_url = format!("https://a.example/{}", "x".repeat(MAX_URL_BYTES));
    for url in [
        "",
        "a.example",
        "/path",
        "//a.example/",
        "ftp://a.example/",
        "file:///etc/passwd",
        "gopher://a.example/",
        "javascript:alert(1)",
        "unix:/run/x.sock",
        "https://",
        "https:///",
        "https://user@a.example/",
        "https://user:pass@a.example/",
        "https://:pass@a.example/",
        "https://a..example/",
        "https://.example/",
        "https://a.example../",
        "https://a b/",
        "https://a.example:0/",
        "https://a.example:65536/",
        "https://a.example:x/",
        "https://[::1/",
        "https://a%00.example/",
        "https://a.example/\r\nX: y",
        "https://a.exam\tple/",
        &long_name,
        &long_url,
    ] {
        assert_eq!(wrong_field("POST", url, &[]), Some("url"), "{url:?}");
    }
}

#[test]
fn headers_that_are_not_a_jobs_to_set_are_refused() {
    for name in [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Accept-Encoding",
        "Proxy-Authorization",
        "proxy-anything",
        "Webhook-Id",
        "webhook-signature",
        "Windlass-Job-Id",
        "X-aws-ec2-metadata-token",
        "X-aws-ec2-metadata-token-ttl-seconds",
        "Metadata-Flavor",
        "Metadata",
        "X-Google-Metadata-Request",
        "",
        "a b",
        "a:b",
        "a\r\nb",
        "é",
    ] {
        assert_eq!(wrong_field("POST", "https://a.example/", &[(name, "1")]), Some("headers"), "{name:?}");
    }
    for value in ["a\r\nb", "a\nb", "a\rb", "a\0b", "a\u{7f}b", "a\tb"] {
        let error = check_call("POST", "https://a.example/", &headers(&[("X", value)])).unwrap_err();
        assert!(!error.to_string().contains(value), "a value may be a secret");
    }
    let many: Vec<_> = (0..=MAX_HEADERS).map(|n| (format!("X-{n}"), String::new())).collect();
    assert!(check_call("POST", "https://a.example/", &many).is_err());
    let long = vec![("X".to_owned(), "x".repeat(MAX_HEADER_BYTES))];
    assert!(check_call("POST", "https://a.example/", &long).is_err());
}

#[test]
fn secret_looking_headers_are_masked() {
    let secret = [
        "Authorization",
        "cookie",
        "Set-Cookie",
        "X-Api-Key",
        "X-Auth",
        "X-GitHub-Token",
        "X-Hub-Signature-256",
        "Client-Secret",
        "X-PASSWORD",
        "X-Session-Id",
        "X-Amz-Credential",
        "Private-Thing",
    ];
    for name in secret {
        assert_eq!(mask_headers(&headers(&[(name, "hunter2")])), headers(&[(name, MASK)]));
    }
    for value in ["Bearer abc", "basic YTpi", "whsec_abc", " Token abc"] {
        assert_eq!(mask_headers(&headers(&[("X-Plain", value)])), headers(&[("X-Plain", MASK)]));
    }
    let open = [("Content-Type", "text/plain"), ("X-Trace", "1"), ("Idempotency-Key", "order-1"), ("Accept", "*/*")];
    assert_eq!(mask_headers(&headers(&open)), headers(&open));
}

#[test]
fn a_target_is_checked_by_its_spelling_against_the_egress_rules() {
    let (public, _) = executor(HttpOptions::default());
    let (open, _) = executor(private());
    for url in ["http://localhost/", "http://127.1/", "http://a.internal/", "http://[fc00::1]/"] {
        assert_eq!(public.check_target(url).unwrap_err().field, "url");
        assert_eq!(open.check_target(url), Ok(()));
    }
    assert!(open.check_target("http://169.254.169.254/").is_err());
    assert_eq!(public.check_target("https://a.example/"), Ok(()));
    assert!(public.check_target("nonsense").is_err());
}
