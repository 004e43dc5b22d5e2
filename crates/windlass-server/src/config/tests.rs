//! Layers, unknown keys, sources, and what is written to the store.

use super::{Config, ConfigError, Inputs, Protocol, Source, Target, file, write_to_store};
use serde_json::{Value, json};
use std::path::Path;
use windlass::Windlass;
use windlass::client::SettingKey;

fn from_file(text: &str) -> Result<Config, ConfigError> {
    let mut config = Config::defaults();
    file::parse(&mut config, Path::new("windlass.toml"), text).map(|()| config)
}

fn from_environment(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Config::load(&Inputs { environment, ..Inputs::default() })
}

#[test]
fn later_layers_override_and_every_value_keeps_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.toml");
    std::fs::write(&path, "listen = \"127.0.0.1:1\"\nconcurrency = 5\n[logs]\nformat = \"json\"\n").unwrap();
    let environment =
        vec![("WINDLASS_CONCURRENCY".to_owned(), "6".to_owned()), ("WINDLASS_LEASE".to_owned(), "10s".to_owned())];
    let flags = vec![("lease", "--lease", json!("20s"))];
    let config = Config::load(&Inputs { file: Some(path.clone()), env_file: None, environment, flags }).unwrap();
    assert_eq!((config.text("listen"), config.whole("concurrency")), ("127.0.0.1:1", 6));
    assert_eq!((config.text("logs.format"), config.duration("lease").get()), ("json", 20_000));
    assert_eq!(config.source("listen"), &Source::File { path: path.clone(), line: 1 });
    assert_eq!(config.source("logs.format"), &Source::File { path, line: 4 });
    assert_eq!(config.source("concurrency").to_string(), "environment WINDLASS_CONCURRENCY");
    assert_eq!(config.source("lease").to_string(), "flag --lease");
    assert_eq!(config.source("grace"), &Source::Default);
}

#[test]
fn unknown_and_wrong_keys_are_reported_with_their_line_and_the_nearest_known() {
    for (text, reported) in [
        ("listn = \"x\"", "windlass.toml:1: `listn` is not a known key; did you mean `listen`?"),
        (
            "\n[egress]\nallowPrivateTarget = true",
            "windlass.toml:3: `egress.allowPrivateTarget` is not a known key; did you mean `egress.allowPrivateTargets`?",
        ),
        (
            "[queues.email]\npolcy = \"http\"",
            "windlass.toml:2: `queues.email.polcy` is not a known key; did you mean `policy`?",
        ),
        ("[queue.email]\npolicy = \"http\"", "windlass.toml:1: `queue` is not a known key; did you mean `queues`?"),
        ("concurrency = \"many\"", "windlass.toml:1: `concurrency` must be a whole number above 0"),
        ("listen = \"localhost\"", "windlass.toml:1: `listen` must be an address and port"),
        ("[queues.Email]", "windlass.toml:1: queue `Email` is not a name"),
        ("[queues.a.limits]\nconcurrency = 0", "`queues.a.limits.concurrency`: 0 is not accepted"),
        ("[queues.a]\nbreaker = \"maybe\"", "`queues.a.breaker`: \"maybe\" is not accepted"),
        ("[[queues.a.rules]]\nthen = \"retry\"", "`queues.a.rules.0.match`: is missing"),
        ("[queues.a]\npolicy = \"expo\"", "queues.a.policy: "),
        ("[queues.a.retention]\nfailed = \"soon\"", "`queues.a.retention` must be a table"),
        ("[policies]\na = \"nothing\"", "policies.a: "),
        ("[defaults]\ngiveUpOn = \"x\"", "`defaults.giveUpOn` must be a list"),
        ("[tenants.acme.webhook]\nurl = \"ftp://x\"", "tenants.acme.webhook: "),
        ("[alerts.rules.dead]\nthreshold = 1", "`alerts.rules.dead.measure` must be one of"),
        ("a = ", "windlass.toml:1: "),
    ] {
        let error = from_file(text).unwrap_err().to_string();
        assert!(error.contains(reported), "{text}: {error}");
    }
}

