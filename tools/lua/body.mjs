// The body of a script, checked against its header.
import luaparse from 'luaparse'

const GLOBALS = new Set(
  (
    'KEYS ARGV redis assert error ipairs math next pairs pcall select string table tonumber tostring ' +
    'type unpack xpcall'
  ).split(' '),
)

export function parse(source, problem) {
  try {
    return luaparse.parse(source, { luaVersion: '5.1', scope: true, locations: true, ranges: true })
  } catch (error) {
    problem(`does not parse as Lua 5.1: ${error.message}`)
    return undefined
  }
}

function* nodesOf(node, isInside = () => true) {
  yield node
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (child && typeof child.type === 'string' && isInside(child)) yield* nodesOf(child, isInside)
    }
  }
}

function checkGlobals(chunk, problem) {
  for (const { name, loc } of chunk.globals) {
    if (!GLOBALS.has(name)) problem(`the global ${name} is not allowed`, loc?.start.line)
  }
  for (const node of nodesOf(chunk)) {
    const targets = node.type === 'AssignmentStatement' ? node.variables : []
    const named = node.type === 'FunctionDeclaration' && node.identifier ? [node.identifier] : []
    for (const target of [...targets, ...named]) {
      if (target.type !== 'Identifier' || target.isLocal) continue
      problem(`assigns to the global ${target.name}`, target.loc.start.line)
    }
  }
}

/** Every declared key or argument is used by its index, and no other index is. */
function checkIndices(chunk, table, fields, problem) {
  const fixed = fields.filter(({ variadic }) => !variadic).length
  const seen = new Set()
  const indexed = new Set()
  for (const node of nodesOf(chunk)) {
    if (node.type !== 'IndexExpression' || node.base.name !== table) continue
    if (node.index.type !== 'NumericLiteral') continue
    indexed.add(node.base)
    seen.add(node.index.value)
    if (node.index.value < 1 || node.index.value > fixed) {
      problem(`${table}[${node.index.raw}] is not declared in the header`, node.loc.start.line)
    }
  }
  const computed = [...nodesOf(chunk)].find((node) => node.name === table && !indexed.has(node))
  for (const [index, { name, variadic }] of fields.entries()) {
    if (!variadic && !seen.has(index + 1)) problem(`${table}[${index + 1}] (${name}) is never used`)
    if (variadic && !computed) problem(`the variadic ${name} is never used`)
  }
  if (computed && fields.length === fixed) {
    problem(
      `${table} is used by a computed index, but the header declares nothing variadic`,
      computed.loc.start.line,
    )
  }
}

/** What an expression may be as a reply: `{ status, length }` each; undefined where it cannot be told. */
function repliesOf(node, locals) {
  if (node.type === 'NumericLiteral') return [{ status: node.value, line: node.loc.start.line }]
  if (node.type === 'UnaryExpression' && node.operator === '-' && node.argument.type === 'NumericLiteral') {
    return [{ status: -node.argument.value, line: node.loc.start.line }]
  }
  if (node.type === 'LogicalExpression') {
    const left = node.operator === 'or' ? repliesOf(node.left, locals) : []
    return [...left, ...repliesOf(node.right, locals)]
  }
  if (node.type === 'Identifier' && locals.has(node.name)) {
    return repliesOf(locals.get(node.name), new Map()).map(
      (reply) => reply && { ...reply, length: undefined },
    )
  }
  if (node.type !== 'TableConstructorExpression' || node.fields[0]?.type !== 'TableValue') return [undefined]
  return repliesOf(node.fields[0].value, locals).map(
    (reply) => reply && { ...reply, length: node.fields.length },
  )
}

function checkReturns(chunk, header, problem) {
  const own = [...nodesOf(chunk, ({ type }) => type !== 'FunctionDeclaration')]
  const locals = new Map()
  for (const { type, variables, init } of own) {
    if (type === 'LocalStatement')
      variables.forEach(({ name }, index) => init[index] && locals.set(name, init[index]))
  }
  const returns = own.filter(({ type }) => type === 'ReturnStatement')
  if (chunk.body.at(-1)?.type !== 'ReturnStatement') problem('does not end with a return')
  for (const node of returns.filter((node) => node.arguments.length !== 1)) {
    problem('a return needs exactly one value', node.loc.start.line)
  }
  if (header.list) return
  const replies = returns.flatMap((node) => (node.arguments[0] ? repliesOf(node.arguments[0], locals) : []))
  for (const reply of replies.filter((reply) => reply !== undefined)) checkReply(reply, header, problem)
  if (replies.includes(undefined)) return
  for (const { status } of header.outcomes.filter(
    (o) => !replies.some((reply) => reply.status === o.status),
  )) {
    problem(`the status ${status} is declared, but never returned`)
  }
}

function checkReply({ status, length, line }, header, problem) {
  const declared = header.outcomes.find((outcome) => outcome.status === status)
  if (!declared) return problem(`the status ${status} is not declared in the header`, line)
  const variadic = declared.fields.some((field) => field.variadic)
  if (length === undefined || variadic || length === declared.fields.length + 1) return
  problem(`the status ${status} is returned with ${length - 1} fields, not ${declared.fields.length}`, line)
}

/** The source without comments, blank lines and indentation. */
export function strip(source) {
  const { comments } = luaparse.parse(source, { luaVersion: '5.1', comments: true, ranges: true })
  let text = source
  for (const { range } of comments.toReversed()) text = text.slice(0, range[0]) + text.slice(range[1])
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '').join('\n')
}

export function checkChunk(chunk, header, problem) {
  checkGlobals(chunk, problem)
  checkIndices(chunk, 'KEYS', header.keys, problem)
  checkIndices(chunk, 'ARGV', header.args, problem)
  checkReturns(chunk, header, problem)
  for (const { type, raw, loc } of nodesOf(chunk)) {
    if (type === 'StringLiteral' && raw.includes('\n')) problem('a string over several lines', loc.start.line)
  }
}
