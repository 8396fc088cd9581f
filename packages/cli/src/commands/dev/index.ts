import type { GroupSpec } from '../../core/command.ts'
import { devCapacity } from './capacity.ts'
import { devClock } from './clock.ts'
import { devHost, devVm } from './failures.ts'
import { devFault } from './fault.ts'
import { devGuestAgent } from './guest-agent.ts'
import { devPayments } from './payments.ts'
import { devRequests } from './requests.ts'
import { devReset } from './reset.ts'
import { devTransitions } from './transitions.ts'

/** These commands need an operator key (SLIPWAY_OPERATOR_KEY) or an operator's login. */
export const dev: GroupSpec = {
  name: 'dev',
  summary: 'clock, capacity and failures of a local service that was started with --dev',
  commands: [
    devClock,
    devFault,
    devCapacity,
    devHost,
    devVm,
    devGuestAgent,
    devPayments,
    devTransitions,
    devRequests,
    devReset,
  ],
}
