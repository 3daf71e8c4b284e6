// The comment at the top of a script: what it does, its keys, its arguments, its replies.
const IDENTIFIER = /^[a-z][A-Za-z0-9]*$/

/** Reads a header; `problem` collects what is wrong with it. */
export function readHeader(source, problem) {
  const header = { description: [], includes: [], outcomes: [] }
  const lines = source.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  for (const [index, line] of lines.slice(0, end === -1 ? lines.length : end).entries()) {
    readHeaderLine(header, line.slice(2).trim(), (text) => problem(text, index + 1))
  }
  if (header.description.length === 0) problem('the header has no description')
  if (!header.keys) problem('the header has no KEYS line')
  if (!header.args) problem('the header has no ARGV line')
  if (header.outcomes.length === 0 && !header.list) problem('the header has no RETURNS line')
  if (header.outcomes.length > 0 && header.list) problem('the header declares both statuses and a plain list')
  header.keys ??= []
  header.args ??= []
  if (header.keys.length === 0) problem('a script needs at least one key')
  noDuplicates(
    [...header.keys, ...header.args].map(({ name }) => name),
    'the name',
    problem,
  )
  noDuplicates(
    header.outcomes.map(({ status }) => status),
    'the status',
    problem,
  )
  noDuplicates(
    header.outcomes.map(({ outcome }) => outcome),
    'the outcome',
    problem,
  )
  return header
}

function readHeaderLine(header, line, problem) {
  const [, directive, status, rest] = /^(KEYS|ARGV|RETURNS|INCLUDE)(?: (-?\d+))?:(.*)$/.exec(line) ?? []
  if (!directive && header.keys) return problem(`not a header line: ${line}`)
  if (!directive) return header.description.push(line)
  if (status !== undefined && directive !== 'RETURNS') return problem(`${directive} takes no status`)
  const text = rest.trim()
  if (directive === 'KEYS') return (header.keys = readFields(text.split(','), 'string', problem))
  if (directive === 'ARGV') return (header.args = readFields(text.split(','), undefined, problem))
  if (directive === 'INCLUDE') return header.includes.push(text)
  if (status === undefined) return (header.list = readList(text, problem))
  const [outcome, ...fields] = text.split(/\s+/)
  if (!IDENTIFIER.test(outcome)) problem(`not an outcome: ${text}`)
  return header.outcomes.push({
    status: Number(status),
    outcome,
    fields: readFields(fields, undefined, problem),
  })
}

/** Reads `name:type, name:type...`; keys are written without a type. */
function readFields(parts, impliedType, problem) {
  const texts = parts.map((part) => part.trim()).filter((part) => part !== '')
  const fields = texts.map((text) => {
    const variadic = text.endsWith('...')
    const [name, type = impliedType, ...more] = (variadic ? text.slice(0, -3) : text).split(':')
    if (!IDENTIFIER.test(name) || name === 'outcome' || more.length > 0) problem(`not a field: ${text}`)
    if (impliedType ? type !== impliedType : type !== 'string' && type !== 'integer') {
      problem(`${text} must be ${impliedType ? 'a bare name' : 'name:string or name:integer'}`)
    }
    return { name, type, variadic }
  })
  if (fields.slice(0, -1).some(({ variadic }) => variadic)) problem('only the last one can be variadic')
  noDuplicates(
    fields.map(({ name }) => name),
    'the name',
    problem,
  )
  return fields
}

function readList(text, problem) {
  const fields = readFields([text], undefined, problem)
  if (fields.length !== 1 || !fields[0].variadic) problem('a plain list is written as name:type...')
  return fields[0]
}

function noDuplicates(values, what, problem) {
  for (const value of new Set(values.filter((value, index) => values.indexOf(value) !== index))) {
    problem(`${what} ${value} is used twice`)
  }
}
