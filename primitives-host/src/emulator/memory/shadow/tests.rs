use super::*;

/// Lanes whose accesses nothing orders.
struct Unordered;

impl Order for Unordered {
    fn is_plainly_before(&self, _: Past) -> bool {
        false
    }

    fn is_before(&mut self, _: Past) -> bool {
        false
    }
}

fn past(time: u32, lane: u32, action: Action) -> Past {
    Past::new(Moment { time, block: 0, lane }, action, 0)
}

/// More accesses than a set keeps, each at a time of its own, as by lanes with a fence each.
#[test]
fn what_an_atomic_has_written_stays_written_however_many_read_it() {
    for change in [Action::AtomicWrite, Action::AtomicUpdate] {
        for readers in [1, 2, MAX_GROUPS as u32, MAX_GROUPS as u32 + 1, 1000] {
            let (mut cell, mut sets) = (Cell::NONE, Sets::default());
            assert!(!cell.is_written(&sets));
            assert!(cell.note(past(1, 0, change), change, &mut sets, &mut Unordered).is_ok());
            for reader in 1..=readers {
                let read = Action::AtomicRead;
                assert!(cell.note(past(1 + reader, reader, read), read, &mut sets, &mut Unordered).is_ok());
                assert!(cell.is_written(&sets), "after {reader} reads");
            }
            // A plain access still races with the change.
            let found = cell.note(past(2000, 999, Action::Read), Action::Read, &mut sets, &mut Unordered);
            assert!(found.is_err_and(|earlier| earlier.action() == change));
        }
    }
}

#[test]
fn what_was_written_stays_written_however_many_change_it() {
    let (mut cell, mut sets) = (Cell::NONE, Sets::default());
    for lane in 0..1000 {
        let update = if lane % 2 == 0 { Action::AtomicUpdate } else { Action::AtomicWrite };
        assert!(cell.note(past(1 + lane, lane, update), update, &mut sets, &mut Unordered).is_ok());
        assert!(cell.is_written(&sets));
    }
}

#[test]
fn a_plain_write_stays_known_however_many_read_it() {
    struct AllOver;
    impl Order for AllOver {
        fn is_plainly_before(&self, _: Past) -> bool {
            false
        }

        fn is_before(&mut self, _: Past) -> bool {
            true
        }
    }
    let (mut cell, mut sets) = (Cell::NONE, Sets::default());
    assert!(cell.note(past(1, 0, Action::Write), Action::Write, &mut sets, &mut AllOver).is_ok());
    for reader in 1..1000 {
        assert!(cell.note(past(1 + reader, reader, Action::Read), Action::Read, &mut sets, &mut AllOver).is_ok());
        assert!(cell.is_written(&sets) && cell.writer().is_some());
    }
}
