import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { root } from './install.mjs'

/**
 * Calls `referencePages` of the TypeScript file `entry`, writes the returned pages into a folder, and removes
 * all other pages from the folder. With --check, only reports whether the pages are out of date.
 */
export async function writeReference({ folder: name, entry, command }) {
  const folder = join(root, name)
  const pages = new Map((await loadPages(entry)).map(({ file, text }) => [file, text]))
  const present = new Map(readFolder(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
  const different = [...pages].filter(([file, text]) => present.get(file) !== text).map(([file]) => file)
  const obsolete = [...present.keys()].filter((file) => !pages.has(file))

  if (process.argv.includes('--check')) {
    const names = [...different, ...obsolete].map((file) => `${name}/${file}`)
    if (names.length > 0) {
      console.error(`Out of date: ${names.join(', ')}\nRun node ${command}`)
      process.exitCode = 1
    }
  } else {
    mkdirSync(folder, { recursive: true })
    for (const file of different) writeFileSync(join(folder, file), pages.get(file))
    for (const file of obsolete) rmSync(join(folder, file))
    console.log(`${pages.size} pages, ${different.length} written, ${obsolete.length} removed`)
  }
}

/** Bundles the TypeScript file, so that Node can import it, and returns its pages. */
async function loadPages(entry) {
  const scratch = mkdtempSync(join(tmpdir(), 'slipway-reference-'))
  const outfile = join(scratch, 'reference.mjs')
  try {
    await esbuild.build({
      entryPoints: [join(root, entry)],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'warning',
      banner: {
        js: "import { createRequire as makeRequire } from 'node:module'\nconst require = makeRequire(import.meta.url)",
      },
    })
    const { referencePages } = await import(pathToFileURL(outfile).href)
    return await referencePages()
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

function readFolder(folder) {
  try {
    return readdirSync(folder).filter((file) => file.endsWith('.md'))
  } catch {
    return []
  }
}
