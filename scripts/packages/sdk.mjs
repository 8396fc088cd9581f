// Builds the published SDK: JavaScript for every runtime, and self-contained type declarations.
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root } from '../install.mjs'
import { contractTypes } from './contract-types.mjs'

const source = (name) => join(root, 'packages/sdk/src', name)
/** The entry points, each with the platform types that it may use in addition to web types. */
const entries = { 'index.ts': [], 'testing.ts': ['node'] }

export async function buildSdk(directory) {
  await bundleSdk(directory)
  const contract = join(directory, 'contract.d.ts')
  writeFileSync(contract, await contractTypes())
  for (const [name, types] of Object.entries(entries)) await declare(directory, contract, source(name), types)
}

/**
 * Writes one file for each entry, and one with the code that they share, so that both have the same classes.
 */
export async function bundleSdk(directory) {
  mkdirSync(directory, { recursive: true })
  const { build } = await import('esbuild')
  await build({
    entryPoints: Object.keys(entries).map(source),
    outdir: directory,
    splitting: true,
    chunkNames: 'shared',
    bundle: true,
    platform: 'neutral',
    external: ['node:*'],
    format: 'esm',
    target: 'es2022',
    logLevel: 'warning',
  })
}

/** Writes the SDK's own declarations, compiled against the contract types that are published with it. */
async function declare(directory, contract, entry, types) {
  const { default: ts } = await import('typescript')
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)
  const program = ts.createProgram([entry], {
    ...options,
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    // Node's own types do not compile with exactOptionalPropertyTypes.
    skipLibCheck: types.includes('node'),
    types,
    lib: [...options.lib, 'lib.dom.d.ts'],
    paths: {
      '@slipway/contract': [contract],
      '@slipway/contract/*': [join(root, 'packages/contract/src/*.ts')],
    },
  })
  const ours = program.getSourceFiles().filter(({ fileName }) => /\/packages\/[^.]*\.ts$/.test(fileName))
  const diagnostics = [...ts.getPreEmitDiagnostics(program)]
  for (const file of ours) {
    const write = (_, text) =>
      writeFileSync(
        join(directory, basename(file.fileName).replace('.ts', '.d.ts')),
        withPublishedImports(text),
      )
    diagnostics.push(...program.emit(file, write, undefined, true).diagnostics)
  }
  if (diagnostics.length === 0) return
  const host = {
    getCurrentDirectory: () => root,
    getCanonicalFileName: (name) => name,
    getNewLine: () => '\n',
  }
  throw new Error(ts.formatDiagnostics(diagnostics, host))
}

/** Changes imports to the file names in the package. */
const withPublishedImports = (text) =>
  text
    .replaceAll(
      /(['"])@slipway\/contract(?:\/([\w-]+))?\1/g,
      (_, quote, name = 'contract') => `${quote}./${name}.js${quote}`,
    )
    .replaceAll(/(['"]\.\/[\w-]+)\.ts(['"])/g, '$1.js$2')