#[test]
fn alert_rules_are_read_field_by_field_and_defaults_fill_the_gaps() {
    let text = "[alerts.rules.dead_letters]\nthreshold = 10\n\
        [alerts.rules.slow_email]\nmeasure = \"oldest_due\"\nthreshold = \"2m\"\nqueue = \"email\"\n\
        [alerts.rules.slow_sms]\nmeasure = \"oldest_due\"\nthreshold = 60000\nqueue = \"sms\"\nfor = 1500\n";
    let rules = from_file(text).unwrap().alerts().rules;
    let reported: Vec<_> =
        rules.iter().map(|r| (r.measure.as_str(), r.subject(), r.threshold, r.lasting.get() / 100)).collect();
    let expected =
        [("dead_letters", "", 10, 3000), ("oldest_due", "email", 120_000, 0), ("oldest_due", "sms", 60_000, 15)];
    assert_eq!(reported, expected);
    assert_eq!(from_file("").unwrap().alerts().rules.len(), 7, "without any, the default rules");
    let shown = format!("{:?}", from_file("").unwrap().shown());
    assert!(shown.contains("alerts.rules.retry_rate"), "{shown}");
    for (field, reported) in [
        ("for = \"soon\"", "`alerts.rules.dead_letters.for` must be a duration"),
        ("for = true", "`alerts.rules.dead_letters.for` must be a duration"),
        ("threshold = \"many\"", "`alerts.rules.dead_letters.threshold` must be a whole number"),
        ("threshold = -1", "`alerts.rules.dead_letters.threshold` must be a whole number"),
        ("minCount = 1.5", "`alerts.rules.dead_letters.minCount` must be a whole number"),
        ("queue = 7", "`alerts.rules.dead_letters.queue` must be the name of a queue"),
        ("queue = \"No Queue\"", "`alerts.rules.dead_letters.queue`: "),
        ("measure = 7", "`alerts.rules.dead_letters.measure` must be one of dead_letters, retry_rate"),
        ("treshold = 7", "`alerts.rules.dead_letters.treshold` is not a known key; did you mean `threshold`?"),
    ] {
        let error = from_file(&format!("[alerts.rules.dead_letters]\n{field}")).unwrap_err().to_string();
        assert!(error.contains(reported), "{field}: {error}");
    }
}

#[test]
fn two_rules_that_would_share_their_alerts_are_refused() {
    let rules = |queue: &str| {
        let text = format!(
            "[alerts.rules.a]\nmeasure = \"exhausted\"\n{queue}[alerts.rules.exhausted]\n{queue}threshold = 3\n"
        );
        from_file(&text).unwrap_err().to_string()
    };
    let both = rules("");
    assert!(
        both.contains("`alerts.rules.exhausted` measures exhausted of all queues, as `alerts.rules.a` does"),
        "{both}"
    );
    assert!(rules("queue = \"email\"\n").contains("of queue `email`"), "{both}");
    let apart = "[alerts.rules.exhausted]\n[alerts.rules.a]\nmeasure = \"exhausted\"\nqueue = \"a\"\n";
    assert_eq!(from_file(apart).unwrap().alerts().rules.len(), 2);
}

#[test]
fn operators_that_could_not_be_notified_are_refused() {
    let good = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    for (name, value, reported) in [
        (
            "WINDLASS_ALERTS_URLS",
            "ops.example/hook",
            "`alerts.urls` holds `ops.example/***`: not a URL; write https://",
        ),
        ("WINDLASS_ALERTS_URLS", "https://a.example, ftp://b.example", "`alerts.urls` holds `ftp://b.example`: "),
        ("WINDLASS_ALERTS_URLS", "https://me:pw@a.example", "`alerts.urls` holds `https://me:***@a.example`: "),
        (
            "WINDLASS_ALERTS_URLS",
            "https://a.example,https://a.example",
            "`alerts.urls` names `https://a.example` twice",
        ),
        (
            "WINDLASS_ALERTS_URLS",
            "oncall=pagerduty+https://a.example/v2?routing_key=s3cret,oncall=pagerduty+https://a.example/v2?routing_key=s3cret",
            "`alerts.urls` names `oncall=pagerduty+https://a.example/***` twice",
        ),
        (
            "WINDLASS_ALERTS_URLS",
            "my team=slack+https://chat.example/hooks/s3cret",
            "`alerts.urls` holds `my team=slack+https://chat.example/***`, which has a wrong name",
        ),
        (
            "WINDLASS_ALERTS_URLS",
            "team=slak+https://chat.example/s3cret",
            "`alerts.urls` holds `team=slak+https://chat.example/***`, which has an unknown form",
        ),
        (
            "WINDLASS_ALERTS_SECRET",
            "s3cret",
            "`alerts.secret` is not a signing secret: a secret is `whsec_` followed by base64",
        ),
        (
            "WINDLASS_ALERTS_SECRET",
            "whsec_MTIz",
            "`alerts.secret` is not a signing secret: a secret has 24 to 64 bytes",
        ),
        ("WINDLASS_ALERTS_EVERY", "1ms", "`alerts.every` must be at least 100ms"),
    ] {
        let error = from_environment(&[(name, value)]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("environment {name}: ")) && error.contains(reported), "{value}: {error}");
        assert!(!error.contains("s3cret") && !error.contains("MTIz"), "{error}");
    }
    let config = from_environment(&[("WINDLASS_ALERTS_URLS", "https://a.example/x"), ("WINDLASS_ALERTS_SECRET", good)]);
    assert_eq!(config.unwrap().alerts().operators[0].secret.as_deref(), Some(good));
}

