use super::*;

/// Computed with Python's `hmac` and `base64`, independently of this code.
const VECTORS: [(&str, &str, i64, &str, &str); 2] = [
    (
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "msg_1",
        1_767_268_800,
        r#"{"state":"succeeded"}"#,
        "v1,TXud8bvp0IgYrkHIkyeX2kAYTfGC1mfQTa5RlsFVvAk=",
    ),
    (
        "whsec_d2luZGxhc3Mtd2ViaG9vay1rZXktMjRi",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        r#"{"test": 2432232314, "é": "✓"}"#,
        "v1,9LicNmkycPIRql9iCQJ2526JhjKB6FXqB/BUfMHwetc=",
    ),
];

#[test]
fn signatures_match_those_computed_elsewhere() {
    for (secret, id, at, body, signature) in VECTORS {
        let key = Secret::parse(secret).unwrap();
        assert_eq!(key.sign(id, at, body.as_bytes()), signature);
        assert_eq!(key.verify(id, at, body.as_bytes(), signature, at), Ok(()));
        assert_eq!(key.to_text(), secret);
    }
}

#[test]
fn any_change_breaks_the_signature() {
    let (secret, id, at, body, signature) = VECTORS[0];
    let key = Secret::parse(secret).unwrap();
    let other = Secret::from_bytes(&[7; 32]).unwrap();
    let mismatch = Err(SignatureError::Mismatch);
    assert_eq!(key.verify("msg_2", at, body.as_bytes(), signature, at), mismatch);
    assert_eq!(key.verify(id, at + 1, body.as_bytes(), signature, at), mismatch);
    assert_eq!(key.verify(id, at, b"{}", signature, at), mismatch);
    assert_eq!(other.verify(id, at, body.as_bytes(), signature, at), mismatch);
    for header in ["", "v1,", "v1", "v2,AAAA", &signature[3..], &signature[..20], "v1,!!!"] {
        assert_eq!(key.verify(id, at, body.as_bytes(), header, at), mismatch, "{header}");
    }
}

#[test]
fn one_matching_signature_among_several_is_enough() {
    let (secret, id, at, body, signature) = VECTORS[0];
    let key = Secret::parse(secret).unwrap();
    let header = format!("v1a,abc v1,AAAA {signature} v1,BBBB");
    assert_eq!(key.verify(id, at, body.as_bytes(), &header, at), Ok(()));
}

#[test]
fn a_signature_is_valid_for_five_minutes_before_and_after() {
    let (secret, id, at, body, signature) = VECTORS[0];
    let key = Secret::parse(secret).unwrap();
    for (now, expected) in [
        (at - 300, Ok(())),
        (at + 300, Ok(())),
        (at - 301, Err(SignatureError::Timestamp)),
        (at + 301, Err(SignatureError::Timestamp)),
        (i64::MIN, Err(SignatureError::Timestamp)),
        (i64::MAX, Err(SignatureError::Timestamp)),
    ] {
        assert_eq!(key.verify(id, at, body.as_bytes(), signature, now), expected, "{now}");
    }
}

#[test]
fn a_secret_has_24_to_64_bytes() {
    for (length, fits) in [(0, false), (23, false), (24, true), (64, true), (65, false)] {
        assert_eq!(Secret::from_bytes(&vec![1; length]).is_ok(), fits, "{length}");
    }
    assert_eq!(Secret::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"), Err(SecretError::Form));
    assert_eq!(Secret::parse("whsec_not base64"), Err(SecretError::Form));
    assert_eq!(Secret::parse("whsec_AAAA"), Err(SecretError::Length(3)));
}

#[test]
fn debug_output_does_not_contain_the_secret() {
    let key = Secret::from_bytes(&[65; 24]).unwrap();
    assert_eq!(format!("{key:?}"), "Secret(…)");
}
