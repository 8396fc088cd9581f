/** The commands that are equivalent to a page or a form. */
export interface Commands {
  cli: string
  curl: string
  /** Only for resources of the Terraform provider. */
  terraform?: string
}

/** Returns the curl command for a request. */
export function curlCommand(method: string, path: string, body?: object): string {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}${location.origin}${path} \\`]
  const key = path.startsWith('/v0.1/admin/') ? 'SLIPWAY_OPERATOR_KEY' : 'SLIPWAY_ACCESS_KEY'
  lines.push(`  -H "Authorization: Bearer $${key}"`)
  if (body !== undefined) {
    lines[lines.length - 1] += ' \\'
    lines.push('  -H "Content-Type: application/json" \\')
    lines.push(`  -d ${bodyArgument(body)}`)
  }
  return lines.join('\n')
}

/** Scripts often contain secrets, so commands refer to files instead. */
export const scriptFiles: Record<string, string> = {
  startup_script: 'start.sh',
  shutdown_script: 'stop.sh',
}

/** Returns a JSON body as a shell argument. If it has scripts, jq reads them from their files. */
function bodyArgument(body: object): string {
  const used = new Set<string>()
  const text = JSON.stringify(body, (member, value) => {
    if (!(member in scriptFiles) || !value) return value
    used.add(member)
    return `$${member}`
  })
  if (used.size === 0) return shellQuote(text)
  const filter = [...used].reduce((all, member) => all.replaceAll(`"$${member}"`, `$${member}`), text)
  const files = [...used].map((member) => `--rawfile ${member} ${scriptFiles[member]}`).join(' ')
  return `"$(jq -n ${files} ${shellQuote(filter)})"`
}

export const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** Returns a Terraform resource block. Its arguments have the same names as in the API. */
export const terraformResource = (kind: string, body: object): string =>
  terraformBlock(kind, 'name' in body ? String(body.name) : '', body)

/** Returns the block of an existing resource with only the arguments that change. */
const terraformChange = (kind: string, name: string, body: object): string =>
  `# Change these arguments, and keep the others.\n${terraformBlock(kind, name, body)}`

function terraformBlock(kind: string, title: string, body: object): string {
  const members = Object.entries(body).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...members.map(([name]) => name.length))
  const name = /^[a-z][\w-]*$/i.test(title) ? title : 'example'
  const lines = members.map(([member, value]) => {
    const file = scriptFiles[member]
    return `  ${member.padEnd(width)} = ${file && value ? `file("${file}")` : terraformValue(value)}`
  })
  return [`resource "slipway_${kind}" "${name}" {`, ...lines, '}'].join('\n')
}

function terraformValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(terraformValue).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([name, each]) =>
        `${/^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name)} = ${terraformValue(each)}`,
    )
    return `{ ${members.join(', ')} }`
  }
  // In Terraform strings, these sequences start a template.
  return JSON.stringify(value).replaceAll(/[$%]\{/g, (opening) => opening[0] + opening)
}

interface ShownRequest {
  cli: string
  method?: 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** The path below the project, the organization or `/admin`. */
  path: string
  body?: object
  /** The resource of the Terraform provider that the body creates or changes. */
  terraform?: string
  /** The name of the existing resource that the body changes. */
  changes?: string
}

const commandsAt = (
  base: string,
  { cli, method = 'POST', path, body, terraform, changes }: ShownRequest,
): Commands => ({
  cli,
  curl: curlCommand(method, base + path, body),
  ...(terraform &&
    body && {
      terraform:
        changes === undefined
          ? terraformResource(terraform, body)
          : terraformChange(terraform, changes, body),
    }),
})

/** Returns the commands that are equivalent to several requests. */
export function joinedCommands(cli: string, each: Commands[]): Commands {
  const terraform = each.flatMap((commands) => commands.terraform ?? []).join('\n\n')
  return { cli, curl: each.map(({ curl }) => curl).join('\n'), ...(terraform && { terraform }) }
}

/** Returns the commands that are equivalent to a project form. */
export const projectCommands = (projectId: string, request: ShownRequest): Commands =>
  commandsAt(`/v0.1/projects/${projectId}`, request)

/** Returns the commands that are equivalent to an organization form. */
export const organizationCommands = (organizationId: string, request: ShownRequest): Commands =>
  commandsAt(`/v0.1/organizations/${organizationId}`, request)

/** Returns the commands that are equivalent to an operator form. */
export const operatorCommands = (request: ShownRequest): Commands => commandsAt('/v0.1/admin', request)
