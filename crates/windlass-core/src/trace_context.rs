//! Trace context: the W3C `traceparent` as it is read and written, and which traces are recorded. Pure.

use std::fmt;

/// The length of a `traceparent`.
const LENGTH: usize = 55;
/// The bits of a trace id that are random in every id, and decide about sampling.
const RANDOM_BITS: u32 = 56;

/// What a job carries in place of a `traceparent` if the request that stored it began a trace that is not recorded: one
/// byte instead of a context that nobody looks for. Without it, its attempts would be drawn a second time.
pub const NOT_RECORDED: &str = "-";

/// The id of a trace. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

impl TraceId {
    /// Of 16 random or derived bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        // Zero means "no trace".
        Self(if number == 0 { 1 } else { number })
    }

    /// The bytes that the id was made of.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

/// Thirty-two hexadecimal digits.
impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The id of a span within its trace. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

impl SpanId {
    /// Of a random or derived number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(if number == 0 { 1 } else { number })
    }

    /// The id as eight bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

/// Sixteen hexadecimal digits.
impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Where in which trace something happens, and whether the trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span that is going on.
    pub span: SpanId,
    /// Whether spans of the trace are recorded.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent` of version 00: `00-trace-span-flags` in lower-case hexadecimal. Anything else is none: by
    /// the standard, a receiver ignores what it cannot read.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != LENGTH {
            return None;
        }
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version != "00" || parts.next().is_some() {
            return None;
        }
        let trace = hex(trace, 32).filter(|number| *number != 0)?;
        let span = hex(span, 16).and_then(|number| u64::try_from(number).ok()).filter(|number| *number != 0)?;
        let is_sampled = hex(flags, 2)? & 1 == 1;
        Some(Self { trace: TraceId(trace), span: SpanId(span), is_sampled })
    }

    /// The context of another span of the same trace.
    #[must_use]
    pub const fn with_span(self, span: SpanId) -> Self {
        Self { span, ..self }
    }
}

/// The `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every lease answer has one for each job, so it is written by hand: a tenth of the time of `{:032x}`.
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        put_hex(&mut text[3..35], &self.trace.to_bytes());
        put_hex(&mut text[36..52], &self.span.to_bytes());
        text[LENGTH - 1] += u8::from(self.is_sampled);
        f.write_str(std::str::from_utf8(&text).expect("it is ASCII"))
    }
}

fn put_hex(to: &mut [u8], bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in to.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

fn hex(text: &str, length: usize) -> Option<u128> {
    let is_lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == length && text.bytes().all(is_lower_hex)).then(|| u128::from_str_radix(text, 16).ok())?
}

/// The share of new traces that is recorded. A trace that came from elsewhere has its decision with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleShare {
    /// Traces whose random bits are at least this number are recorded.
    least: u64,
}

impl SampleShare {
    /// Every trace.
    pub const ALL: Self = Self { least: 0 };

    /// From 0 (no trace) to 1 (every trace), such as `0.01`; none beyond.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let share: f64 = text.trim().parse().ok()?;
        if !(0.0..=1.0).contains(&share) {
            return None;
        }
        let all = (1_u64 << RANDOM_BITS) as f64;
        Some(Self { least: ((1.0 - share) * all).round() as u64 })
    }

    /// Whether a new trace is recorded. By its id, so that every node decides alike.
    #[must_use]
    pub const fn picks(self, trace: TraceId) -> bool {
        (trace.0 as u64 & ((1 << RANDOM_BITS) - 1)) >= self.least
    }
}

impl Default for SampleShare {
    fn default() -> Self {
        Self::ALL
    }
}
