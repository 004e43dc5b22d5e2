//! Alternate: the jobs of one claim start queue by queue in rotation, so that no queue waits for another's whole share.

use std::collections::VecDeque;

/// Takes one item of each queue after another. `items` has one queue's items next to each other, and they keep their
/// order.
pub(super) fn alternate<T, Q: PartialEq>(items: Vec<T>, queue_of: impl Fn(&T) -> Q) -> Vec<T> {
    let is_one = items.windows(2).all(|pair| queue_of(&pair[0]) == queue_of(&pair[1]));
    if is_one {
        return items;
    }
    let mut alternated = Vec::with_capacity(items.len());
    let mut queues: Vec<(Q, VecDeque<T>)> = Vec::new();
    for item in items {
        let queue = queue_of(&item);
        match queues.last_mut() {
            Some((last, members)) if *last == queue => members.push_back(item),
            Some(_) | None => queues.push((queue, VecDeque::from([item]))),
        }
    }
    while !queues.is_empty() {
        alternated.extend(queues.iter_mut().filter_map(|(_, members)| members.pop_front()));
        queues.retain(|(_, members)| !members.is_empty());
    }
    alternated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(names: &[&str]) -> Vec<String> {
        alternate(names.iter().map(ToString::to_string).collect(), |name| name.chars().next())
    }

    #[test]
    fn queues_alternate_and_each_keeps_its_order() {
        assert_eq!(order(&["a1", "a2", "a3", "b1", "c1", "c2"]), ["a1", "b1", "c1", "a2", "c2", "a3"]);
    }

    #[test]
    fn one_queue_stays_as_it_is() {
        assert_eq!(order(&["a1", "a2", "a3"]), ["a1", "a2", "a3"]);
        assert!(order(&[]).is_empty());
    }
}
