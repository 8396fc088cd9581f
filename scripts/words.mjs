// Finds words and first words of comments that are hard to understand, in comments, pages and messages. `npm
// run check` runs this script.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './install.mjs'

/** The refused phrases, and what to write instead. */
const refused = [
  [/\bwho(m|ever|mever|soever)\b/i, 'name the role: the caller, another process, the tenant'],
  [/\b(no|some|any|every)body\b/i, 'name the role, or "no caller", "no process"'],
  [/\bmend(s|ed|ing)?\b/i, 'fix'],
  [
    /\b(hither|thither|thereby|therein|thereof|whereby|wherein|hence|thus|lest|nay|ere|save for|for want of|forthwith)\b/i,
    'a common word',
  ],
  [
    /\b(by and by|ever so|all the same|of old|at will|in vain|in good hands|goes? without)\b/i,
    'a common phrase',
  ],
  [/\bstands? (still|alone|by itself|for itself)\b/i, 'say what happens'],
  [/\b(told|tells) (it|them|of|when|so)\b/i, '"reports", "notifies", "says"'],
  [/\b(is|are|was|were) (told|heard|asked of)\b/i, '"receives", "gets a notification"'],
  [/\bnot? more is\b|\bno more than that\b/i, 'say the limit'],
  [/\bknown are\b|\bpossible are\b|\ballowed are\b/i, '"Supported: …"'],
  [/\bmust have another form\b/i, '"has an invalid format; expected …"'],
  [/\bthe books\b|\bpapers\b/i, 'database, record'],
  [/\b(Gone|Left|Lost) is\b/, 'normal order: subject, verb, object'],
  [/\bso (many|few|much|long)\b(?! (that|as))/i, 'say the number, or what it is compared with'],
  [/\bthe hard way\b|\bin short supply\b|\bworth a (call|word|look)\b/i, 'the technical word'],
  [/\b(is|are) away\b/i, '"is unavailable", "cannot be reached"'],
  [/\bfaults? of ours\b|\bours to\b/i, '"our error", "we choose"'],
]

/** Comments and sentences do not begin like this. */
const openers =
  /^(Of|Whom|Whose|Whoever|As|By|So|The same (for|of|in|into|with|once|as a)|Else|Nor|Those|Gone|Whether|Such|Not)\b/

const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .trim()
  .split('\n')
const isProse = (file) =>
  (file.endsWith('.md') && !file.startsWith('docs/cli/')) ||
  /(^|\/)(slipway\.example\.toml|openapi\.json)$/.test(file)
const isCode = (file) =>
  /^(packages|scripts)\/.*\.(ts|tsx|mjs|sql)$/.test(file) && file !== 'scripts/words.mjs'

/** Returns the comments of a source file, each as one text, with the number of its first line. */
export function commentsOf(text, file) {
  const found = []
  const line = file.endsWith('.sql') ? '--' : '//'
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const trimmed = lines[at].trim()
    const first = at + 1
    if (trimmed.startsWith(line)) {
      const words = []
      for (; at < lines.length && lines[at].trim().startsWith(line); at++)
        words.push(lines[at].trim().slice(line.length).trim())
      at--
      found.push({ first, text: words.join(' ') })
    } else if (trimmed.startsWith('/*') || trimmed.startsWith('{/*')) {
      const words = []
      for (; at < lines.length; at++) {
        words.push(
          lines[at]
            .trim()
            .replace(/^\{?\/\*+|\*+\/\}?$/g, '')
            .replace(/^\*\s?/, '')
            .trim(),
        )
        if (lines[at].includes('*/')) break
      }
      found.push({ first, text: words.join(' ').trim() })
    }
  }
  return found
}

/** Returns the paragraphs and rows of a page, without code blocks and inline code. */
function paragraphsOf(text) {
  const plain = text
    .replace(/^( *)```[\s\S]*?^\1```/gm, (block) => block.replace(/[^\n]/g, ''))
    .replace(/`[^`\n]*`/g, '``')
  return plain.split('\n').map((line, at) => ({ first: at + 1, text: line.replace(/^[\s>#*|-]+/, '') }))
}

const problems = []

const report = (file, first, text, what) =>
  problems.push(`${file}:${first}: ${what}\n    ${text.slice(0, 150)}`)

for (const file of tracked) {
  if (!isProse(file) && !isCode(file)) continue
  let content
  try {
    content = readFileSync(join(root, file), 'utf8')
  } catch {
    continue
  }
  const code = isCode(file)
  for (const { first, text } of code ? commentsOf(content, file) : paragraphsOf(content)) {
    if (code && openers.test(text))
      report(file, first, text, `begins with "${text.split(' ')[0]}": write a full sentence`)
    const plain = text.replace(/`[^`]*`/g, '``')
    for (const [words, instead] of refused) {
      const match = plain.match(words)
      if (match) report(file, first, text, `"${match[0]}": ${instead}`)
    }
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'))
  console.error(`${problems.length} phrases that readers stumble over. Rules: CONTRIBUTING.md, "Language".`)
  process.exitCode = 1
}
