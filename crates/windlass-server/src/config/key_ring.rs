//! The key ring: from a setting, or from a file that other users cannot read.

use anyhow::{Context as _, bail};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use windlass::KeyRing;

/// The largest key ring that is read, in bytes.
const MAX_RING: u64 = 64 * 1024;

/// The key ring that the environment names, for commands that open a store by themselves.
///
/// # Errors
/// As of [`key_ring`].
pub(crate) fn key_ring_of_environment() -> anyhow::Result<KeyRing> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    key_ring(&variable("WINDLASS_KEY_RING"), &variable("WINDLASS_KEY_RING_FILE"))
}

/// The key ring, from a text or a file; empty if neither is given.
///
/// # Errors
/// Both are given, the file cannot be read, others can read it, or a key is wrong.
pub(crate) fn key_ring(text: &str, file: &str) -> anyhow::Result<KeyRing> {
    if file.is_empty() {
        return KeyRing::parse(text).context("keyRing");
    }
    if !text.is_empty() {
        bail!("give keyRing or keyRingFile, not both");
    }
    let about = std::fs::metadata(file).with_context(|| format!("keyRingFile: {file} cannot be read"))?;
    let mode = about.permissions().mode() & 0o777;
    if !is_private(mode, about.gid(), &own_groups()) {
        bail!(
            "keyRingFile: {file} has the mode {mode:03o}, so other users can read or change it; run `chmod 600 {file}`, \
             or give it the mode 440 and a group of this process (Kubernetes: `defaultMode: 0440` and `fsGroup`)"
        );
    }
    if about.len() > MAX_RING {
        bail!("keyRingFile: {file} is too large for a key ring");
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("keyRingFile: {file} cannot be read"))?;
    let ring = KeyRing::parse(&text).with_context(|| format!("keyRingFile: {file}"))?;
    if ring.is_empty() {
        bail!("keyRingFile: {file} has no key; `windlass keys generate` makes one");
    }
    Ok(ring)
}

/// Whether only root and this process's user and groups can read the file. Kubernetes gives secrets to a group of the
/// pod, systemd gives credentials to the group of root; neither lets the group write.
fn is_private(mode: u32, group: u32, own: &[u32]) -> bool {
    let is_shared = mode & 0o040 != 0;
    mode & 0o037 == 0 && (!is_shared || group == 0 || own.contains(&group))
}

fn own_groups() -> Vec<u32> {
    let mut groups = vec![rustix::process::getegid().as_raw()];
    groups.extend(rustix::process::getgroups().unwrap_or_default().into_iter().map(rustix::process::Gid::as_raw));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_private_if_only_the_process_and_root_can_read_it() {
        const OWN: &[u32] = &[1000, 65532];
        for (mode, group, private) in [
            (0o600, 7, true),
            (0o400, 7, true),
            (0o440, 65532, true),
            (0o640, 65532, true),
            (0o440, 0, true),
            (0o440, 7, false),
            (0o460, 65532, false),
            (0o444, 65532, false),
            (0o644, 0, false),
            (0o604, 1000, false),
        ] {
            assert_eq!(is_private(mode, group, OWN), private, "{mode:o} {group}");
        }
    }

    #[test]
    fn a_file_that_everyone_can_read_is_refused_with_the_mode_to_use() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ring.keys");
        std::fs::write(&path, "one:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n").unwrap();
        let read = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            key_ring("", path.to_str().unwrap()).map_err(|error| error.to_string())
        };
        let refused = read(0o644).unwrap_err();
        assert!(refused.contains("mode 644") && refused.contains("chmod 600"), "{refused}");
        for mode in [0o600, 0o400, 0o440] {
            read(mode).unwrap_or_else(|error| panic!("{mode:o}: {error}"));
        }
    }
}
