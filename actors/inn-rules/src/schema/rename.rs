//! Renames in an order in which no step meets a name that is still taken.

/// Something that gets another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rename {
    pub id: String,
    pub from: String,
    pub to: String,
}

/// The renames of one namespace, to be run in the returned order. A cycle goes through a temporary name.
pub(super) fn ordered(mut wanted: Vec<Rename>) -> Vec<Rename> {
    let mut steps = Vec::new();
    let mut temporary = 0_usize;
    while !wanted.is_empty() {
        let free = wanted.iter().position(|step| !wanted.iter().any(|other| other.from == step.to));
        if let Some(index) = free {
            steps.push(wanted.remove(index));
        } else if let Some(first) = wanted.first_mut() {
            temporary += 1;
            let name = format!("__renamed_{temporary}");
            let from = std::mem::replace(&mut first.from, name.clone());
            steps.push(Rename { id: first.id.clone(), from, to: name });
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wanted: &[(&str, &str)]) {
        let rename = |(from, to): &(&str, &str)| Rename {
            id: format!("id of {from}"),
            from: (*from).to_owned(),
            to: (*to).to_owned(),
        };
        let wanted: Vec<_> = wanted.iter().map(rename).collect();
        let mut present: Vec<(String, String)> = wanted.iter().map(|w| (w.id.clone(), w.from.clone())).collect();
        for step in ordered(wanted.clone()) {
            assert!(!present.iter().any(|(_, name)| *name == step.to), "{} is taken", step.to);
            let renamed = present.iter_mut().find(|(_, name)| *name == step.from).unwrap();
            assert_eq!(renamed.0, step.id);
            renamed.1 = step.to;
        }
        assert_eq!(present, wanted.into_iter().map(|w| (w.id, w.to)).collect::<Vec<_>>());
    }

    #[test]
    fn chains_and_cycles_never_meet_a_taken_name() {
        run(&[]);
        run(&[("a", "b")]);
        run(&[("a", "b"), ("b", "c")]);
        run(&[("b", "c"), ("a", "b")]);
        run(&[("a", "b"), ("b", "a")]);
        run(&[("a", "b"), ("b", "c"), ("c", "a"), ("x", "y"), ("y", "x")]);
    }
}