#[test]
fn a_rule_of_the_file_that_notifies_nobody_is_refused() {
    let load = |urls: &str, notify: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.toml");
        let text = format!("[alerts]\nurls = [{urls}]\n[alerts.rules.exhausted]\nnotify = [\"{notify}\"]\n");
        std::fs::write(&path, text).unwrap();
        Config::load(&Inputs { file: Some(path), ..Inputs::default() }).map_err(|error| error.to_string())
    };
    let urls = "\"oncall=https://a.example/x\", \"https://b.example/x\"";
    let error = load(urls, "onca11").unwrap_err();
    assert!(error.contains("w.toml:3: `alerts.rules.exhausted.notify`: `onca11` is nobody"), "{error}");
    assert!(error.contains("it names oncall, b.example"), "{error}");
    for (urls, notify) in [(urls, "oncall"), (urls, "b.example"), ("", "oncall")] {
        load(urls, notify).unwrap();
    }
}

#[test]
fn a_file_with_quotas_only_leaves_a_tenants_webhook_alone() {
    let kept =
        |text: &str| from_file(text).unwrap().settings.into_iter().map(|setting| setting.key).collect::<Vec<_>>();
    let acme = windlass_core::job::Tenant::new("acme").unwrap();
    let quota = SettingKey::Quota { tenant: Some(acme.clone()) };
    assert_eq!(kept("[tenants.acme.quotas]\nwaiting = 5\n"), std::slice::from_ref(&quota));
    let both = "[tenants.acme.webhook]\nurl = \"https://x.example\"\n[tenants.acme.quotas]\nwaiting = 5\n";
    assert_eq!(kept(both), [quota, SettingKey::Tenant { name: acme }]);
}

#[test]
fn the_environment_uses_the_same_table() {
    let config =
        from_environment(&[("WINDLASS_EGRESS_ALLOW", "10.0.0.0/8, 192.168.1.0/24"), ("WINDLASS_LOGS_JOBS", "off")]);
    let config = config.unwrap();
    assert_eq!(config.list("egress.allow"), ["10.0.0.0/8", "192.168.1.0/24"]);
    assert!(!config.flag("logs.jobs"));
    let wrong = from_environment(&[("WINDLASS_LISTN", "x")]).unwrap_err().to_string();
    assert_eq!(wrong, "environment WINDLASS_LISTN: is not a known setting; did you mean `WINDLASS_LISTEN`?");
    assert!(from_environment(&[("WINDLASS_GRACE", "long")]).is_err());
    assert!(from_environment(&[("WINDLASS_TOKEN", "x"), ("WINDLASS_TEST_POSTGRES", "x"), ("PATH", "x")]).is_ok());
}

#[test]
fn variables_that_kubernetes_sets_for_a_service_are_explained() {
    for name in [
        "WINDLASS_SERVICE_HOST",
        "WINDLASS_SERVICE_PORT",
        "WINDLASS_SERVICE_PORT_HTTP",
        "WINDLASS_PORT",
        "WINDLASS_PORT_80_TCP",
        "WINDLASS_PORT_80_TCP_PROTO",
        "WINDLASS_PORT_80_TCP_PORT",
        "WINDLASS_PORT_80_TCP_ADDR",
        "WINDLASS_QUEUE_MAIL_SERVICE_HOST",
    ] {
        let error = from_environment(&[(name, "10.0.0.1")]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("enableServiceLinks: false"), "{error}");
    }
    let set =
        from_environment(&[("WINDLASS_QUEUE_SERVICE_PORT_CONCURRENCY", "3"), ("REDIS_PORT", "tcp://10.0.0.1:6379")]);
    assert_eq!(set.unwrap().limits.len(), 1, "queues may have such names, and other services are not ours");
}

