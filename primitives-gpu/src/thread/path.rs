//! The search along a merge path of rows and items.

/// How many rows end before a `step` of the merge path of `rows` and `items`, where `end(i)` says where row `i` ends among the items.
///
/// The path merges the ends of the rows with the numbers of the items: a step is an item, or the end of a row after its last item. Row `i` ends at
/// step `i + end(i)`. So the first `step` steps are as many ends of rows as this returns, and `step` less that many items. Parts of as many
/// steps are as much work, whatever the lengths of the rows.
///
/// `end` never decreases, and is called for rows below `rows`. If it does decrease, the result is some number up to `rows` and `step`. Cost:
/// a binary search, of which each probe waits for the one before.
///
/// CUB: `MergePathSearch`. Merrill and Garland, *Merge-based parallel sparse matrix-vector multiplication*, 2016.
///
/// ```
/// use kernel_primitives::thread::merge_path_rows;
///
/// // Rows of 2, 0 and 3 items. The path: item, item, end, end, item, item, item, end.
/// let ends = [2, 2, 5];
/// let rows: Vec<usize> = (0..=8).map(|step| merge_path_rows(step, 3, 5, |row| ends[row])).collect();
/// assert_eq!(rows, [0, 0, 0, 1, 2, 2, 2, 2, 3]);
/// ```
#[inline(always)]
pub fn merge_path_rows(step: usize, rows: usize, items: usize, end: impl Fn(usize) -> usize) -> usize {
    let step = step.min(rows.saturating_add(items));
    let (mut before, mut high) = (step.saturating_sub(items), step.min(rows));
    while before < high {
        let middle = before + (high - before) / 2;
        // `middle` is below `step`.
        if end(middle) < step - middle { before = middle + 1 } else { high = middle }
    }
    before
}
