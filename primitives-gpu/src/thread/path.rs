//! Searches along a merge path of rows and items.

/// Returns how many rows end before `step` of the merge path of `rows` and `items`. `end(i)` is the end of row `i` among the items.
///
/// The path merges the ends of the rows with the numbers of the items. A step is an item, or the end of a row, which comes after the row's
/// last item. Row `i` ends at step `i + end(i)`. So the first `step` steps contain as many ends of rows as this returns; the rest of these
/// steps are items. Parts with the same number of steps are the same amount of work, whatever the lengths of the rows.
///
/// `end` must not decrease. It is called for rows below `rows`. If it decreases, the result is some number up to `rows` and `step`. Cost: a
/// binary search, in which each probe waits for the previous one.
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
