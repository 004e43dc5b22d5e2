//! Whatever a receiver answers and whatever a URL is, a call ends with an outcome and nothing secret is shown.

use super::super::check::parse_url;
use super::*;
use windlass_fuzz::fuzz;

#[test]
fn answers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    fuzz("answer", |bytes| {
        runtime.block_on(async {
            let receiver = Receiver::always(Reply::SendAndClose(bytes.to_vec())).await;
            let (executor, _) = executor(private());
            let called = executor.call(&post(receiver.url())).await;
            match called.outcome {
                Outcome::Succeeded => assert!(called.note.is_some_and(|note| note.starts_with("HTTP 2"))),
                Outcome::Failed(failure) => {
                    assert!(failure.message.len() < KEPT_BYTES * 4, "{}", failure.message.len());
                }
                other @ (Outcome::Snoozed(_) | Outcome::Released(_) | Outcome::Cancelled | Outcome::Lost) => {
                    panic!("a call does not end as {other:?}")
                }
            }
        });
    });
}

#[test]
fn urls() {
    let rules = TargetRules { egress: Egress::Public, deny: Vec::new() };
    fuzz("webhook_url", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        assert!(!mask_url(&text).contains("token=abc&"), "{text}");
        if rules.check(&text).is_ok() {
            let target = parse_url(&text).expect("a URL that may be called can be read");
            if let target::TargetHost::Address(address) = target.host {
                assert!(Egress::Public.permits(address), "{text} leads to {address}");
            }
        }
    });
}
