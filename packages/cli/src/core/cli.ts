import { isUuid } from '@slipway/contract/names'
import type { Client, TokenSource } from '@slipway/sdk'
import type { Levers } from '@slipway/sdk/levers'
import { exitCodes, UsageError } from '../errors/cli-error.ts'
import type { Io } from '../io.ts'
import { colorsFor, type Palette } from '../output/colors.ts'
import { type OutputFormat, parseOutput } from '../output/format.ts'
import type { Output } from '../output/print.ts'
import { safeText } from '../output/untrusted.ts'
import { clientOf, leversOf } from './client.ts'
import { resolveAmong } from './names.ts'
import { storedSession } from './session.ts'
import { type GlobalFlags, resolveSettings, type Settings } from './settings.ts'

/** One run of the CLI: its client and its output. */
export class Cli implements Output {
  readonly flags: GlobalFlags
  readonly io: Io
  readonly format: OutputFormat
  readonly colors: Palette
  readonly noteColors: Palette
  /** True if the user can be asked questions. */
  readonly isInteractive: boolean
  /** The exit code of the process if nothing is thrown. */
  exitCode: number = exitCodes.done
  private resolvedSettings: Settings | undefined
  private projectId: Promise<string> | undefined

  constructor(flags: GlobalFlags, io: Io) {
    this.flags = flags
    this.io = { ...io, env: withoutEmpty(io.env) }
    this.format = parseOutput(flags.output ?? 'table', flags.header !== false)
    this.colors = colorsFor(io.stdout, flags, io.env)
    this.noteColors = colorsFor(io.stderr, flags, io.env)
    this.isInteractive = Boolean(io.stdin.isTTY && io.stderr.isTTY) && !flags.quiet
  }

  get env(): NodeJS.ProcessEnv {
    return this.io.env
  }

  get settings(): Settings {
    this.resolvedSettings ??= resolveSettings(this.flags, this.env, this.io.cwd)
    return this.resolvedSettings
  }

  get client(): Client {
    return clientOf(this.settings.apiUrl, this.credential())
  }

  /** Returns a client for operator routes. It uses the operator key if there is one, otherwise the login. */
  get operator(): Client {
    return clientOf(this.settings.apiUrl, this.settings.operatorKey || this.credential())
  }

  /** Returns the controls of a service that was started with `--dev`. They need an operator's credential. */
  get levers(): Levers {
    return leversOf(this.settings.apiUrl, this.settings.operatorKey || this.credential())
  }

  private credential(): TokenSource {
    const credential = this.settings.accessKey || storedSession(this.settings, this.env)
    if (credential) return credential
    throw new UsageError(`No credentials for ${this.settings.apiUrl}.`, [
      'Log in with `slipway login`, or set SLIPWAY_ACCESS_KEY.',
    ])
  }

  /** Returns the id of the project that the command uses. */
  project(): Promise<string> {
    this.projectId ??= this.findProject()
    return this.projectId
  }

  private async findProject(): Promise<string> {
    const wanted = this.settings.project
    if (isUuid(wanted)) return wanted
    const projects = await this.client.projectList()
    if (wanted) return resolveAmong('project', wanted, projects, (project) => project).id
    if (projects.length === 1 && projects[0]) return projects[0].id
    throw new UsageError(
      projects.length === 0
        ? 'You have no project yet.'
        : 'You have several projects. Choose one with --project.',
      projects.length === 0
        ? ['Create one with `slipway project create NAME`.']
        : [`Use --project or SLIPWAY_PROJECT: ${projects.map((project) => project.name).join(', ')}`],
    )
  }

  /**
   * Returns the id of the named organization. Without a name, returns the id of the only organization, or if there
   * are several, of the project's organization.
   */
  async organization(wanted?: string): Promise<string> {
    if (isUuid(wanted)) return wanted
    const organizations = await this.client.organizationList()
    if (wanted) return resolveAmong('organization', wanted, organizations, (organization) => organization).id
    if (organizations.length === 1 && organizations[0]) return organizations[0].id
    return (await this.client.projectGet({ project_id: await this.project() })).organization_id
  }

  /** Prints a note in addition to the result, but only if stderr is a terminal. */
  note(text: string): void {
    if (this.io.stderr.isTTY) this.say(text)
  }

  /** Prints a line on stderr even if it is not a terminal, so that logs contain it. */
  say(text: string): void {
    if (!this.flags.quiet) this.io.stderr.write(`${safeText(text)}\n`)
  }
}

/** Removes empty variables, because scripts and CI systems unset a variable by making it empty. */
const withoutEmpty = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(env).filter(([name, value]) => !(name.startsWith('SLIPWAY_') && value === '')),
  )
