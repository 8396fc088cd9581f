import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseSshPublicKey, sshKeyLine, sshKeyPattern } from '../src/ssh-key.ts'

// Generated with ssh-keygen of OpenSSH 9.2.
const BY_SSH_KEYGEN = {
  'ssh-ed25519': 'AAAAC3NzaC1lZDI1NTE5AAAAIBLSo/rs5rz38pKJ/DVyItxYn2CyCiqbJAgxmJrXj1QR',
  'ecdsa-sha2-nistp256':
    'AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBC0dAyPqzYUQhGF4tF5ozcWFu/8pVXANT18Yq4+YnVXLHYeEntIWfP8aSIxCtjOnBbLNT6DSw8+u3hymwlWPRa8=',
  'ecdsa-sha2-nistp384':
    'AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBIdzeLYV5BrG7S0L/hbxDFesF+LFL51qBpeLdAgci0rtcISHj+M1/QgI4FfXuo7RLC9MnPrAkQBd/LTwl9+p1LJ7Tu68eRHRsE7BeARCHstLwqOORCG6hx6SgKcxcg7OzQ==',
  'ecdsa-sha2-nistp521':
    'AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAF9htO645Xrf8UtdiNRZfFG3Wgb7k+0M98StsB5SCGrcFxIIi7p8s2I47MTZtqmic+6DzFEDC1sywC1ugDmuPy9+gGFbwDdM6X/CaIKk5Lteu9s1+WfluVORUVVqq7zfmEqrtnt7R9tpXT7fn3cDye3n+vtp0J9LDI3x5P8nm/43+eOMg==',
  'ssh-rsa':
    'AAAAB3NzaC1yc2EAAAADAQABAAABAQCvvCFbrzHkDd9zBQt0AOaV1ukkBQPpoAHURjbm+NdjhKB91m5ah/I2fuWFz/wy4n8R/H38KHO6h7BP3pENQbh4d/vWHQx0xKfczeaGV08zGQSkCnP78NpCWnEKePP4/rq7tjawhlPGnylSRvj/5CETB7LhzbttHgYEsWppuC/Lo4Uf3WiO4x6GgaMKuvJLAJ9VsLb43d74hvI09dviaG5khLExh04fX8R48zPEBB+xsZh55N8dUyzZmNKDs1eRu5hrtZHVqA/RvPd35mlGYhyBgZvshVpwiqxLJJGQCO6RufUCnjCzy4nKHUnHJQRvZpkbdz2IZC62ASTeO05QrKcT',
}
const BITS = [256, 256, 384, 521, 2048]

type Part = string | Uint8Array

/** The wire format, built independently of the parser. */
function blob(...parts: Part[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = Buffer.from(part as Uint8Array)
      const length = Buffer.alloc(4)
      length.writeUInt32BE(bytes.length)
      return [length, bytes]
    }),
  )
}

function line(type: string, ...parts: Part[]): string {
  return `${type} ${blob(type, ...parts).toString('base64')}`
}

function rsa(modulusBits: number, change: (n: Buffer) => Buffer = (n) => n): string {
  const modulus = Buffer.alloc(Math.ceil(modulusBits / 8), 0x55)
  modulus[0] = 1 << ((modulusBits - 1) % 8)
  const withSign = modulus[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), modulus]) : modulus
  return line('ssh-rsa', Buffer.of(1, 0, 1), change(withSign))
}

const point = (bytes: number, form = 4) => Buffer.concat([Buffer.of(form), Buffer.alloc(2 * bytes, 7)])
const problemOf = (text: string) => {
  const parsed = parseSshPublicKey(text)
  return parsed.ok ? '' : parsed.problem
}

test.each(Object.entries(BY_SSH_KEYGEN).map(([type, data], i) => [type, data, BITS[i]!] as const))(
  'an %s key from ssh-keygen is accepted, with and without a comment',
  (type, data, bits) => {
    expect(parseSshPublicKey(`${type} ${data}`)).toEqual({ ok: true, type, bits, comment: '' })
    const comment = 'some one@höst  ssh-rsa'
    expect(parseSshPublicKey(`${type} ${data} ${comment}`)).toEqual({ ok: true, type, bits, comment })
  },
)

test.each(['\n', '\r\n'])('the line break %j at the end of a key is ignored', (end) => {
  for (const [type, data] of Object.entries(BY_SSH_KEYGEN)) {
    const text = `${type} ${data} ada@laptop${end}`
    expect(parseSshPublicKey(text)).toMatchObject({ ok: true, type, comment: 'ada@laptop' })
    expect(text).toMatch(new RegExp(sshKeyPattern))
    expect(sshKeyLine(text)).toBe(`${type} ${data} ada@laptop`)
  }
})

test('keys of security tokens are accepted', () => {
  const ed25519 = line('sk-ssh-ed25519@openssh.com', Buffer.alloc(32, 9), 'ssh:')
  expect(parseSshPublicKey(ed25519)).toMatchObject({ ok: true, bits: 256 })
  const ecdsa = line('sk-ecdsa-sha2-nistp256@openssh.com', 'nistp256', point(32), 'ssh:work')
  expect(parseSshPublicKey(ecdsa)).toMatchObject({ ok: true, bits: 256 })
})

