/** Arithmetic on spans of time. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** What two spans have in common; empty (`to` ≤ `from`) when nothing. */
export function common(a: Span, b: Span): Span {
  return { from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) }
}

/** How much of a span is in none of the others. */
export function lengthOutside(span: Span, others: readonly Span[]): number {
  let length = 0
  let at = span.from
  for (const other of [...others].sort((a, b) => a.from - b.from)) {
    length += Math.max(0, Math.min(other.from, span.to) - at)
    at = Math.max(at, other.to)
  }
  return length + Math.max(0, span.to - at)
}

/** How much of a span is in at least one of the others. */
export function lengthInside(span: Span, others: readonly Span[]): number {
  return Math.max(0, span.to - span.from) - lengthOutside(span, others)
}

/** A process that did not run for so long may have missed replies, as in a fault. */
const LONG_STALL_MS = 100

export function isLong({ from, to }: Span): boolean {
  return to - from >= LONG_STALL_MS
}

/** The value below which the part `share` of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
}
