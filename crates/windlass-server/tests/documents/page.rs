//! A document: its examples (a command after `$` and its output) and its plain commands.

use std::path::PathBuf;

/// Commands that are not run here, and why.
const ELSEWHERE: [&str; 2] = [
    // Runs this test itself.
    "scripts/test",
    // Builds what is being tested.
    "cargo build --release",
];

pub(crate) struct Page {
    path: PathBuf,
    pub(crate) text: String,
    is_changed: bool,
}

/// A command of a `console` block, and the output shown below it.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    /// As written in the text, after `$ `.
    written: String,
    pub(crate) command: String,
    pub(crate) shown: String,
}

impl Page {
    pub(crate) fn read(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { path, text, is_changed: false }
    }

    fn blocks(&self, language: &str) -> Vec<&str> {
        let fence = format!("```{language}\n");
        self.text.split(&fence).skip(1).map(|block| block.split("```").next().unwrap()).collect()
    }

    pub(crate) fn examples(&self) -> Vec<Example> {
        let mut examples = Vec::new();
        for block in self.blocks("console") {
            for example in format!("\n{block}").split("\n$ ").skip(1) {
                let mut lines = example.lines();
                let mut written = lines.next().unwrap().to_owned();
                while written.ends_with('\\') {
                    written.push('\n');
                    written.push_str(lines.next().unwrap());
                }
                let command = written.replace("\\\n", " ");
                examples.push(Example { written, command, shown: lines.collect::<Vec<_>>().join("\n") });
            }
        }
        examples
    }

    /// The lines of `sh` blocks.
    pub(crate) fn commands(&self) -> Vec<String> {
        let lines = self.blocks("sh").into_iter().flat_map(str::lines).map(str::trim);
        let own = lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !ELSEWHERE.contains(line));
        own.map(|line| line.replace("cargo run --release -- ", "windlass ")).collect()
    }

    /// The `bash` block, which readers paste whole.
    pub(crate) fn pasted(&self) -> &str {
        self.blocks("bash").first().copied().unwrap()
    }

    /// All `sh` blocks, as one script.
    pub(crate) fn script(&self) -> String {
        self.blocks("sh").concat()
    }

    /// Replaces the shown output with the real one.
    pub(crate) fn replace(&mut self, example: &Example, printed: &str) {
        let (shown, printed) = (example.shown.trim_end(), printed.trim_end());
        let head = format!("$ {}", example.written);
        let old = if shown.is_empty() { head.clone() } else { format!("{head}\n{shown}") };
        let new = if printed.is_empty() { head } else { format!("{head}\n{printed}") };
        assert!(self.text.contains(&old), "{old}");
        self.text = self.text.replacen(&old, &new, 1);
        self.is_changed = true;
    }

    pub(crate) fn save(&self) {
        if self.is_changed {
            std::fs::write(&self.path, &self.text).unwrap();
        }
    }
}
