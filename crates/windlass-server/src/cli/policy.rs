//! `windlass policy`: list, preview and explain retry policies.

mod error_input;

use super::terminal::grid::{Grid, number, text, wrapped};
use super::terminal::screen::{Screen, wrap};
use super::{Error, terminal::plot};
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use windlass_core::policy::{PRESETS, Partial, Policy, PolicyError, Role};
use windlass_core::{Failure, Jitter, explain, preview};

const EXAMPLES: &str = "\
Examples:
  windlass policy list
  windlass policy preview full-jitter
  windlass policy preview 'exponential:base=1s,factor=2,cap=5m,jitter=full,retries=5' --count 10
  windlass policy preview 'steps:30s/60s/120s,retries=3' --json
  windlass policy preview stepped --error NotFoundError
  windlass policy explain exponential

A policy is a preset's name, or a line: STRATEGY:key=value,… with the strategies exponential,
linear, fixed, fibonacci, steps (or a preset) and the keys base, factor, cap, jitter, retries or
attempts, maxElapsed, maxCrashes, giveUpOn=A|B|4xx, retryOn=A|B, maxRetryAfter, and last rules=[…] (JSON).
Omitted fields come from the preset of that name. Durations: 500ms, 30s, 1m30s, 2h, or whole milliseconds.
Exit codes: 0 done, 2 bad input.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: PolicyAction,
}

