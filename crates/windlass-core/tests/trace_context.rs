//! Trace contexts: what is read and written, and which traces are recorded.

use proptest::prelude::*;
use windlass_core::trace_context::{SampleShare, SpanId, TraceContext, TraceId};

const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_context_reads_back_from_what_it_prints() {
    let context = TraceContext::parse(EXAMPLE).unwrap();
    assert!(context.is_sampled);
    assert_eq!(context.to_string(), EXAMPLE);
    let unsampled = TraceContext { is_sampled: false, ..context };
    assert_eq!(unsampled.to_string(), EXAMPLE.replace("-01", "-00"));
    assert_eq!(TraceContext::parse(&EXAMPLE.replace("-01", "-03")), Some(context), "other flags are left out");
}

#[test]
fn what_is_no_context_is_ignored() {
    let long = format!("{EXAMPLE}-x");
    for text in [
        "",
        "00",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        "00-0af7651916cd43dd8448eb211c8031-9c-b7ad6b716920333-01",
        "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00é0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        &long,
    ] {
        assert_eq!(TraceContext::parse(text), None, "{text}");
    }
}

#[test]
fn a_share_is_a_number_from_0_to_1() {
    for text in ["", "-0.1", "1.01", "nan", "inf", "many", "1%"] {
        assert_eq!(SampleShare::parse(text), None, "{text}");
    }
    for text in ["0", "0.0", "1", "1.0", "0.01", " 0.5 ", "1e-6"] {
        assert!(SampleShare::parse(text).is_some(), "{text}");
    }
    assert_eq!(SampleShare::parse("1"), Some(SampleShare::ALL));
}

proptest! {
    #[test]
    fn any_ids_make_a_context_that_reads_back(trace: [u8; 16], span: u64, is_sampled: bool) {
        let context = TraceContext { trace: TraceId::new(trace), span: SpanId::new(span), is_sampled };
        prop_assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
    }

    #[test]
    fn all_and_none_and_larger_shares(trace: [u8; 16], one in 0.0..1.0_f64, other in 0.0..1.0_f64) {
        let picks = |share: f64| SampleShare::parse(&share.to_string()).unwrap().picks(TraceId::new(trace));
        prop_assert!(picks(1.0));
        prop_assert!(!picks(0.0));
        prop_assert!(!picks(one.min(other)) || picks(one.max(other)), "a larger share has every trace of a smaller one");
    }

    #[test]
    fn no_text_breaks_the_reader(text in "\\PC{0,60}") {
        let _ = TraceContext::parse(&text);
    }
}

#[test]
fn a_share_is_about_that_many() {
    let share = SampleShare::parse("0.25").unwrap();
    // Numbers that are spread evenly stand for random ids.
    let ids = (0..1000_u128).map(|n| TraceId::new(((n << 56) / 1000).to_be_bytes()));
    assert_eq!(ids.filter(|id| share.picks(*id)).count(), 250);
}
