//! The two encodings of the same messages. `scripts/test-otlp` holds them against OpenTelemetry's own types.

use super::protobuf::{Protobuf, Read, Reader};
use super::{Fixed64, Protocol, Reading, Writer, json::Json, reading, resource, spans};
use crate::telemetry::tests::{settings, span};
use windlass::Timestamp;
use windlass::telemetry::{Distribution, Metric, Number, Points};

fn all_kinds<W: Writer>(to: &mut W) {
    to.text((1, "text"), "a\"\n");
    to.id((2, "id"), &[0, 255]);
    to.small((3, "small"), 300);
    to.flag((4, "flag"), true);
    to.whole((5, "whole"), -1);
    to.fixed32((6, "four"), 1);
    to.fixed64((7, "signed"), Fixed64::Signed(-2));
    to.fixed64((8, "unsigned"), Fixed64::Unsigned(u64::MAX));
    to.real((9, "real"), 1.5);
    to.counts((10, "counts"), &[1, 2]);
    to.reals((11, "reals"), &[0.1, f64::INFINITY]);
    to.message((12, "message"), |_| {});
    to.messages((16, "messages"), [1, 2], |to, n| to.small((1, "n"), n));
}

#[test]
fn values_are_written_as_json_writes_them() {
    let json = String::from_utf8(Json::written(all_kinds)).unwrap();
    let expected = concat!(
        r#"{"text":"a\"\n","id":"00ff","small":300,"flag":true,"whole":"-1","four":1,"signed":"-2","#,
        r#""unsigned":"18446744073709551615","real":1.5,"counts":["1","2"],"reals":[0.1,"Infinity"],"#,
        r#""message":{},"messages":[{"n":1},{"n":2}]}"#,
    );
    assert_eq!(json, expected);
}

#[test]
fn values_are_written_as_protobuf_writes_them() {
    let bytes = Protobuf::written(all_kinds);
    let read: Vec<_> = Reader::new(&bytes).collect();
    let counts = [1_u64, 2].map(u64::to_le_bytes).concat();
    let reals = [0.1, f64::INFINITY].map(f64::to_le_bytes).concat();
    let expected = [
        (1, Read::Bytes(b"a\"\n")),
        (2, Read::Bytes(&[0, 255])),
        (3, Read::Number(300)),
        (4, Read::Number(1)),
        (5, Read::Number(u64::MAX)),
        (6, Read::Bytes(&[1, 0, 0, 0])),
        (7, Read::Bytes(&(-2_i64).to_le_bytes())),
        (8, Read::Bytes(&[255; 8])),
        (9, Read::Bytes(&1.5_f64.to_le_bytes())),
        (10, Read::Bytes(&counts)),
        (11, Read::Bytes(&reals)),
        (12, Read::Bytes(&[])),
        (16, Read::Bytes(&[8, 1])),
        (16, Read::Bytes(&[8, 2])),
    ];
    assert_eq!(read, expected);
    // The number of a field and its form, and 300 in seven bits a byte.
    assert!(bytes.windows(3).any(|bytes| bytes == [0x18, 0xac, 0x02]), "{bytes:?}");
}

#[test]
fn a_message_that_is_cut_ends_and_nothing_else() {
    let bytes = Protobuf::written(all_kinds);
    for cut in 0..bytes.len() {
        assert!(Reader::new(&bytes[..cut]).count() <= 14);
    }
    for wrong in [&[0x0f][..], &[0xff; 20], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]] {
        assert_eq!(Reader::new(wrong).count(), 0, "{wrong:?}");
    }
}

#[test]
fn an_endless_time_and_a_clock_that_was_set_back_are_written() {
    let mut late = span();
    late.ended_at = Timestamp::from_millis(0);
    late.started_at = Timestamp::from_millis(i64::MAX);
    let resource = resource(&settings(), "n1");
    let text = String::from_utf8(spans(Protocol::HttpJson, &resource, &[late])).unwrap();
    assert!(text.contains(r#""startTimeUnixNano":"18446744073709551615","endTimeUnixNano":"18446744073709551615""#));
    let counted = Points::Histogram(vec![(
        vec![("queue".into(), "a".into())],
        Distribution { bounds: vec![1.0], counts: vec![2, 3], sum: 9.5 },
    )]);
    let metrics = vec![
        Metric { name: "run_seconds".into(), help: "Times".into(), points: counted },
        Metric { name: "empty".into(), help: String::new(), points: Points::Gauge(Vec::new()) },
        Metric {
            name: "age".into(),
            help: String::new(),
            points: Points::Gauge(vec![(Vec::new(), Number::Real(2.0))]),
        },
    ];
    let read = Reading { metrics, since: Timestamp::from_millis(5), at: Timestamp::from_millis(4) };
    let text = String::from_utf8(reading(Protocol::HttpJson, &resource, &read)).unwrap();
    let expected = concat!(
        r#""metrics":[{"name":"run_seconds","description":"Times","unit":"s","histogram":{"dataPoints":["#,
        r#"{"startTimeUnixNano":"5000000","timeUnixNano":"5000000","count":"5","sum":9.5,"bucketCounts":["2","3"],"#,
        r#""explicitBounds":[1.0],"attributes":[{"key":"queue","value":{"stringValue":"a"}}]}],"#,
        r#""aggregationTemporality":2}},{"name":"age","description":"","#,
        r#""gauge":{"dataPoints":[{"timeUnixNano":"4000000","asDouble":2.0,"attributes":[]}]}}]"#,
    );
    assert!(text.contains(expected), "{text}");
}
