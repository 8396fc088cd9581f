import { expect, test } from 'vitest'
import type { GuestGpu } from '../../src/domain/guest/report.ts'
import { driverReasons, healthOf, reasonOf, withoutRecovered } from '../../src/domain/health/health.ts'
import { makesSuspect, meaningOf } from '../../src/domain/health/xids.ts'

const at = '2026-11-20T10:00:00.000Z'
const plain = { operatorMeanings: new Map(), wasResetTwice: false }
const gpu = (recovery: string | null, rowRemapFailure: number | null = 0): GuestGpu => ({
  ...{ uuid: 'GPU-1', name: 'NVIDIA A100', recovery },
  values: [0, 0, 0, 0, 0, 0, 0, rowRemapFailure],
})

test('every XID error of the table has one meaning', () => {
  const meanings = Array.from({ length: 173 }, (_, xid) => meaningOf(xid))
  const countOf = (meaning: string) => meanings.filter((each) => each === meaning).length
  expect([54, 64, 79, 0].map((xid) => meaningOf(xid))).toEqual(Array(4).fill('replace'))
  expect([31, 45, 126, 139].map((xid) => meaningOf(xid))).toEqual(Array(4).fill('application'))
  expect([48, 95, 143, 151].map((xid) => meaningOf(xid))).toEqual(Array(4).fill('reset'))
  expect([63, 154, 172].map((xid) => meaningOf(xid))).toEqual(Array(3).fill('information'))
  expect([1, 87, 999].map((xid) => meaningOf(xid))).toEqual(Array(3).fill('unlisted'))
  expect(['application', 'information', 'reset', 'replace'].map(countOf)).toEqual([56, 18, 23, 4])
  expect([63, 157, 48, 79].every((xid) => makesSuspect(xid))).toBe(true)
  expect([31, 92, 999].some((xid) => makesSuspect(xid))).toBe(false)
})

test('operators can give an XID error another meaning', () => {
  const operatorMeanings = new Map([[32, 'replace' as const]])
  const fault = { xid: 32, gpuIndex: 1, source: 'guest' as const, at }
  expect(reasonOf(fault, { ...plain, operatorMeanings })).toMatchObject({ code: 'xid_32', action: 'REPLACE' })
  expect(reasonOf(fault, plain)).toMatchObject({ code: 'xid_32', gpu_index: 1, action: '' })
  // A lost GPU is always unhealthy.
  expect(meaningOf(0, new Map([[0, 'application' as const]]))).toBe('replace')
})

test('the recovery action that the driver reports overrides the table', () => {
  const reset = reasonOf({ xid: 48, gpuIndex: 0, source: 'guest', at }, plain)
  const lost = reasonOf({ xid: 0, gpuIndex: 0, source: 'host', at }, plain)
  expect(withoutRecovered([reset, lost], [gpu('none')])).toEqual([lost])
  expect(withoutRecovered([reset, lost], [gpu(null)])).toEqual([reset, lost])
  expect(driverReasons([gpu('none'), gpu('drain and reset'), gpu(null, 1)], at)).toMatchObject([
    { code: 'recovery_action', gpu_index: 1, action: 'RESET' },
    { code: 'row_remap_failure', gpu_index: 2, action: 'REPLACE' },
  ])
})

test('the health has the worst status, keeps its start, and has a bounded number of reasons', () => {
  const reasons = Array.from({ length: 100 }, (_, gpuIndex) =>
    reasonOf({ xid: 48, gpuIndex, source: 'guest', at }, plain),
  )
  const degraded = healthOf(null, reasons, at)
  expect(degraded).toMatchObject({ status: 'degraded', since: at, reasons: { length: 32 } })
  const later = '2026-11-20T11:00:00.000Z'
  expect(healthOf(degraded, reasons, later)?.since).toBe(at)
  const lost = reasonOf({ xid: 79, gpuIndex: 0, source: 'host', at }, plain)
  expect(healthOf(degraded, [...reasons, lost], later)).toMatchObject({ status: 'unhealthy', since: later })
  expect(healthOf(degraded, [], later)).toBeNull()
})
