//! The bodies as files, which `scripts/test-alerts` also checks against the services' own types.

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_767_268_800_000);

fn alert(status: AlertStatus) -> Alert {
    Alert {
        rule: "slow_email".into(),
        measure: "oldest_due".into(),
        subject: "email".into(),
        tenant: "acme".into(),
        queue: "email".into(),
        status,
        incident: 3,
        since: NOW - Millis::from_secs(600),
        fired_at: Some(NOW - Millis::from_secs(300)),
        resolved_at: (status == AlertStatus::Resolved).then_some(NOW),
        notified_at: Some(NOW),
        detail: "a job has been due for 5m <a&b>".into(),
    }
}

fn operator(form: NoticeForm) -> Operator {
    let secret = (form == NoticeForm::PagerDuty).then(|| "R0".to_owned());
    Operator { name: "ops".into(), form, url: "https://ops.example/".into(), secret }
}

fn sent(news: News, form: NoticeForm) -> NewJob {
    let status = if news == News::Resolved { AlertStatus::Resolved } else { AlertStatus::Firing };
    notice(news, &alert(status), &operator(form), "01ab", NOW)
}

#[test]
fn each_form_is_as_its_example() {
    for form in NoticeForm::ALL {
        let all = [News::Fired, News::Reminder, News::Resolved, News::Test];
        let bodies: Vec<Value> =
            all.into_iter().map(|news| serde_json::from_str(&sent(news, form).payload).unwrap()).collect();
        let real = format!("{:#}\n", Value::Array(bodies));
        let path = format!("{}/src/alert/notice/examples/{}.json", env!("CARGO_MANIFEST_DIR"), form.as_str());
        if std::env::var_os("WINDLASS_TEST_REWRITE").is_some() {
            std::fs::write(&path, &real).unwrap();
        }
        let shown = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(real, shown, "{path} is out of date; WINDLASS_TEST_REWRITE=1 writes it");
    }
}

#[test]
fn the_key_of_pagerduty_is_not_in_the_stored_body_and_slack_gets_no_commands() {
    let pager = sent(News::Fired, NoticeForm::PagerDuty);
    assert!(!pager.payload.contains("R0") && pager.payload.contains(SECRET_PLACE));
    assert_eq!(pager.http.unwrap().secret.as_deref(), Some("body:R0"));
    let slack = sent(News::Fired, NoticeForm::Slack).payload.to_string();
    assert!(slack.contains("&lt;a&amp;b&gt;") && !slack.contains("<a"), "{slack}");
}

#[test]
fn notices_of_one_incident_share_the_key_and_have_ids_of_their_own() {
    let key =
        |news| serde_json::from_str::<Value>(&sent(news, NoticeForm::PagerDuty).payload).unwrap()["dedup_key"].clone();
    assert_eq!(key(News::Fired), key(News::Resolved));
    assert_eq!(key(News::Fired), key(News::Reminder));
    let id = |news| sent(news, NoticeForm::Json).http.unwrap().webhook_id.clone().unwrap();
    let ids = [id(News::Fired), id(News::Reminder), id(News::Resolved)];
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
}
