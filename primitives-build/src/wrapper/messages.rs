//! What the messages of the inner cargo run say.

/// Whether the compiler complains of files that an earlier build left: not of a source, and it is not cargo that complains, of a package
/// that it cannot find, say.
pub(super) fn is_of_damage(stderr: &str) -> bool {
    // Of crates that it cannot find or read.
    const CODES: [&str; 4] = ["error[E0460]", "error[E0463]", "error[E0514]", "error[E0786]"];
    const MISSING: [&str; 4] = ["crate for `std`", "crate for `alloc`", "crate for `test`", "crate for `proc_macro`"];
    let (mut compiled, mut in_error, mut of_a_source) = (false, false, false);
    for line in stderr.lines() {
        // Of the standard library, builds compile only `core`. A crate that uses the rest fails again, however often it is compiled.
        if line.starts_with("error[E0463]") && MISSING.iter().any(|name| line.contains(name)) {
            return false;
        }
        if CODES.iter().any(|code| line.starts_with(code)) {
            return true;
        }
        // Who ends a compiler from outside would end the next one, too.
        if line.contains("(signal: 9, SIGKILL") {
            return false;
        }
        compiled |= line.starts_with("error: could not compile");
        // A message has its place after one or several lines, and ends with an empty one. A warning has a place too.
        in_error =
            if line.starts_with("error") { true } else { in_error && !line.is_empty() && !line.starts_with("warning") };
        of_a_source |= in_error && line.trim_start().starts_with("--> ");
    }
    compiled && !of_a_source
}
