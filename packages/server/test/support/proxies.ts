import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '@slipway/testing/root.ts'

export const certificate = (ending: 'crt' | 'key'): string =>
  join(import.meta.dirname, `fixtures/tls/first.${ending}`)

interface ProxyPlace {
  /** The folder for the files of the proxy. */
  folder: string
  port: number
  /** Host and port of the service. */
  upstream: string
}

export interface Proxy {
  name: string
  binary: string
  /**
   * Writes the documented configuration file with ports of this machine and the certificate of the tests. Returns the
   * command-line arguments.
   */
  configure(place: ProxyPlace): string[]
}

export const proxies: Proxy[] = [
  {
    name: 'nginx',
    binary: '/usr/sbin/nginx',
    configure({ folder, port, upstream }) {
      const site = adapt('nginx.conf', [
        [/server 127\.0\.0\.1:8080;/, `server ${upstream};`],
        [/listen 80;/, `listen unix:${join(folder, 'plain.sock')};`],
        [/listen 443 ssl;/, `listen 127.0.0.1:${port} ssl;`],
        [/(ssl_certificate +)\S+;/, `$1${certificate('crt')};`],
        [/(ssl_certificate_key +)\S+;/, `$1${certificate('key')};`],
      ])
      const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      const tempPaths = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join('\n')
      const user = process.getuid?.() === 0 ? 'user root;' : ''
      const all = `${user} daemon off; worker_processes 1; pid ${join(folder, 'pid')}; events {}
        http { access_log off; ${tempPaths} ${site} }`
      writeFileSync(join(folder, 'nginx.conf'), all)
      return ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]
    },
  },
  {
    name: 'caddy',
    binary: '/usr/bin/caddy',
    configure({ folder, port, upstream }) {
      const site = adapt('Caddyfile', [
        [
          /gpu\.example\.com \{/,
          `https://127.0.0.1:${port} {\ntls ${certificate('crt')} ${certificate('key')}`,
        ],
        [/127\.0\.0\.1:8080/, upstream],
      ])
      const options = `{\nadmin off\nauto_https disable_redirects\ngrace_period 1s\nstorage file_system ${folder}\n}\n`
      writeFileSync(join(folder, 'Caddyfile'), options + site)
      return ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')]
    },
  },
]

/** Adapts a documented file to the test. Throws if a text to be replaced is missing, which means that the file has changed. */
function adapt(file: string, changes: [RegExp, string][]): string {
  return changes.reduce(
    (text, [from, to]) => {
      if (!from.test(text)) throw new Error(`docs/operate/${file} has no ${from}`)
      return text.replace(from, to)
    },
    readFileSync(join(root, 'docs/operate', file), 'utf8'),
  )
}
