//! Changed bodies and queries on every route: never a 5xx, and always a problem document.

use super::auth::ROUTES;
use super::world::World;
use hyper::Method;
use windlass_fuzz::fuzz;

#[test]
fn bodies_and_queries_of_every_route() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new();
    for id in 1..=3 {
        assert_eq!(runtime.block_on(world.enqueue("email")), id);
    }
    fuzz("request", |bytes| {
        // The first byte chooses the route; streams never end.
        let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let (method, path, sample, ..) = ROUTES[usize::from(*first) % ROUTES.len()];
        if path.ends_with("/events") {
            return;
        }
        let numbers =
            ["{id}", "{schedule}", "{dead}"].iter().fold(path.to_owned(), |path, name| path.replace(name, "1"));
        let path = numbers.replace("{name}", "email").replace(['{', '}'], "");
        let text = String::from_utf8_lossy(rest);
        let query: String = url::form_urlencoded::byte_serialize(rest).collect();
        let bodies = [text.clone().into_owned(), merged(sample, &text)];
        for body in bodies {
            let method = Method::from_bytes(method.as_bytes()).expect("the table has methods");
            let headers = [("idempotency-key", "x")];
            for path in [path.clone(), format!("{path}?cursor={query}&limit={query}&since={query}")] {
                let answer = runtime.block_on(world.send(method.clone(), &path, Some(&body), &headers));
                assert!(!answer.status.is_server_error(), "{method} {path} {body}: {}", answer.text);
            }
        }
    });
}

/// The route's own body with another field: most inputs then get past the first checks.
fn merged(sample: &str, text: &str) -> String {
    match sample.strip_suffix('}') {
        Some(start) if start.len() > 1 => format!("{start},{text}}}"),
        Some(_) | None => format!("{{{text}}}"),
    }
}
