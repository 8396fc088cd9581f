import type { GpuFaultDay } from '@slipway/sdk'
import { command, oneOf } from '../../core/command.ts'
import { parseNumber } from '../../core/parse.ts'
import { type Column, printList } from '../../output/print.ts'

const groupings = ['model', 'host', 'xid'] as const

const columns: Column<GpuFaultDay>[] = [
  { name: 'date', value: (row) => row.date },
  { name: 'group', value: (row) => row.group || 'others' },
  { name: 'location', value: (row) => row.location, hideOrder: 1 },
  { name: 'host_faults', value: (row) => row.host_faults, align: 'right' },
  { name: 'guest_faults', value: (row) => row.guest_faults, align: 'right' },
  { name: 'other_errors', value: (row) => row.other_errors, align: 'right' },
]

export const adminFaults = command<{ days?: number; by?: (typeof groupings)[number]; location?: string }>({
  name: 'faults',
  summary: 'count GPU faults by day, up to today (UTC)',
  details:
    'HOST FAULTS were detected by hosts. GUEST FAULTS were reported by guests and may be false. OTHER ERRORS, such as application errors, do not indicate a hardware problem.',
  options: [
    { flags: '--days <days>', description: 'number of days, from 1 to 90 (default: 30)', parse: parseNumber },
    { flags: '--by <group>', ...oneOf(groupings) },
    { flags: '--location <location>', description: 'only this location', complete: 'location' },
  ],
  columns,
  examples: ['slipway admin faults', 'slipway admin faults --days 7 --by host --location us-east1-a'],
  async run(cli, { days, by, location }) {
    const query = {
      ...(days !== undefined && { days }),
      ...(by && { group_by: by }),
      ...(location && { location }),
    }
    await printList(
      cli,
      await cli.operator.collect('adminGpuFaultDayList', query),
      columns,
      'adminGpuFaultDayList',
    )
  },
})