test('the bits of an RSA key are those of its modulus', () => {
  for (const bits of [2048, 2049, 2055, 3072, 4096, 16384]) {
    const text = rsa(bits)
    expect(parseSshPublicKey(text)).toMatchObject({ ok: true, bits })
  }
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const { n } = publicKey.export({ format: 'jwk' })
  const modulus = Buffer.concat([Buffer.of(0), Buffer.from(n!, 'base64url')])
  expect(parseSshPublicKey(line('ssh-rsa', Buffer.of(1, 0, 1), modulus))).toMatchObject({ bits: 2048 })
})

const good = `ssh-ed25519 ${BY_SSH_KEYGEN['ssh-ed25519']}`
const ed = (...parts: Part[]) => line('ssh-ed25519', ...parts)

test.each([
  ['nothing', '', /starts with a key type/],
  ['two newlines at the end', `${good}\n\n`, /one line/],
  ['a newline in front', `\n${good}`, /one line/],
  ['two lines', `${good}\n${good}`, /one line/],
  ['a carriage return', `${good}\r`, /one line/],
  ['a tab between type and data', good.replace(' ', '\t'), /one line/],
  ['a NUL in the comment', `${good} a\0b`, /one line/],
  ['options in front', `no-pty ${good}`, /starts with a key type/],
  ['a quoted command in front', `command="ls" ${good}`, /starts with a key type/],
  ['a space in front', ` ${good}`, /starts with a key type/],
  ['DSA', line('ssh-dss', Buffer.alloc(20, 1)), /starts with a key type/],
  ['a certificate', good.replace('ssh-ed25519', 'ssh-ed25519-cert-v01@openssh.com'), /starts with/],
  ['a name of Object.prototype', 'constructor AAAA', /starts with a key type/],
  ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----', /private/],
  ['a type alone', 'ssh-ed25519', /base64/],
  ['two spaces', good.replace(' ', '  '), /base64/],
  ['base64 without padding', rsa(2056).replace(/=+$/, ''), /base64/],
  ['base64url', `ssh-ed25519 ${BY_SSH_KEYGEN['ssh-ed25519'].replace('/', '_')}`, /base64/],
  ['an inner type that differs', `ssh-rsa ${BY_SSH_KEYGEN['ssh-ed25519']}`, /not of type ssh-rsa/],
  ['31 bytes of ed25519', ed(Buffer.alloc(31)), /32 bytes/],
  ['33 bytes of ed25519', ed(Buffer.alloc(33)), /32 bytes/],
  ['trailing bytes', ed(Buffer.alloc(32), ''), /more bytes after/],
  ['a missing part', line('ssh-ed25519'), /ends before/],
  ['a token key without application', line('sk-ssh-ed25519@openssh.com', Buffer.alloc(32)), /ends before/],
  ['another curve', line('ecdsa-sha2-nistp256', 'nistp384', point(32)), /curve/],
  ['a compressed point', line('ecdsa-sha2-nistp256', 'nistp256', point(32, 2).subarray(0, 33)), /point/],
  ['a point that is too long', line('ecdsa-sha2-nistp256', 'nistp256', point(33)), /point/],
  ['RSA of 2047 bits', rsa(2047), /at least 2048 bits, this one has 2047/],
  ['an even modulus', rsa(2048, (n) => Buffer.concat([n.subarray(0, -1), Buffer.of(2)])), /even/],
  ['a negative modulus', rsa(2048, (n) => n.subarray(1)), /positive/],
  ['a padded modulus', rsa(2048, (n) => Buffer.concat([Buffer.of(0), n])), /shortest/],
  ['exponent 1', line('ssh-rsa', Buffer.of(1), Buffer.alloc(257, 1)), /exponent/],
  ['exponent 0', line('ssh-rsa', '', Buffer.alloc(257, 1)), /exponent/],
])('a key is rejected: %s', (_what, text, problem) => {
  expect(problemOf(text)).toMatch(problem)
})

test('one key cannot be written in two ways through unused base64 bits', () => {
  const spelled = rsa(2048 + 8)
  const match = /^(.*)([A-Za-z0-9+/])(=+)$/.exec(spelled)!
  expect(parseSshPublicKey(spelled).ok).toBe(true)
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const other = alphabet[alphabet.indexOf(match[2]!) + 1]
  expect(problemOf(`${match[1]}${other}${match[3]}`)).toMatch(/base64/)
})

test('every proper prefix of the key data is rejected', () => {
  for (const [type, data] of Object.entries(BY_SSH_KEYGEN)) {
    const bytes = Buffer.from(data, 'base64')
    for (let length = 0; length < bytes.length; length++) {
      expect(parseSshPublicKey(`${type} ${bytes.subarray(0, length).toString('base64')}`).ok).toBe(false)
    }
  }
})

test('parsing a key never throws, for any bytes', () => {
  const types = fc.constantFrom(...Object.keys(BY_SSH_KEYGEN))
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => !parseSshPublicKey(text).ok))
  fc.assert(
    fc.property(types, fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 4 }), (type, parts) => {
      expect(typeof parseSshPublicKey(line(type, ...parts)).ok).toBe('boolean')
    }),
  )
})
