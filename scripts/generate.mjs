// Writes the generated files of the repository; with --check, demands that they are up to date.
import { readFile, writeFile } from 'node:fs/promises'
import { bundled } from './bundled.mjs'

const root = new URL('../', import.meta.url)

async function openApi() {
  const { version } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))
  const { buildOpenApi } = await bundled('packages/contract/src/openapi/index.ts')
  return `${JSON.stringify(buildOpenApi({ version }), null, 2)}\n`
}

const files = { 'openapi.json': openApi }

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
