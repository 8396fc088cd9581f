// Generates docs/messages.md: every message that users, operators and readers of the log can see, with its
// source file.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { consoleTexts } from './console-texts.mjs'
import { root } from './install.mjs'
import { textsOf } from './source-texts.mjs'

const sourcesOf = (folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .sort()
    .map((file) => `${folder}/${file}`)

/** Functions that create a failure, with the argument positions of its code and message. */
const failureMakers = {
  Failure: { code: 0, message: 1 },
  fail: { code: 0, message: 1 },
  CliError: { code: 0, message: 1, group: 'error' },
  EngineError: { code: 0, message: 1, group: 'error' },
  NotFound: { message: 0 },
  invalidField: { code: 'invalid_argument', message: 1, prefix: 0 },
}
/**
 * Functions of the command line that ask a question or print a note, with the argument position of their
 * text.
 */
const commandLineTexts = {
  askText: 1,
  askSecret: 1,
  askChoice: 1,
  askYes: 1,
  confirmLoss: 1,
  'cli.note': 0,
  'cli.say': 0,
}
const shown = (text) => text.replace(/\s+/g, ' ').trim()
const hasWords = (text) => /[A-Za-z]{2}/.test(text.replace(/\{[^}]*\}/g, ''))

function* messagesOf(file, node) {
  const from = (position) => node.arguments?.[position]
  if (ts.isNewExpression(node) || ts.isCallExpression(node)) {
    const name = node.expression.getText()
    const callee = name.split('.').at(-1)
    const maker =
      failureMakers[callee] ??
      (/Error$/.test(callee) && ts.isNewExpression(node) ? { message: 0 } : undefined)
    const isLog = /\blog\.(info|warn|error)$/.test(name)
    const message = isLog ? (from(1) ?? from(0)) : maker && from(maker.message)
    if (message && !ts.isSpreadElement(message)) {
      const code =
        typeof maker?.code === 'number' ? textsOf(from(maker.code)).join(', ') : (maker?.code ?? '')
      const prefix = maker?.prefix === undefined ? '' : `${textsOf(from(maker.prefix))[0]}: `
      const group = isLog ? 'log' : (maker.group ?? (code ? 'failure' : 'error'))
      const detail = isLog ? callee : code || callee
      for (const text of textsOf(message)) yield { group, text: prefix + text, detail, file }
    }
    const prompt = file.startsWith('packages/cli/') && commandLineTexts[name]
    if (typeof prompt === 'number' && from(prompt))
      for (const text of textsOf(from(prompt))) yield { group: 'prompt', text, detail: callee, file }
  }
  for (const child of node.getChildren()) yield* messagesOf(file, child)
}

const sections = {
  failure: [
    'Failures of requests and operations',
    'code',
    'Clients see these in `error.message` and in the result of an operation.',
  ],
  log: ['Log lines', 'level', 'The text in `msg`.'],
  error: [
    'Program errors',
    'kind',
    'The command line, the configuration, the engines and the embedded PostgreSQL report these.',
  ],
  prompt: [
    'Command line prompts and notes',
    'function',
    'Questions at a terminal, and notes next to the output.',
  ],
  console: ['Console', '', 'Texts of pages, labels, hints, dialogs and toasts, and the words for states.'],
}

const head = (column) =>
  column ? `| message | ${column} | file |\n| --- | --- | --- |` : '| message | file |\n| --- | --- |'

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
      const texts = file.startsWith('packages/console/') ? consoleTexts(source) : []
      return [...messagesOf(file, source), ...[...texts].map((text) => ({ group: 'console', ...text, file }))]
    })
  const parts = Object.entries(sections).map(([group, [title, column, text]]) => {
    const filesByText = new Map()
    for (const { text, detail, file } of found.filter((message) => message.group === group)) {
      if (!hasWords(text)) continue
      const key = shown(text).replaceAll('|', '\\|') + (group === 'console' ? '' : ` | ${detail}`)
      const files = filesByText.get(key) ?? new Set()
      filesByText.set(key, files.add(file.replace(/^packages\/(.*)\/src\//, '$1/')))
    }
    const rows = [...filesByText].map(([key, [first, ...others]]) => {
      const more = others.length === 0 ? '' : ` and ${others.length} more`
      return `| ${key} | ${first}${more} |`
    })
    return `## ${title}\n\n${text} There are ${rows.length}.\n\n${head(column)}\n${rows.join('\n')}\n`
  })
  return `# Messages\n\nThis page lists every message that a user, an operator or a reader of the log can see. Use it to review the wording of all\nmessages in one place. \`node scripts/generate.mjs\` generates the page from the sources, and \`npm run check\` checks that it is up to date. A value that is\nknown only at run time is in braces. To change a message, change it in its file; the help of the command line is in [docs/cli](cli/README.md).\n\n${parts.join('\n')}`
}
