import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Ended, type Program, startProgram } from '@slipway/testing/program.ts'
import { root } from '@slipway/testing/root.ts'
import type { TestService } from '@slipway/testing/service.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { build } from 'esbuild'

const terraform = spawnSync('terraform', ['version', '-json'], { encoding: 'utf8' })

/** Why suites that run Terraform are skipped; empty if Terraform is on the PATH. */
export const missingTerraform = terraform.status === 0 ? '' : 'terraform is not on the PATH'

const header = 'terraform {\n  required_providers { slipway = { source = "slipway-dev/slipway" } }\n}\n'

/** A folder with a configuration, in which Terraform runs with the provider of this checkout. */
export class Workspace {
  readonly dir = mkdtempSync(join(tmpdir(), 'slipway-terraform-'))
  readonly env: Record<string, string>

  constructor(
    service: Pick<TestService, 'url' | 'credentials'>,
    accessKey = service.credentials.access_key,
    provider = providerDir,
  ) {
    const config = join(this.dir, 'terraformrc')
    writeFileSync(
      config,
      `provider_installation {\n  dev_overrides { "slipway-dev/slipway" = "${provider}" }\n}\n`,
    )
    writeFileSync(join(this.dir, 'id_ed25519.pub'), `${sshKey}\n`)
    this.env = {
      HOME: this.dir,
      TF_CLI_CONFIG_FILE: config,
      TF_CLI_ARGS: '-no-color',
      TF_IN_AUTOMATION: '1',
      CHECKPOINT_DISABLE: '1',
      SLIPWAY_API_URL: service.url,
      SLIPWAY_ACCESS_KEY: accessKey,
      SLIPWAY_PROJECT_ID: service.credentials.project_id,
      TF_VAR_organization_id: service.credentials.organization_id,
    }
  }

  write(configuration: string): void {
    writeFileSync(join(this.dir, 'main.tf'), header + configuration)
  }

  start(...args: string[]): Program {
    return startProgram('terraform', args, { cwd: this.dir, env: this.env })
  }

  /** Runs a command and returns its output and its exit code. */
  async run(...args: string[]): Promise<{ code: number | null; text: string }> {
    const { code, output, errors }: Ended = await this.start(...args).ended()
    return { code, text: `${output}${errors}`.replace(/^[│╷╵] ?/gm, '').replaceAll(/\s+/g, ' ') }
  }

  /** Runs a command that must succeed, and returns its output. */
  async ok(...args: string[]): Promise<string> {
    const { code, text } = await this.run(...args)
    if (code !== 0) throw new Error(`terraform ${args.join(' ')}: ${text.slice(text.indexOf('Error:'))}`)
    return text
  }

  apply = (...args: string[]) => this.ok('apply', '-auto-approve', '-input=false', ...args)
  destroy = () => this.ok('destroy', '-auto-approve', '-input=false')

  /** What the next apply would do to each resource: `create`, `update`, `delete,create`. Empty if nothing changes. */
  async changes(...args: string[]): Promise<Record<string, string>> {
    await this.ok('plan', '-input=false', '-out=plan', ...args)
    const { output } = await this.start('show', '-json', 'plan').ended()
    const { resource_changes = [] } = JSON.parse(output) as {
      resource_changes?: { address: string; mode: string; change: { actions: string[] } }[]
    }
    const real = resource_changes.filter(
      ({ mode, change }) => mode === 'managed' && change.actions[0] !== 'no-op',
    )
    return Object.fromEntries(real.map(({ address, change }) => [address, change.actions.join()]))
  }

  /** The attributes of a resource in the state; undefined if the state does not have it. */
  async state(address: string): Promise<Record<string, unknown> | undefined> {
    const { output } = await this.start('show', '-json').ended()
    const { values } = JSON.parse(output) as {
      values?: { root_module: { resources?: { address: string; values: Record<string, unknown> }[] } }
    }
    return values?.root_module.resources?.find((resource) => resource.address === address)?.values
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/**
 * The folder of the provider as one script. The script does the same as the executable of
 * `npm run build:terraform`, but is built faster.
 */
const providerDir = join(root, '.cache/terraform-provider')
export async function buildProvider(): Promise<string> {
  mkdirSync(providerDir, { recursive: true })
  const outfile = join(providerDir, 'terraform-provider-slipway')
  const banner = { js: '#!/usr/bin/env node' }
  const { outputFiles } = await build({
    entryPoints: [join(root, 'packages/terraform/src/main.ts')],
    ...{ outfile, banner, bundle: true, platform: 'node', format: 'cjs', target: 'node20', write: false },
  })
  // The checkout has ES modules, and Terraform finds a provider only by a name without an ending.
  writeFileSync(join(providerDir, 'package.json'), '{ "type": "commonjs" }\n')
  // Several suites may build the provider at the same time, so each one replaces the file in one step.
  const own = `${outfile}-${process.pid}`
  writeFileSync(own, outputFiles[0]!.contents, { mode: 0o755 })
  renameSync(own, outfile)
  return outfile
}
