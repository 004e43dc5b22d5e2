//! The same metrics as values, for exporters that push them. They are read from the text that Prometheus scrapes, so
//! that a metric is defined once: the registry offers no other way to walk over it.

use std::iter::Peekable;
use std::str::Lines;

/// A metric with all its points, under the name that its samples have in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// `windlass_jobs_total`
    pub name: String,
    /// What it measures.
    pub help: String,
    /// Its values, one for each label set.
    pub points: Points,
}

/// The points of a metric, each with its labels.
#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    /// Counted since this process began; they never fall.
    Counter(Vec<(Labels, Number)>),
    /// As they are now.
    Gauge(Vec<(Labels, Number)>),
    /// Distributions since this process began.
    Histogram(Vec<(Labels, Distribution)>),
}

/// Names and values.
pub type Labels = Vec<(String, String)>;

/// A number as it was counted or measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A count.
    Whole(i64),
    /// A measurement.
    Real(f64),
}

/// A histogram's values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution {
    /// The upper bounds of the buckets; the last bucket has none.
    pub bounds: Vec<f64>,
    /// How many values are in each bucket: one more than there are bounds.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl Distribution {
    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Reads the text of a registry. Lines that it does not know are left out.
pub(super) fn read(text: &str) -> Vec<Metric> {
    let mut lines = text.lines().peekable();
    let mut metrics = Vec::new();
    while let Some(line) = lines.next() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) else { continue };
        let kind = lines.next_if(|line| line.starts_with("# TYPE ")).and_then(|line| line.rsplit(' ').next());
        let samples = samples(&mut lines);
        let points = match kind {
            Some("counter") => Points::Counter(numbers(&samples)),
            // An information is a gauge that is always 1.
            Some("gauge" | "info") => Points::Gauge(numbers(&samples)),
            Some("histogram") => Points::Histogram(distributions(name, samples)),
            _ => continue,
        };
        let suffix = match kind {
            Some("counter") => "_total",
            Some("info") => "_info",
            _ => "",
        };
        // The encoder ends every help with a full stop.
        let help = help.strip_suffix('.').unwrap_or(help).to_owned();
        metrics.push(Metric { name: format!("{name}{suffix}"), help, points });
    }
    metrics
}

/// One line of a metric: its name with suffixes, labels and value.
type Sample<'a> = (&'a str, Labels, &'a str);

/// The samples up to the next metric.
fn samples<'a>(lines: &mut Peekable<Lines<'a>>) -> Vec<Sample<'a>> {
    let mut samples = Vec::new();
    while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
        samples.extend(sample(line));
    }
    samples
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let Some(rest) = rest.strip_prefix('{') else { return Some((name, Vec::new(), rest.trim())) };
    let (labels, value) = labels(rest)?;
    Some((name, labels, value.trim()))
}

/// Labels after their `{`, and what follows their `}`.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.push((name.to_owned(), value));
        rest = after.strip_prefix(',').unwrap_or(after);
    }
}

/// A value after its first quotation mark, and what follows the last.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

fn numbers(samples: &[Sample<'_>]) -> Vec<(Labels, Number)> {
    let number = |text: &str| {
        // The encoder writes whole numbers without a point, and no others.
        let whole = text.parse().ok().map(Number::Whole);
        whole.or_else(|| text.parse().ok().map(Number::Real))
    };
    samples.iter().filter_map(|(_, labels, value)| Some((labels.clone(), number(value)?))).collect()
}

/// Buckets are written as running totals, in order, with the sum and the count of their label set before them.
fn distributions(name: &str, samples: Vec<Sample<'_>>) -> Vec<(Labels, Distribution)> {
    let mut all: Vec<(Labels, Distribution)> = Vec::new();
    for (sample, mut labels, value) in samples {
        let bound = labels.iter().position(|(name, _)| name == "le").map(|at| labels.remove(at).1);
        let at = all.iter().rposition(|(known, _)| *known == labels).unwrap_or_else(|| {
            all.push((labels, Distribution::default()));
            all.len() - 1
        });
        let distribution = &mut all[at].1;
        match (sample.strip_prefix(name), bound) {
            (Some("_sum"), None) => distribution.sum = value.parse().unwrap_or_default(),
            (Some("_bucket"), Some(bound)) => {
                let so_far = distribution.count();
                distribution.counts.push(value.parse().unwrap_or(so_far).saturating_sub(so_far));
                distribution.bounds.extend(bound.parse().ok().filter(|bound: &f64| bound.is_finite()));
            }
            (_, _) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Distribution, Metric, Number, Points, read};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::metrics::info::Info;
    use prometheus_client::registry::Registry;
    use std::sync::atomic::AtomicU64;

    fn labelled(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn what_the_encoder_writes_is_read_back() {
        let odd = "a \"b\\n\" \\ {c=\"d\"},\n";
        let mut registry = Registry::default();
        let counts = Family::<Vec<(&str, String)>, Counter>::default();
        counts.get_or_create(&vec![("queue", odd.to_owned())]).inc_by(7);
        registry.register("jobs", "Jobs done", counts);
        let age = Gauge::<f64, AtomicU64>::default();
        age.set(2.0);
        registry.register("age_seconds", "Age", age);
        let below = Gauge::<i64>::default();
        below.set(-3);
        registry.register("below", "Below", below);
        registry.register("build", "Build", Info::new([("version", "1.2")]));
        let times = Family::<Vec<(&str, String)>, Histogram>::new_with_constructor(|| Histogram::new([0.5, 2.0]));
        for (queue, value) in [("a", 0.25), ("b", 1.0), ("a", 1.0), ("a", 9.0), ("a", 1.5)] {
            times.get_or_create(&vec![("queue", queue.to_owned())]).observe(value);
        }
        registry.register("run_seconds", "Times", times);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        let mut metrics = read(&text);
        let Some(Metric { name, points: Points::Histogram(mut found), .. }) = metrics.pop() else { panic!("{text}") };
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let of = |counts: [u64; 3], sum| Distribution { bounds: vec![0.5, 2.0], counts: counts.into(), sum };
        let expected =
            vec![(labelled("queue", "a"), of([1, 2, 1], 11.75)), (labelled("queue", "b"), of([0, 1, 0], 1.0))];
        assert_eq!((name.as_str(), found), ("run_seconds", expected));

        let metric = |name: &str, help: &str, points| Metric { name: name.into(), help: help.into(), points };
        let expected = [
            metric("jobs_total", "Jobs done", Points::Counter(vec![(labelled("queue", odd), Number::Whole(7))])),
            metric("age_seconds", "Age", Points::Gauge(vec![(Vec::new(), Number::Real(2.0))])),
            metric("below", "Below", Points::Gauge(vec![(Vec::new(), Number::Whole(-3))])),
            metric("build_info", "Build", Points::Gauge(vec![(labelled("version", "1.2"), Number::Whole(1))])),
        ];
        assert_eq!(metrics, expected);
    }
}
