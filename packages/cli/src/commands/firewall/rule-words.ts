import { UsageError } from '../../errors/cli-error.ts'

export const protocols = ['tcp', 'udp', 'icmp'] as const
export type Protocol = (typeof protocols)[number]

interface RuleWords {
  protocols: Protocol[]
  ports: string[]
  /** CIDR blocks, or names of VMs, subnets or networks. */
  from: string[]
  to: string[]
}

const services: Record<string, Pick<RuleWords, 'protocols' | 'ports'>> = {
  ssh: { protocols: ['tcp'], ports: ['22'] },
  http: { protocols: ['tcp'], ports: ['80'] },
  https: { protocols: ['tcp'], ports: ['443'] },
  jupyter: { protocols: ['tcp'], ports: ['8888'] },
  tensorboard: { protocols: ['tcp'], ports: ['6006'] },
  ray: { protocols: ['tcp'], ports: ['6379', '8265', '10001'] },
  postgres: { protocols: ['tcp'], ports: ['5432'] },
  mosh: { protocols: ['udp'], ports: ['60000-61000'] },
  ping: { protocols: ['icmp'], ports: [] },
  icmp: { protocols: ['icmp'], ports: [] },
  tcp: { protocols: ['tcp'], ports: [] },
  udp: { protocols: ['udp'], ports: [] },
  all: { protocols: ['tcp', 'udp', 'icmp'], ports: [] },
}

export const serviceNames = Object.keys(services)

/** Parses a rule such as `ssh from 203.0.113.0/24 to train-7`. The source and destination are optional. */
export function parseRuleWords(words: string[]): RuleWords {
  const [what = '', ...rest] = words
  const { protocols, ports } = parseService(what)
  const rule: RuleWords = { protocols, ports, from: [], to: [] }
  let side: 'from' | 'to' | undefined
  for (const word of rest) {
    if (word === 'from' || word === 'to') side = word
    else if (side) rule[side].push(...word.split(',').filter(Boolean))
    else throw new UsageError(`“${word}” is unexpected here. Write “from” or “to” before it.`)
  }
  for (const word of ['from', 'to'] as const) {
    if (rest.includes(word) && rule[word].length === 0)
      throw new UsageError(`“${word}” must be followed by an address or a name.`)
  }
  return rule
}

/** Parses a service, a port, a range or a list, such as `ssh`, `8000/tcp` or `3000-8080,9000`. */
function parseService(text: string): Pick<RuleWords, 'protocols' | 'ports'> {
  const known = services[text.toLowerCase()]
  if (known) return known
  const match = /^(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)(?:\/(tcp|udp))?$/.exec(text)
  if (!match)
    throw new UsageError(`${text} is neither a known service nor a port.`, [
      `Supported: ${serviceNames.join(', ')}, and ports such as 8000, 53/udp and 3000-8080`,
    ])
  return { protocols: [(match[2] ?? 'tcp') as 'tcp' | 'udp'], ports: match[1]!.split(',') }
}

/** Returns a name such as `allow-ssh-from-203-0-113-0-24`, truncated to the maximum length of a name. */
export function nameOfWords(action: string, words: string[]): string {
  const text = [action, ...words].join('-').replace(/[^A-Za-z0-9]+/g, '-')
  return text.slice(0, 63).replace(/-+$/, '')
}