#[test]
fn secrets_are_never_shown() {
    let text = "store = \"postgres://me:s3cret@db/jobs?password=s3cret\"\n[alerts]\nsecret = \"whsec_s3cret\"\n\
        [tenants.acme.webhook]\nurl = \"https://x.example\"\nsecret = \"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"\n";
    let shown = format!("{:?}", from_file(text).unwrap().shown());
    assert!(!shown.contains("s3cret") && !shown.contains("MDEyMzQ1"), "{shown}");
    assert!(shown.contains("postgres://me:***@db/jobs"), "{shown}");
}

#[tokio::test]
async fn settings_and_limits_are_written_to_the_store() {
    let text = "[defaults]\npolicy = \"queue-worker\"\n[policies]\nours = \"theirs\"\ntheirs = \"fixed:base=5s,retries=9\"\n\
        [queues.payments]\npolicy = \"ours\"\n[queues.payments.retention]\nfailed = \"forever\"\n[kinds.Report]\npolicy = { maxRetries = 1 }\n";
    let mut config = from_file(text).unwrap();
    config.attempts = vec![("PAYMENT".into(), "7".into()), ("EMAIL".into(), "2".into())];
    let windlass = Windlass::open("memory:").await.unwrap();
    assert!(write_to_store(&config, &windlass, "a").await.unwrap() > 4);
    assert_eq!(write_to_store(&config, &windlass, "b").await.unwrap(), 0, "the second node has nothing to write");
    let stored = windlass.settings().all().await.unwrap();
    let of = |name: &str| -> Value {
        let text = stored.iter().find(|(key, _)| key.parts() == ("queue", "*", name)).map(|(_, text)| text.clone());
        text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
    };
    assert_eq!(
        of("payments"),
        json!({"policy": {"policy": "ours", "maxAttempts": 7}, "retention": {"failed": "forever"}})
    );
    let attempts = async |queue: &str, kind: &str| {
        let job = windlass.enqueue_kind(kind, &json!({})).queue(queue).complete().await.unwrap();
        job.policy.max_attempts()
    };
    assert_eq!(attempts("payments", "a").await, 7);
    assert_eq!(attempts("email", "a").await, 2);
    assert_eq!(attempts("reports", "a").await, 3, "the default number under queue-worker");
    assert_eq!(attempts("other", "a").await, 5);
    assert_eq!(attempts("other", "Report").await, 2);
    config.attempts = vec![("EMAIL".into(), "many".into())];
    let wrong = write_to_store(&config, &windlass, "a").await.unwrap_err().to_string();
    assert!(wrong.contains("MAX_EMAIL_RETRY_ATTEMPTS"), "{wrong}");
}

/// Where traces and metrics go; empty if nowhere.
fn places(variables: &[(&str, &str)]) -> [String; 2] {
    let Some(settings) = from_environment(variables).unwrap().telemetry() else { return Default::default() };
    let place = |target: Option<Target>| target.map_or_else(String::new, |target| target.url.to_string());
    [place(settings.traces.map(|(target, _)| target)), place(settings.metrics.map(|(target, _)| target))]
}

#[test]
fn telemetry_is_off_by_default_and_follows_the_standard_variables() {
    assert!(from_environment(&[]).unwrap().telemetry().is_none());
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
    assert_eq!(places(&[base]), ["http://collector:4318/v1/traces", "http://collector:4318/v1/metrics"]);
    let config = from_environment(&[base]).unwrap();
    assert_eq!(config.source("telemetry.endpoint").to_string(), "environment OTEL_EXPORTER_OTLP_ENDPOINT");
    let config = from_environment(&[
        base,
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces.example/in"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cret%3D+x, X-Team=a"),
        ("OTEL_SERVICE_NAME", "orders"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=prod,service.name=other"),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
    ])
    .unwrap();
    let settings = config.telemetry().unwrap();
    let ((traces, _), (metrics, every)) = (settings.traces.unwrap(), settings.metrics.unwrap());
    assert_eq!((traces.url.as_str(), &*settings.service_name), ("https://traces.example/in", "orders"));
    assert_eq!((metrics.url.as_str(), every.get()), ("http://collector:4318/v1/metrics", 1500));
    for target in [traces, metrics] {
        let headers: Vec<_> =
            target.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("api-key", "s3cret=+x"), ("x-team", "a")]);
    }
    assert_eq!(settings.resource[0], ("deployment.environment".into(), "prod".into()));
    assert_eq!(config.text("telemetry.sampled"), "0.25");
    let shown = format!("{:?}", config.shown());
    assert!(!shown.contains("s3cret"), "{shown}");
    assert_eq!(places(&[base, ("OTEL_SDK_DISABLED", "true")]), ["", ""]);
    assert_eq!(places(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " "), ("OTEL_EXPORTER_OTLP_HEADERS", "a=b")]), ["", ""]);
    let own = places(&[("WINDLASS_TELEMETRY_ENDPOINT", "http://127.0.0.1:1"), base]);
    assert_eq!(own, ["http://127.0.0.1:1/v1/traces", "http://127.0.0.1:1/v1/metrics"], "Windlass's own come first");
}

