/** Returns the curl command for a request. */
export function curlCommand(method: string, path: string, body?: unknown): string {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}${location.origin}${path} \\`]
  const key = path.startsWith('/v0.1/admin/') ? 'SLIPWAY_OPERATOR_KEY' : 'SLIPWAY_ACCESS_KEY'
  lines.push(`  -H "Authorization: Bearer $${key}"`)
  if (body !== undefined) {
    lines[lines.length - 1] += ' \\'
    lines.push('  -H "Content-Type: application/json" \\')
    lines.push(`  -d ${shellQuote(JSON.stringify(body))}`)
  }
  return lines.join('\n')
}

export const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
