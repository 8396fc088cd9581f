import { vmTypeNames } from '@slipway/sdk'
import { confirmLoss } from '../../core/ask.ts'
import { command, type GroupSpec } from '../../core/command.ts'
import { parseNumber, parseTime } from '../../core/parse.ts'
import { idOf } from '../../core/resource.ts'
import { printList, printOne } from '../../output/print.ts'
import { organizations } from '../org/resource.ts'
import { reservationColumns } from '../reservation/resource.ts'

const argument = { syntax: '<reservation>', description: 'id of the reservation' } as const
const example = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'

const list = command<{ organization?: string }>({
  name: 'list',
  summary: 'list the reservations of all organizations',
  options: [{ flags: '--organization <org>', description: 'only reservations of this organization (id)' }],
  columns: reservationColumns,
  examples: ['slipway admin reservation list', 'slipway admin reservation list -o json'],
  async run(cli, { organization }) {
    const rows = await cli.operator.collect('adminReservationList', {
      ...(organization && { organization_id: organization }),
    })
    await printList(cli, rows, reservationColumns, 'adminReservationList')
  },
})

interface CreateInput {
  organization: string
  billingProject: string
  type: (typeof vmTypeNames)[number]
  location: string
  count: number
  start: string
  end: string
  price: number
}

const create = command<CreateInput>({
  name: 'create',
  summary: 'sell a reservation',
  details:
    'From 24 hours before the start, GPUs are set aside for the reservation as they become free. No VM is stopped for a reservation. Only delivered GPUs are billed.',
  options: [
    {
      flags: '--organization <org>',
      description: 'name or id of the organization that buys the reservation',
      required: true,
    },
    {
      flags: '--billing-project <id>',
      description: 'id of the organization’s project that pays for the reservation',
      required: true,
    },
    { flags: '--type <type>', description: 'VM type', values: vmTypeNames, required: true },
    { flags: '--location <location>', description: 'location', complete: 'location', required: true },
    { flags: '--count <n>', description: 'number of VMs of this type', parse: parseNumber, required: true },
    { flags: '--start <time>', description: 'start of the contract', parse: parseTime, required: true },
    { flags: '--end <time>', description: 'end of the contract', parse: parseTime, required: true },
    { flags: '--price <usd>', description: 'USD per GPU hour', parse: parseNumber, required: true },
  ],
  examples: [
    `slipway admin reservation create --organization ${example} --billing-project ${example} --type a100.8x --location us-east1-a --count 2 --start 2027-01-01 --end 2027-07-01 --price 1.1`,
  ],
  async run(cli, input) {
    const created = await cli.operator.adminReservationCreate({
      organization_id: await idOf(cli, organizations, input.organization),
      billing_project_id: input.billingProject,
      type: input.type,
      location: input.location,
      count: input.count,
      contract_start_date: input.start,
      contract_end_date: input.end,
      usd_per_gpu_hour: input.price,
    })
    await printOne(cli, created)
  },
})

const show = command<{ reservation: string }>({
  name: 'show',
  summary: 'show one reservation',
  arguments: [argument],
  examples: [`slipway admin reservation show ${example}`],
  run: async (cli, { reservation }) =>
    printOne(cli, await cli.operator.adminReservationGet({ reservation_id: reservation })),
})

const extend = command<{ reservation: string; end: string }>({
  name: 'extend',
  summary: 'change the end of a reservation',
  arguments: [argument],
  options: [
    { flags: '--end <time>', description: 'new end of the contract', parse: parseTime, required: true },
  ],
  examples: [`slipway admin reservation extend ${example} --end 2027-10-01`],
  run: async (cli, { reservation, end }) =>
    printOne(
      cli,
      await cli.operator.adminReservationUpdate({ reservation_id: reservation }, { contract_end_date: end }),
    ),
})

const end = command<{ reservation: string; yes?: boolean }>({
  name: 'end',
  summary: 'end a reservation now',
  arguments: [argument],
  options: [{ flags: '-y, --yes', description: 'skip the confirmation' }],
  examples: [`slipway admin reservation end ${example} --yes`],
  async run(cli, { reservation, yes }) {
    await confirmLoss(
      cli,
      `End the reservation ${reservation}? Its VMs will continue to run at the list price.`,
      yes,
    )
    await cli.operator.adminReservationEnd({ reservation_id: reservation })
    cli.note(`Ended ${reservation}.`)
  },
})

export const adminReservation: GroupSpec = {
  name: 'reservation',
  summary: 'reservations of all organizations',
  commands: [list, create, show, extend, end],
}