#[test]
fn traces_and_metrics_are_switched_and_placed_apart() {
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    let (traces, metrics) = ("http://c:4318/v1/traces", "http://c:4318/v1/metrics");
    assert_eq!(places(&[base, ("OTEL_TRACES_EXPORTER", "none")]), ["", metrics]);
    assert_eq!(places(&[base, ("OTEL_METRICS_EXPORTER", "prometheus")]), [traces, ""]);
    assert_eq!(places(&[base, ("OTEL_METRICS_EXPORTER", "console, otlp")]), [traces, metrics]);
    let of_metrics = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m/in");
    assert_eq!(places(&[of_metrics]), ["", "http://m/in"]);
    assert_eq!(places(&[base, of_metrics]), [traces, "http://m/in"]);
    // Whoever names a place for traces only has not asked for metrics there.
    let of_traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/v1/traces");
    assert_eq!(places(&[of_traces]), ["http://t/v1/traces", ""]);
    assert_eq!(places(&[("WINDLASS_TELEMETRY_ENDPOINT", "http://t/other")]), ["http://t/other", ""]);
    let flag = ("WINDLASS_TELEMETRY_METRICS", "false");
    assert_eq!(places(&[base, flag]), [traces, ""]);

    let headers = |variables: &[(&str, &str)]| {
        let settings = from_environment(variables).unwrap().telemetry().unwrap();
        let names = |target: Target| target.headers.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
        [names(settings.traces.unwrap().0), names(settings.metrics.unwrap().0)].map(|names| names.join(","))
    };
    let general = ("OTEL_EXPORTER_OTLP_HEADERS", "a=1");
    let (traces, metrics) =
        (("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "t=1"), ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "m=1"));
    assert_eq!(headers(&[base, general]), ["a", "a"]);
    assert_eq!(headers(&[base, general, traces]), ["t", "a"]);
    assert_eq!(headers(&[base, traces]), ["t", ""], "a key for traces is not sent with metrics");
    assert_eq!(headers(&[base, general, metrics]), ["a", "m"]);
}

#[test]
fn the_authorities_of_collectors_are_named_for_all_signals_or_one() {
    let files = |variables: &[(&str, &str)]| {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:4317");
        let settings = from_environment(&[&[base], variables].concat()).unwrap().telemetry().unwrap();
        [settings.traces.unwrap().0, settings.metrics.unwrap().0]
            .map(|target| target.certificate.map_or_else(String::new, |path| path.display().to_string()))
    };
    let general = ("OTEL_EXPORTER_OTLP_CERTIFICATE", "a.pem");
    let (traces, metrics) =
        (("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "t.pem"), ("OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", "m.pem"));
    assert_eq!(files(&[]), ["", ""]);
    assert_eq!(files(&[general]), ["a.pem", "a.pem"]);
    assert_eq!(files(&[general, traces]), ["t.pem", "a.pem"]);
    assert_eq!(files(&[traces]), ["t.pem", ""]);
    assert_eq!(files(&[general, metrics]), ["a.pem", "m.pem"]);
    assert_eq!(files(&[general, ("WINDLASS_TELEMETRY_CERTIFICATE", "w.pem")]), ["w.pem", "w.pem"]);
}

#[test]
fn the_protocol_decides_about_the_path() {
    let protocols = |variables: &[(&str, &str)]| {
        let settings = from_environment(variables).unwrap().telemetry().unwrap();
        [settings.traces.unwrap().0, settings.metrics.unwrap().0]
            .map(|target| (target.protocol, target.url.to_string()))
    };
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");
    let grpc = || (Protocol::Grpc, "http://c:4317/".to_owned());
    assert_eq!(protocols(&[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), [grpc(), grpc()]);
    assert_eq!(protocols(&[base, ("WINDLASS_TELEMETRY_PROTOCOL", "grpc")]), [grpc(), grpc()]);
    let metrics = (Protocol::HttpJson, "http://c:4317/v1/metrics".to_owned());
    assert_eq!(protocols(&[base, ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")]), [grpc(), metrics]);
    let traces = (Protocol::HttpProtobuf, "http://c:4317/v1/traces".to_owned());
    let both =
        [("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"), base];
    assert_eq!(protocols(&both), [traces, grpc()]);
    let error = from_environment(&[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "thrift")]).unwrap_err().to_string();
    let expected = "environment OTEL_EXPORTER_OTLP_PROTOCOL: must be one of http/json, http/protobuf, grpc";
    assert_eq!(error, expected);
    let path = [("WINDLASS_TELEMETRY_ENDPOINT", "http://c:4317/in"), ("WINDLASS_TELEMETRY_PROTOCOL", "grpc")];
    let error = from_environment(&path).unwrap_err().to_string();
    assert!(error.ends_with("which has a path; gRPC has none: write http://HOST:4317 or https://HOST:4317"), "{error}");
}

#[test]
fn telemetry_that_could_not_be_sent_is_refused() {
    let file = "[telemetry]\nendpoint = \"http://c:4318\"\nsampled = 0.5\nresource = [\"a=b\"]\n";
    let mut config = from_file(file).unwrap();
    config.check_telemetry().unwrap();
    assert_eq!(config.telemetry().unwrap().resource, [("a".to_owned(), "b".to_owned())]);
    config = Config::defaults();
    config.check_telemetry().unwrap();
    for (name, value, reported) in [
        (
            "WINDLASS_TELEMETRY_ENDPOINT",
            "collector:4318",
            "`telemetry.endpoint` is `collector:4318`, which is not an http",
        ),
        ("WINDLASS_TELEMETRY_ENDPOINT", "grpc://c:4317", "which is not an http or https URL; write http://HOST:4318"),
        ("WINDLASS_TELEMETRY_ENDPOINT", "nothing", "`telemetry.endpoint` is `nothing`, which is not a URL"),
        ("WINDLASS_TELEMETRY_ENDPOINT", "https://me:s3cret@c", "`telemetry.endpoint` is `https://me:***@c/`: put"),
        ("WINDLASS_TELEMETRY_ENDPOINT", "https://me:s3cret@c:99999", "is `https://me:***@c:99999`, which is not a URL"),
        ("WINDLASS_TELEMETRY_ENDPOINT", "https://me:a/s3cret@c", "is `https://me:***@c`, which is not a URL"),
        ("WINDLASS_TELEMETRY_ENDPOINT", "me:s3cret@c:4318", "is `me:***@c:4318`, which is not an http or https URL"),
        ("WINDLASS_TELEMETRY_HEADERS", "s3cret", "`telemetry.headers` must have the form NAME=VALUE"),
        ("WINDLASS_TELEMETRY_HEADERS", "a b=s3cret", "`telemetry.headers` names `a b`, which is not a header's name"),
        ("WINDLASS_TELEMETRY_HEADERS", "a=s3cret%0A", "has a value for `a` with characters that no header has"),
        ("WINDLASS_TELEMETRY_HEADERS", "Host=s3cret", "names `host`, which Windlass sets itself"),
        ("WINDLASS_TELEMETRY_RESOURCE", "prod", "`telemetry.resource` must have the form NAME=VALUE"),
        ("WINDLASS_TELEMETRY_SAMPLED", "50%", "must be a number from 0 to 1, such as 0.01"),
        ("WINDLASS_TELEMETRY_METRICS_INTERVAL", "10ms", "`telemetry.metricsInterval` must be at least 100ms"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon", "must be a duration: 500ms, 30s, 1m30s, or whole milliseconds"),
        ("WINDLASS_TELEMETRY_METRICS_ENDPOINT", "m:1", "`telemetry.metricsEndpoint` is `m:1`, which is not an http"),
        ("WINDLASS_TELEMETRY_METRICS_HEADERS", "s3cret", "`telemetry.metricsHeaders` must have the form NAME=VALUE"),
        ("WINDLASS_TELEMETRY_METRICS_PROTOCOL", "udp", "must be one of same, http/json, http/protobuf, grpc"),
        ("WINDLASS_TELEMETRY_SERVICE_NAME", "", "`telemetry.serviceName` must not be empty"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "collector",
            "`telemetry.endpoint` is `collector/v1/traces`, which is not a URL",
        ),
    ] {
        let error = from_environment(&[(name, value)]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("environment {name}: ")) && error.contains(reported), "{value}: {error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
