//! `windlass serve --check`: asks the node that runs with the same settings whether it is ready. For health checks of
//! containers and scripts.

use crate::announce::reachable;
use crate::cli::Error;
use crate::cli::remote::api::Api;
use crate::cli::terminal::words::plain;
use crate::config::Config;
use std::time::Duration;
use windlass::Clock;
use windlass_core::Millis;

/// A node that takes longer to answer is not ready.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait before asking again.
const AGAIN: Millis = Millis::new(100);

/// Asks until the node is ready or the time is up; without a time, once.
pub(crate) async fn run(config: &Config, within: Millis) -> Result<String, Error> {
    let address = config.text("listen").parse().map(reachable);
    let address = address.map_err(|_| Error::BadInput("`listen` is not an address and port".into()))?;
    let url = format!("http://{address}");
    let clock = Clock::system();
    let began = clock.monotonic();
    loop {
        let why = match ask(&url).await {
            Ok(store) => return Ok(format!("{url} is ready, on {store}\n")),
            Err(why) => why,
        };
        if clock.monotonic() - began + AGAIN > within {
            return Err(Error::Unavailable(format!("{url} is not ready: {why}")));
        }
        clock.sleep(AGAIN).await;
    }
}

async fn ask(url: &str) -> Result<String, String> {
    let api = Api::server(url, None).map_err(|error| error.to_string())?;
    match tokio::time::timeout(ANSWER_LIMIT, api.get("/readyz")).await {
        Ok(Ok(ready)) => Ok(plain(&ready["store"])),
        Ok(Err(error)) => Err(error.to_string().lines().next().unwrap_or_default().to_owned()),
        Err(_) => Err("it does not answer".into()),
    }
}
