// Makes docs/messages.md: every message that users, operators and readers of the log can see, and where it is made.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from './install.mjs'

const sourcesOf = (folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .sort()
    .map((file) => `${folder}/${file}`)

/** Functions that make a failure, with the positions of its code and its message among their arguments. */
const failureMakers = {
  Failure: { code: 0, message: 1 },
  fail: { code: 0, message: 1 },
  CliError: { code: 0, message: 1, group: 'error' },
  EngineError: { code: 0, message: 1, group: 'error' },
  NotFound: { message: 0 },
  invalidField: { code: 'invalid_argument', message: 1, prefix: 0 },
}
const textAttributes = ['alt', 'aria-label', 'description', 'hint', 'label', 'placeholder', 'title', 'text']
const shown = (text) => text.replace(/\s+/g, ' ').trim()

/** The texts that an expression can have; what is known only at run time stands in braces. */
function textsOf(node) {
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return textsOf(node.expression)
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)]
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken)
    return textsOf(node.left).flatMap((left) => textsOf(node.right).map((right) => left + right))
  if (ts.isTemplateExpression(node))
    return node.templateSpans.reduce(
      (texts, { expression, literal }) =>
        texts.flatMap((text) => partsOf(expression).map((part) => text + part + literal.text)),
      [node.head.text],
    )
  return [`{${shown(node.getText())}}`]
}

/** A choice between fixed texts inside a message makes one message each; everything else is a value. */
function partsOf(expression) {
  const texts = textsOf(expression)
  return texts.length === 1 || texts.length > 4 ? [`{${shown(expression.getText())}}`] : texts
}

const hasWords = (text) => /[A-Za-z]{2}/.test(text.replace(/\{[^}]*\}/g, ''))

function* messagesOf(file, node) {
  const from = (position) => node.arguments?.[position]
  if (ts.isNewExpression(node) || ts.isCallExpression(node)) {
    const callee = node.expression.getText().split('.').at(-1)
    const maker =
      failureMakers[callee] ??
      (/Error$/.test(callee) && ts.isNewExpression(node) ? { message: 0 } : undefined)
    const isLog = /\blog\.(info|warn|error)$/.test(node.expression.getText())
    const message = isLog ? (from(1) ?? from(0)) : maker && from(maker.message)
    if (message && !ts.isSpreadElement(message)) {
      const code =
        typeof maker?.code === 'number' ? textsOf(from(maker.code)).join(', ') : (maker?.code ?? '')
      const prefix = maker?.prefix === undefined ? '' : `${textsOf(from(maker.prefix))[0]}: `
      const group = isLog ? 'log' : (maker.group ?? (code ? 'failure' : 'error'))
      const detail = isLog ? callee : code || callee
      for (const text of textsOf(message))
        if (hasWords(text)) yield { group, text: prefix + text, detail, file }
    }
  }
  if (ts.isJsxText(node) && hasWords(node.text))
    yield { group: 'console', text: node.text, detail: 'text', file }
  if (ts.isJsxAttribute(node) && node.initializer && textAttributes.includes(node.name.getText())) {
    const value = ts.isJsxExpression(node.initializer) ? node.initializer.expression : node.initializer
    for (const text of value ? textsOf(value) : [])
      if (hasWords(text)) yield { group: 'console', text, detail: node.name.getText(), file }
  }
  for (const child of node.getChildren()) yield* messagesOf(file, child)
}

const sections = {
  failure: [
    'Failures of requests and operations',
    'code',
    'Clients see these in `error.message` and in the result of an operation.',
  ],
  log: ['Lines of the log', 'level', 'The text in `msg`.'],
  error: [
    'Errors of programs',
    'kind',
    'The command line, the configuration, the engines and the embedded PostgreSQL report these.',
  ],
  console: ['Console', 'kind', 'Texts of pages, labels and hints.'],
}

export function messages() {
  const found = ['contract', 'server', 'sdk', 'cli', 'console']
    .flatMap((name) => sourcesOf(`packages/${name}/src`))
    .flatMap((file) => {
      const source = ts.createSourceFile(
        file,
        readFileSync(join(root, file), 'utf8'),
        ts.ScriptTarget.Latest,
        true,
      )
      return [...messagesOf(file, source)]
    })
  const parts = Object.entries(sections).map(([group, [title, column, text]]) => {
    const rows = found
      .filter((message) => message.group === group)
      .map(
        ({ text, detail, file }) =>
          `| ${shown(text).replaceAll('|', '\\|')} | ${detail} | ${file.replace(/^packages\/(.*)\/src\//, '$1/')} |`,
      )
    const unique = [...new Set(rows)]
    return `## ${title}\n\n${text} There are ${unique.length}.\n\n| message | ${column} | file |\n| --- | --- | --- |\n${unique.join('\n')}\n`
  })
  return `# Messages\n\nThis page lists every message that a user, an operator or a reader of the log can see, so that their language can be read in\none sitting. \`node scripts/generate.mjs\` makes it from the sources, and \`npm run check\` compares it. A value that is known only at run time is in\nbraces. To change a message, change it in its file; the help of the command line is in [docs/cli](cli/README.md).\n\n${parts.join('\n')}`
}
