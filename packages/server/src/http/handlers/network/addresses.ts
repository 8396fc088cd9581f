import { requireFound } from '../../../domain/failure.ts'
import { admitAddressAssign, admitAddressUnassign } from '../../../operations/address/readdress.ts'
import { changeAddress, releaseAddress, reserveAddress } from '../../../operations/address/reserve.ts'
import { findAddress, listAddresses } from '../../../store/network/public-addresses.ts'
import { addressView } from '../../../views/network.ts'
import { emptyResponse, type Handlers } from '../../context.ts'
import { labelFilter } from '../../filters.ts'
import { pageById } from '../../pages.ts'
import { operationResponse } from '../operations.ts'

export const addressHandlers = {
  addressList(context) {
    const filter = { projectId: context.project.projectId, labels: labelFilter(context.query) }
    return pageById(context, (...page) => listAddresses(context.tx, filter, ...page), addressView)
  },

  addressCreate: async ({ tx, by, body }) => addressView(await reserveAddress(tx, by, body)),

  addressGet: async ({ tx, project, params }) =>
    addressView(requireFound('address', await findAddress(tx, project.projectId, params.address_id))),

  addressUpdate: async ({ tx, by, params, body }) =>
    addressView(await changeAddress(tx, by, params.address_id, body)),

  addressDelete: ({ tx, by, params }) => emptyResponse(releaseAddress(tx, by, params.address_id)),

  addressAssign: async ({ tx, by, params, body }) =>
    operationResponse(await admitAddressAssign(tx, by, params.address_id, body.vm_id)),

  addressUnassign: async ({ tx, by, params, query }) =>
    operationResponse(await admitAddressUnassign(tx, by, params.address_id, query.vm_id)),
} satisfies Partial<Handlers>
