import { stepText } from '../../lib/format.ts'

/** What each step of an operation does. */
const stepTexts: Record<string, string> = {
  admit: 'Check and reserve resources',
  boot: 'Start the VM on its host',
  finish: 'Record the result',
  wait_for_cancelled: 'Wait for cancelled operations',
  remove: 'Remove the resource from the host',
  release: 'Release resources',
  shut_down: 'Shut down the operating system',
  power_off: 'Power off the VM',
  reset: 'Reset the VM',
  create: 'Create the disk',
  grow: 'Enlarge the disk',
  attach: 'Attach the disks',
  detach: 'Detach the disks',
  apply: 'Apply the firewall rules',
  update: 'Record the change',
  members: 'Wait for all members',
  place: 'Place the member on another host',
  disks: 'Delete the members’ disks',
}
export const operationStepText = (name: string): string => stepTexts[name] ?? stepText(name)
