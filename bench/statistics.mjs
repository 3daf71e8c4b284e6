/**
 * The middle of a list of numbers.
 * @param {readonly number[]} values
 * @returns {number}
 */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/**
 * Smallest and largest, for a look at how calm the machine was.
 * @param {readonly number[]} values
 * @returns {readonly [number, number]}
 */
export function range(values) {
  return [Math.min(...values), Math.max(...values)]
}
