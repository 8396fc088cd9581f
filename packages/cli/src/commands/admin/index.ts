import type { GroupSpec } from '../../core/command.ts'
import { adminAudit } from './audit.ts'
import { adminCapacity } from './capacity.ts'
import { adminEvents } from './events.ts'
import { adminFaults } from './faults.ts'
import { adminGpu } from './gpu/index.ts'
import { adminHost } from './host/index.ts'
import { adminImage } from './image/index.ts'
import { adminKey } from './key/index.ts'
import { adminLocation } from './location.ts'
import { adminOperation } from './operation/index.ts'
import { adminOrg } from './org/index.ts'
import { adminPrice } from './price/index.ts'
import { adminProject } from './project.ts'
import { adminQueue } from './queue.ts'
import { adminQuota } from './quota/index.ts'
import { adminQuotaRequest } from './quota-request.ts'
import { adminReservation } from './reservation.ts'
import { adminUser } from './user/index.ts'
import { adminVm } from './vm/index.ts'

/** These commands need an operator key (SLIPWAY_OPERATOR_KEY) or an operator's login. */
export const admin: GroupSpec = {
  name: 'admin',
  summary: 'operator commands',
  commands: [
    adminHost,
    adminGpu,
    adminFaults,
    adminCapacity,
    adminQueue,
    adminReservation,
    adminOrg,
    adminProject,
    adminUser,
    adminKey,
    adminVm,
    adminQuota,
    adminQuotaRequest,
    adminImage,
    adminLocation,
    adminPrice,
    adminOperation,
    adminEvents,
    adminAudit,
  ],
}
