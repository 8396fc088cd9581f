import type { EngineConsole, VmSpec } from '../engine.ts'

/** Returns what a Linux guest of this size would print on its serial port. */
export function bootLines(spec: VmSpec): string {
  const script = spec.startupScript.split('\n').filter((line) => line !== '' && !line.startsWith('#!'))
  return lines([
    '[    0.000000] Linux version 6.8.0-simulated (slipway) #1 SMP',
    '[    0.000000] Command line: root=LABEL=root console=ttyS0',
    `[    0.012041] Memory: ${spec.memoryGb * 1024 * 1024}K/${spec.memoryGb * 1024 * 1024}K available`,
    `[    0.041873] smpboot: Allowing ${spec.cpuCores} CPUs, 0 hotplug CPUs`,
    ...spec.gpus.map(
      ({ pciAddress, model }, index) => `[    1.${310 + index}004] nvidia ${pciAddress}: ${model} ready`,
    ),
    ...spec.disks.map(
      ({ serialNumber, sizeGib }) => `[    1.500112] virtio_blk: serial ${serialNumber}, ${sizeGib} GiB`,
    ),
    '[    2.104411] systemd[1]: Reached target Multi-User System.',
    `cloud-init[612]: Setting hostname to ${spec.name}`,
    `cloud-init[612]: eth0 ${spec.network.privateAddress} ${spec.network.macAddress}`,
    'cloud-init[612]: Authorized 1 SSH key',
    ...(script.length > 0 ? ['cloud-init[701]: Running startup script'] : []),
    ...script.slice(0, 5).map((line) => `cloud-init[701]: + ${line}`),
    'cloud-init[701]: Cloud-init finished',
    `${spec.name} login: `,
  ])
}

/** Returns the time that a script takes: the sum of its plain `sleep` lines. */
export function scriptMs(script: string): number {
  const seconds = [...script.matchAll(/^\s*sleep (\d{1,6})\s*$/gm)].map(([, count]) => Number(count))
  return seconds.reduce((sum, count) => sum + count * 1_000, 0)
}

export function shutdownLines(spec: VmSpec): string {
  return lines([
    ...(spec.shutdownScript === '' ? [] : ['slipway[933]: Running shutdown script']),
    'systemd[1]: Reached target Power-Off.',
    'reboot: Power down',
  ])
}

export const crashLines = lines([
  'Kernel panic - not syncing: simulated crash',
  '---[ end Kernel panic - not syncing: simulated crash ]---',
])

/**
 * A console that echoes each character, and prints each line again after Enter. Nothing is executed, because
 * there is no machine.
 */
export function echoShell(name: string, print: (text: string) => Promise<void>): EngineConsole {
  const decoder = new TextDecoder()
  let line = ''
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return {
    ended,
    close: () => end(),
    async write(input) {
      let shown = ''
      for (const character of decoder.decode(input, { stream: true }).replaceAll('\0', '')) {
        if (character === '\r' || character === '\n') {
          shown += `\r\n${line === '' ? '' : `simulated: ${line}\r\n`}root@${name}:~# `
          line = ''
        } else if (character === '\x7f' || character === '\b') {
          shown += line === '' ? '' : '\b \b'
          line = line.slice(0, -1)
        } else if (character === '\x03') {
          shown += `^C\r\nroot@${name}:~# `
          line = ''
        } else if (line.length < maxLineCharacters) {
          shown += character
          line += character
        }
      }
      if (shown !== '') await print(shown)
    },
  }
}

const maxLineCharacters = 4_096

function lines(content: string[]): string {
  return `${content.join('\n')}\n`
}
