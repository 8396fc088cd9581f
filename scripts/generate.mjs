// Writes the generated files of the repository. With --check, fails if they are out of date.
import { readFile, writeFile } from 'node:fs/promises'
import { importBundled, importBundledForServer } from './bundled.mjs'
import { messages } from './messages.mjs'

const root = new URL('../', import.meta.url)

async function openApi() {
  const { version } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  const { buildOpenApi } = await importBundled('packages/contract/src/openapi/index.ts')
  return `${JSON.stringify(buildOpenApi({ version }), null, 2)}\n`
}

/** Returns docs/webhooks.md with the examples and events of the contract. */
async function webhooks() {
  const { deliveredTypes, deliveryExample, eventFacts } = await importBundled(
    'packages/contract/src/openapi/webhooks.ts',
  )
  const example = JSON.stringify(deliveryExample('vm.running'), null, 2)
  const rows = deliveredTypes.map(
    (type) => `| \`${type}\` | ${eventFacts[type].when} | \`${JSON.stringify(eventFacts[type].data)}\` |`,
  )
  const parts = {
    delivery: `\`\`\`json\n${example}\n\`\`\``,
    events: ['| type | meaning | `data` |', '| --- | --- | --- |', ...rows].join('\n'),
  }
  const page = await readFile(new URL('docs/webhooks.md', root), 'utf8')
  return page.replace(
    /(<!-- (\w+) -->\n)[\s\S]*?(<!-- \/\2 -->)/g,
    (_, begin, name, end) => `${begin}\n${parts[name]}\n\n${end}`,
  )
}

async function schema() {
  const { describeMigrations } = await importBundledForServer('packages/testing/src/postgres/schema.ts')
  return describeMigrations()
}

const files = {
  'openapi.json': openApi,
  'docs/webhooks.md': webhooks,
  'docs/messages.md': messages,
  'packages/server/schema.sql': schema,
}

const isCheck = process.argv.includes('--check')
for (const [name, make] of Object.entries(files)) {
  const file = new URL(name, root)
  const wanted = await make()
  const found = await readFile(file, 'utf8').catch(() => '')
  if (found === wanted) continue
  if (isCheck) {
    console.error(`${name} is out of date: run node scripts/generate.mjs and commit it`)
    process.exitCode = 1
  } else {
    await writeFile(file, wanted)
    console.log(`wrote ${name}`)
  }
}
