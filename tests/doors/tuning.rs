//! Files of tuning values.

use kernel_primitives::Error;
use kernel_primitives::algorithms::{Parameter, Tuning};

use crate::allocation::largest;
use crate::damage::{Shown, try_all};

#[test]
fn damaged_text_names_its_line_or_gives_values_that_kernels_accept() {
    let all: String = Parameter::ALL.iter().map(|p| format!("all {} = {}\n", p.name(), p.candidates()[0])).collect();
    let valid = [
        all.as_bytes(),
        b"# An NVIDIA H200\nall   reduce.alone   = 4\nsm_90 top_k.blocks   = 3\nsm_90 top_k.blocks.8 = 2\nsm_75 top_k.blocks = 1",
        b"\xEF\xBB\xBFall reduce.blocks = 7\r\nsm_75 reduce.blocks.2 = 9 # of halves\r\n sm_120 search.threads = 64",
        b"",
    ];
    let words = ["all ", "sm_90 ", "sm_", ".16", ".3", "=", " = ", "#", "scan.pipeline", "reduce.blocks", "\n"];
    try_all(
        3000,
        |damage| Shown(damage.damaged(&valid, &words)),
        |Shown(bytes)| {
            let text = String::from_utf8_lossy(bytes);
            for capability in [None, Some((9, 0))] {
                let mut tuning = Tuning::of_capability(capability);
                let (result, request) = largest(|| tuning.read(&text, capability));
                if request > 16 * bytes.len() + (1 << 14) {
                    return Err(format!("{request} bytes at once"));
                }
                for &parameter in Parameter::ALL {
                    for bytes in [1, 2, 4, 8, 16] {
                        let value = tuning.get(parameter, bytes);
                        tuning.clone().set(parameter, Some(bytes), value).map_err(|error| error.to_string())?;
                    }
                }
                match result {
                    Ok(()) => {}
                    Err(Error::Tuning { what, reason }) => {
                        let rest = what.strip_prefix("line ").ok_or_else(|| format!("no line: {what}"))?;
                        let number = rest.split(',').next().and_then(|number| number.parse::<usize>().ok());
                        if !number.is_some_and(|number| number >= 1 && number <= text.lines().count()) {
                            return Err(format!("no line of the text: {what}"));
                        }
                        if reason.is_empty() || reason.len() + what.len() > 4000 {
                            return Err(format!("no message: {what}: {reason}"));
                        }
                        if (what + &reason).chars().any(char::is_control) {
                            return Err("control characters in a message".into());
                        }
                    }
                    Err(other) => return Err(format!("another error: {other}")),
                }
            }
            Ok(())
        },
    );
}
