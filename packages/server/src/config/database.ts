import { ConfigError, readSection, type Section } from './fields.ts'
import { databaseSection } from './sections.ts'

/** `urls` is empty for embedded PostgreSQL. URLs contain passwords and are never shown. */
export interface DatabaseConfig extends Pick<Section<typeof databaseSection>, 'poolSize'> {
  urls: string[]
  /** The setting that provided the URLs, for messages. */
  source: string
}

export function readDatabase(value: unknown, env: NodeJS.ProcessEnv): DatabaseConfig {
  const { urlEnv, urls, passwordEnv, poolSize } = readSection(databaseSection, value, 'database')
  const given = (urlEnv && env[urlEnv]) || ''
  if (urls.length === 0) {
    if (given !== '') requireScheme(given, urlEnv)
    return { poolSize, urls: given === '' ? [] : [given], source: urlEnv }
  }
  if (given !== '')
    throw new ConfigError(
      `database.urls: the environment variable ${urlEnv} is also set; unset it, or remove urls`,
    )
  const password = (passwordEnv && env[passwordEnv]) || ''
  const complete = urls.map((url, i) => withPassword(parseUrl(url, `database.urls[${i}]`), password, i))
  return { poolSize, urls: complete, source: '[database] urls' }
}

/** Messages do not show the value, which may contain a password. */
function requireScheme(url: string, key: string): void {
  if (!/^postgres(ql)?:\/\//.test(url))
    throw new ConfigError(`${key}: must begin with postgres:// or postgresql://`)
}

function parseUrl(url: string, key: string): URL {
  requireScheme(url, key)
  if (!URL.canParse(url)) throw new ConfigError(`${key}: is not a valid URL`)
  return new URL(url)
}

function withPassword(url: URL, password: string, index: number): string {
  if (url.password !== '')
    throw new ConfigError(
      `database.urls[${index}]: must not contain a password; set the environment variable named in password_env`,
    )
  url.password = encodeURIComponent(password)
  return url.href
}
