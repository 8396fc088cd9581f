/** A server that is killed in the middle of its work: starts one VM and then waits until it is killed. */
import { readFileSync } from 'node:fs'
import { createQemuEngine } from '../../src/engines/qemu/index.ts'

const { options, spec, rules } = JSON.parse(readFileSync(process.argv[2]!, 'utf8'))
const engine = await createQemuEngine({ ...options, log: { info() {}, warn() {} } })
const call = { generation: 1, signal: AbortSignal.timeout(120_000) }
await engine.ensureVm(spec, { power: 'on', firewall: { rules, generation: 1 } }, call)
console.log('started')
setInterval(() => {}, 1_000)