#[derive(Debug, Subcommand)]
enum PolicyAction {
    /// List the presets with their numbers.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a policy's delays, jitter windows and totals, with a plot of the windows.
    #[command(after_help = EXAMPLES)]
    Preview {
        #[command(flatten)]
        subject: Subject,
        /// How many retries to show, 1 to 1000 [default: as many as the policy allows].
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        count: Option<u32>,
        /// Show what a failure of this class gets: CLASS, CLASS:STATUS, or a status such as 503.
        #[arg(long, value_name = "CLASS[:STATUS]", value_parser = error_input::failure)]
        error: Option<Failure>,
        /// The message of that failure, for rules that look at it.
        #[arg(long, value_name = "TEXT", requires = "error")]
        message: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Describe in words what a policy does.
    #[command(after_help = EXAMPLES)]
    Explain {
        #[command(flatten)]
        subject: Subject,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Subject {
    /// A preset's name, or a line.
    #[arg(value_name = "NAME|LINE")]
    policy: String,
    /// Who runs the jobs; sets the classes to give up on if the policy lists none
    /// [default: http for the preset `http`, delivery for `stepped`, else handler].
    #[arg(long = "for", value_name = "WHO")]
    runner: Option<Runner>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Runner {
    Handler,
    Http,
    Delivery,
}

pub(crate) fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    match &args.action {
        PolicyAction::List { json: true } => {
            Ok(pretty(&json!({ "items": PRESETS.iter().map(listed).collect::<Vec<_>>() })))
        }
        PolicyAction::List { json: false } => Ok(list(screen)),
        PolicyAction::Preview { subject, error: Some(error), message, json, .. } => {
            let failure = Failure { message: message.clone().unwrap_or_default(), ..error.clone() };
            Ok(error_input::explained(&subject.read(screen)?, &failure, *json, screen))
        }
        PolicyAction::Preview { subject, count, json, .. } => {
            let policy = subject.read(screen)?;
            let shown = preview(&policy, count.unwrap_or(policy.max_retries));
            Ok(if *json { pretty(&shown.to_json(&policy)) } else { show(subject, &policy, &shown, screen) })
        }
        PolicyAction::Explain { subject, json } => {
            let policy = subject.read(screen)?;
            let words = explain(&policy);
            Ok(if *json {
                pretty(&json!({ "policy": policy.to_json(), "line": policy.to_string(), "explanation": words }))
            } else {
                format!("{}\n", wrap(&words, screen.width))
            })
        }
    }
}

impl Subject {
    fn read(&self, screen: &Screen) -> Result<Policy, Error> {
        read(&self.policy, self.role(), screen)
    }

    fn role(&self) -> Role {
        match self.runner {
            Some(Runner::Handler) => Role::Handler,
            Some(Runner::Http) => Role::Http,
            Some(Runner::Delivery) => Role::Delivery,
            None => usual_role(&self.policy),
        }
    }
}

/// Reads a preset's name or a line.
pub(super) fn read(line: &str, role: Role, screen: &Screen) -> Result<Policy, Error> {
    let policy = Partial::parse_line(line).and_then(|level| resolve(&level, role));
    policy.map_err(|error| Error::BadInput(pointed_at(line, &error, screen)))
}

/// Who usually runs jobs under this policy.
pub(super) fn usual_role(line: &str) -> Role {
    match line.split(':').next().unwrap_or_default().trim() {
        "http" => Role::Http,
        "stepped" => Role::Delivery,
        _ => Role::Handler,
    }
}

fn resolve(level: &Partial, role: Role) -> Result<Policy, PolicyError> {
    Partial::resolve(std::slice::from_ref(level), &role.default_give_up_on())
}

/// The policy as it was written, with a caret under the wrong part, and then the message.
fn pointed_at(line: &str, error: &PolicyError, screen: &Screen) -> String {
    let what = if error.field.is_empty() { String::new() } else { format!("{}: ", error.field) };
    let message = wrap(&format!("{what}{}", error.message), screen.width.saturating_sub("error: ".len()));
    let Some(position) = error.position.filter(|p| line.is_char_boundary(*p)) else { return message };
    // Control characters such as line breaks would move the caret.
    let shown: String = line.chars().map(|c| if c.is_control() { '�' } else { c }).collect();
    let column = line[..position].chars().count();
    format!("wrong policy at position {}\n\n  {shown}\n  {}^\n\n{message}", column + 1, " ".repeat(column))
}

fn show(subject: &Subject, policy: &Policy, shown: &windlass_core::Preview, screen: &Screen) -> String {
    let title = format!("{}: {}", subject.policy.trim(), explain(policy));
    let mut text = format!("{}\n", wrap(&title, screen.width));
    if !shown.delays.is_empty() {
        text.push('\n');
        text.push_str(&plot::table(shown, policy.max_retries, screen));
    }
    let mut notes = Vec::new();
    if shown.delays.len() > policy.max_retries as usize {
        notes.push(format!(
            "The policy gives up after retry {}; the rest shows how it would continue.",
            policy.max_retries
        ));
    }
    if policy.jitter == Jitter::Decorrelated {
        notes.push("Decorrelated jitter: each window is the widest possible, and `delay` is its middle.".into());
    }
    for note in notes {
        text.push_str(&format!("\n{}\n", wrap(&note, screen.width)));
    }
    text
}

fn listed(preset: &windlass_core::policy::Preset) -> Value {
    // A preset does not set the lists of classes, so they are not shown as its own.
    json!({ "name": preset.name, "purpose": preset.purpose, "policy": preset.partial().to_json() })
}

fn list(screen: &Screen) -> String {
    let mut grid = Grid::new([
        text("preset"),
        number("retries"),
        wrapped("delays"),
        text("cap").optional(),
        text("jitter").optional(),
        wrapped("for"),
    ]);
    for preset in PRESETS {
        let policy = resolve(&preset.partial(), Role::Http).expect("presets are whole");
        let delays = preview(&policy, policy.max_retries).delays;
        let delays: Vec<String> = delays.iter().map(|d| d.delay.to_string()).collect();
        grid.row([
            preset.name.into(),
            policy.max_retries.to_string().into(),
            delays.join(" ").into(),
            policy.max_delay.map_or_else(|| "none".to_owned(), |cap| cap.to_string()).into(),
            policy.jitter.to_string().into(),
            preset.purpose.into(),
        ]);
    }
    grid.render(screen)
}

pub(super) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
