import { accessSync, constants, existsSync } from 'node:fs'
import type { Config, LocationConfig } from '../config/index.ts'
import { examine } from '../engines/incus/operate/doctor.ts'
import { type Finding, ok, problem, warning } from '../engines/incus/operate/finding.ts'
import { thisHost } from '../engines/incus/operate/host-findings.ts'
import { hostArchitecture } from '../engines/qemu/architecture.ts'
import { requireQemu } from '../engines/qemu/process/accelerator.ts'
import type { DatabaseFacts } from '../postgres/examine.ts'

export async function engineFindings(config: Config, facts: DatabaseFacts | undefined): Promise<Finding[]> {
  if (config.locations.length === 0)
    return [warning('locations', 'none: there are no hosts for VMs', 'add [[location]] to the configuration')]
  const problemOf = new Map(facts?.engineProblems.map(({ name, problem }) => [name, problem]))
  const findings: Finding[] = []
  for (const location of config.locations) {
    const results = await locationFindings(location)
    findings.push(...results.map((each) => ({ ...each, step: `${location.name}: ${each.step}` })))
    const text = problemOf.get(location.name)
    if (text) findings.push(problem(`${location.name}: last inspection`, text))
  }
  return findings
}

async function locationFindings(location: LocationConfig): Promise<Finding[]> {
  switch (location.engine) {
    case 'simulated':
      return [ok('engine', 'simulated: no real VMs')]
    case 'incus':
      return examine(location, thisHost).catch((error: Error) => [problem('engine', error.message)])
    case 'qemu':
      return [await qemuFinding(), kvmFinding()]
  }
}

async function qemuFinding(): Promise<Finding> {
  const arch = hostArchitecture()
  try {
    return ok('engine', `QEMU ${await requireQemu(arch, arch.qemuProgram)}`)
  } catch (error) {
    return problem('engine', (error as Error).message)
  }
}

function kvmFinding(): Finding {
  if (!existsSync('/dev/kvm'))
    return warning(
      'KVM',
      'this machine has no /dev/kvm: guests are emulated and slow',
      'enable virtualization in the firmware',
    )
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK)
    return ok('KVM', '/dev/kvm is usable')
  } catch {
    return problem('KVM', 'this user has no access to /dev/kvm', 'add the user to the group kvm')
  }
}
