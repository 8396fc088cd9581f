import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@slipway/testing/port.ts'
import { startProgram } from '@slipway/testing/program.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { beforeAll, expect, test } from 'vitest'
import { binary } from './support/cli.ts'
import { placeProgram } from './support/programs.ts'
import { cliWithServer } from './support/with-server.ts'

// VMs in us-east1-a have addresses that the CLI does not recognize as simulated, so it starts ssh and scp for them.
const models = ['A40 48GB PCIe']
const cli = cliWithServer(
  [
    simulatedLocation({ name: 'us-east1-a', publicIpv4: '203.0.113.0/24', models }),
    simulatedLocation({ name: 'eu-north1-a', publicIpv4: '198.18.0.0/18', models }),
  ].join(''),
)
const { home, base, publicKey, executable, slipway } = cli
const bin = join(home, 'bin')

/** Replaces a system program with a shell script. */
const program = (name: string, lines: string) => placeProgram(bin, name, lines)

let trust: string
beforeAll(async () => {
  program('ssh', 'echo "ssh $*"\nexit 17')
  program('scp', 'echo "scp $*"')
  await cli.createVm('train-7')
  const { id } = await cli.json('vm', 'show', 'train-7')
  trust = `-o HostKeyAlias=slipway-${id} -o StrictHostKeyChecking=accept-new -o ConnectTimeout=15`
})
const withPrograms = () => ({ env: { ...cli.env, PATH: `${bin}:${base.PATH}` } })
const run = (...words: string[]) => executable(words, withPrograms())
const withoutAddress = (text: string) => text.replaceAll(/203\.0\.113\.\d+/g, 'HOST')

test("vm ssh runs the system's ssh with user and address, and passes on its exit code", async () => {
  const shell = await run('vm', 'ssh', 'train-7', '-i', 'key', '--', 'nvidia-smi', '-L')
  expect(shell.code).toBe(17)
  expect(withoutAddress(shell.stdout)).toBe(`ssh ${trust} -i key -p 22 -- ubuntu@HOST nvidia-smi -L\n`)
})

test('vm ssh forwards ports as ssh does', async () => {
  const words = ['-L', '6006:localhost:6006', '-L', '8888:localhost:8888', '-D', '1080', '-A', '-N']
  const { stdout } = await run('vm', 'ssh', 'train-7', ...words)
  const forwards = '-L 6006:localhost:6006 -L 8888:localhost:8888 -D 1080 -A -N'
  expect(withoutAddress(stdout)).toBe(`ssh ${trust} ${forwards} -p 22 -- ubuntu@HOST\n`)
})

test('vm scp copies to and from one VM, and requires a VM', async () => {
  const there = await run('vm', 'scp', '-r', 'data', './a:b', 'train-7:/mnt/data')
  expect(withoutAddress(there.stdout)).toBe(`scp ${trust} -P 22 -r -- data ./a:b ubuntu@HOST:/mnt/data\n`)
  const back = await run('vm', 'scp', 'train-7:results/model.pt', '.')
  expect(withoutAddress(back.stdout)).toBe(`scp ${trust} -P 22 -- ubuntu@HOST:results/model.pt .\n`)
  for (const paths of [['a', 'b'], ['train-7:a'], ['train-7:a', 'other:b']])
    expect((await run('vm', 'scp', ...paths)).code).toBe(2)
})

