import type { Event } from '@slipway/sdk'
import { expect, test } from 'vitest'
import { groupEvents, withoutCutGroup } from '../src/lib/event-groups.ts'

const event = (id: string, type: string, data: Event['data'] = {}) => ({ id, type, data }) as Event
const ofOperation = { operation_id: 'o', operation_name: 'CREATE' }
const end = event('3', 'operation.succeeded', ofOperation)
const running = event('2', 'disk.available', { operation_id: 'o' })
const beginning = event('1', 'disk.creating', ofOperation)
const other = event('4', 'member.invited')

test('the last group is left out only while its operation has no beginning', () => {
  const shown = (...events: Event[]) => withoutCutGroup(groupEvents(events)).map(({ event }) => event.id)
  expect(shown(other, end, running)).toEqual(['4'])
  expect(shown(other, end, running, beginning)).toEqual(['4', '3'])
  expect(shown(end, running, other)).toEqual(['3', '4'])
  // A list is never empty because of this.
  expect(shown(end, running)).toEqual(['3'])
})
