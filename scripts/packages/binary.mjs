// npm run build:binary: builds the CLI as one executable file that contains Node, for the current platform.
// npm run build:terraform: builds the Terraform provider in the same way.
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureInstalled, root } from '../install.mjs'
import { exitWithMessage } from '../phase.mjs'

/** Node looks for this marker in its own executable to detect an embedded program. */
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
const isMac = process.platform === 'darwin'
const ending = process.platform === 'win32' ? '.exe' : ''

/** The source and the executable of each program. Terraform finds a provider by the name of its file. */
const programs = {
  cli: {
    entry: 'packages/cli/src/main.ts',
    target: `artifacts/slipway-${process.platform}-${process.arch}${ending}`,
  },
  terraform: {
    entry: 'packages/terraform/src/main.ts',
    target: `artifacts/terraform/terraform-provider-slipway${ending}`,
  },
}

/** Returns the path of the executable. */
export async function buildBinary(name = 'cli') {
  const { entry, target: path } = programs[name]
  if (!readFileSync(process.execPath).includes(fuse))
    exitWithMessage(`${process.execPath} cannot embed a program: use a build of Node from nodejs.org`)
  const target = join(root, path)
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(process.execPath, target)
  chmodSync(target, 0o755)
  // On macOS, a changed file needs a new signature, which is valid only on this computer.
  if (isMac) execFileSync('codesign', ['--remove-signature', target])
  await withProgramBlob(entry, (blob) => {
    const postject = join(root, 'node_modules/postject/dist/cli.js')
    const segment = isMac ? ['--macho-segment-name', 'NODE_SEA'] : []
    const args = [postject, target, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', fuse, ...segment]
    // postject warns about section names that it does not need.
    execFileSync(process.execPath, args, { stdio: 'pipe' })
  })
  if (isMac) execFileSync('codesign', ['--sign', '-', target])
  return target
}

/** Builds a program in the form that Node can embed: one CommonJS script, compiled in advance. */
async function withProgramBlob(entry, use) {
  const scratch = mkdtempSync(join(tmpdir(), 'slipway-binary-'))
  const [main, output, config] = ['slipway.cjs', 'slipway.blob', 'sea.json'].map((name) =>
    join(scratch, name),
  )
  const { build } = await import('esbuild')
  try {
    await build({
      entryPoints: [join(root, entry)],
      outfile: main,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      target: 'node20',
      logLevel: 'warning',
    })
    const settings = { main, output, disableExperimentalSEAWarning: true, useCodeCache: true }
    writeFileSync(config, JSON.stringify(settings))
    execFileSync(process.execPath, ['--experimental-sea-config', config], { stdio: 'pipe' })
    use(output)
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  ensureInstalled('all')
  console.log(await buildBinary(process.argv[2]))
}