test('vm tunnel prints the address as soon as the port is forwarded, and ends with ssh', async () => {
  // This replacement listens on the local address, as ssh does.
  program(
    'ssh',
    `echo "ssh $*" >&2
for word; do case $word in 127.0.0.1:*) port=$(echo $word | cut -d: -f2);; esac; done
exec ${process.execPath} -e 'require("net").createServer(s => s.end()).listen(+process.argv[1], "127.0.0.1")' $port`,
  )
  const local = await freePort()
  const words = [binary, 'vm', 'tunnel', 'train-7', '8888', '--local', `${local}`]
  const tunnel = startProgram(process.execPath, words, { env: { ...base, ...withPrograms().env }, cwd: home })
  await tunnel.until(new RegExp(`http://127\\.0\\.0\\.1:${local}\n`))
  await tunnel.endGroup('SIGTERM')
  const { errors } = await tunnel.ended()
  const forward = `127.0.0.1:${local}:127.0.0.1:8888`
  expect(errors).toContain(`-N -o ExitOnForwardFailure=yes -L ${forward} -p 22 -- ubuntu@`)
  expect((await slipway('vm', 'tunnel', 'train-7', 'jupyter')).code).toBe(2)
})

test('vm tunnel to the SSH port prints no web address', async () => {
  const local = await freePort()
  const words = [binary, 'vm', 'tunnel', 'train-7', '22', '--local', `${local}`]
  const tunnel = startProgram(process.execPath, words, { env: { ...base, ...withPrograms().env }, cwd: home })
  await tunnel.until(new RegExp(`^127\\.0\\.0\\.1:${local}\n`, 'm'))
  await tunnel.endGroup('SIGTERM')
  expect((await tunnel.ended()).output).not.toContain('http')
})

test('vm ssh offers the key file that vm create was given, even if its path was relative', async () => {
  program('ssh', 'echo "ssh $*"')
  const file = join(home, 'keys', 'lab')
  mkdirSync(join(home, 'keys'))
  expect(spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'ada', '-f', file]).status).toBe(0)
  const where = ['--type', 'a40.1x', '--location', 'us-east1-a', '--quiet']
  const relative = { env: cli.env, cwd: join(home, 'keys') }
  const words = ['vm', 'create', 'with-key', ...where, '--ssh-key', 'lab.pub']
  expect(await executable(words, relative)).toMatchObject({ code: 0 })
  expect((await run('vm', 'ssh', 'with-key')).stdout).toContain(` -i ${file} -p 22 -- ubuntu@`)
  expect((await run('vm', 'ssh', 'with-key', '-i', 'other')).stdout).toContain(' -i other -p 22')
  expect((await run('vm', 'ssh', 'train-7')).stdout).not.toContain(' -i ')
  rmSync(file)
  expect((await run('vm', 'ssh', 'with-key')).stdout).not.toContain(' -i ')
})

test('a simulated or stopped VM is reported as such immediately', async () => {
  const there = ['--type', 'a40.1x', '--location', 'eu-north1-a', '--ssh-key', publicKey, '--quiet']
  const { stdout } = await slipway('vm', 'create', 'pretended', ...there)
  expect(stdout).toBe(
    'pretended is running. It is simulated: there is no machine behind it, so SSH does not connect.\n',
  )
  for (const verb of [
    ['ssh', 'pretended'],
    ['scp', 'a', 'pretended:'],
    ['tunnel', 'pretended', '8888'],
  ]) {
    const { code, stderr } = await run('vm', ...verb)
    expect(code).toBe(4)
    expect(stderr).toMatch(/^slipway: pretended is simulated: there is no machine behind 198\.18\./)
  }
  await slipway('vm', 'stop', 'pretended', '--quiet')
  expect((await run('vm', 'ssh', 'pretended')).stderr).toContain('it is stopped')
})

test('exports list the running VMs', async () => {
  const { stdout } = await slipway('export', 'ssh-config', '--identity', '~/.ssh/work')
  expect(stdout).toMatch(/Host train-7\n {2}HostName 203\.0\.113\.\d+\n {2}User ubuntu\n/)
  if (existsSync('/usr/bin/ssh')) {
    const config = join(home, 'ssh.conf')
    writeFileSync(config, stdout)
    const { stdout: read } = spawnSync('ssh', ['-G', '-F', config, 'train-7'], { encoding: 'utf8' })
    expect(read).toContain('user ubuntu\n')
    expect(read).toContain('identityfile ~/.ssh/work\n')
  }
})
