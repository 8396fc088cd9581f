import { expect, test } from 'vitest'
import {
  adviceOf,
  saysBusy,
  saysDuplicate,
  saysForwardTaken,
  saysFull,
  saysInUse,
  saysMemberDown,
  saysNoTrafficControl,
} from '../../../src/engines/incus/error-texts.ts'

/**
 * These texts are the same in the sources of Incus 6.0.4, 6.23.0 (the newest version 6) and 7.3.0. Some are from
 * programs that Incus runs.
 */
const texts = [
  [saysDuplicate, 'The network ACL already exists'],
  [saysDuplicate, 'The profile already exists'],
  [saysDuplicate, 'Network "sw0" is already defined on member "m1"'],
  [saysDuplicate, 'The network is already created'],
  [saysDuplicate, 'The storage pool already defined on member "m1"'],
  [saysMemberDown, 'peer node 198.51.100.2:8443 is down'],
  [saysMemberDown, 'failed to notify peer 198.51.100.2:8443: context deadline exceeded'],
  [saysMemberDown, 'failed to connect to peer 198.51.100.2:8443: connection refused'],
  [saysBusy, 'Instance is busy running a "stop" operation'],
  [saysInUse, 'In use'],
  [saysNoTrafficControl, 'Failed to start device "eth0": Failed to create root tc qdisc: exit status 2'],
  [saysNoTrafficControl, 'Failed to start device "eth0": Failed to create ingress tc filter: exit status 2'],
  [saysNoTrafficControl, 'Failed to start device "eth0": Failed to create limit tc class: exit status 2'],
  [saysNoTrafficControl, 'Failed to start device "eth0": Failed to create tc filter: exit status 2'],
  [saysForwardTaken, 'A forward for that listen address already exists'],
  [
    saysFull,
    'exit status 11 (rsync: [receiver] write failed on "/pool/content": No space left on device (28)',
  ],
  [saysFull, 'write /images/incus_build_2458297480/image: no space left on device'],
] as const
const checks = [saysDuplicate, saysMemberDown, saysBusy, saysInUse, saysNoTrafficControl, saysFull]

test.each(texts)('%o recognizes: %s', (check, text) => {
  expect(check(new Error(text))).toBe(true)
  for (const other of checks)
    if (other !== check && check !== saysForwardTaken) expect(other(new Error(text))).toBe(false)
})

test.each([
  ['CERT_HAS_EXPIRED', 'certificate has expired', /of the server has expired/],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'alert unknown ca', /rejects the client certificate/],
  ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'alert certificate expired', /rejects the client certificate/],
  [
    '',
    'the server’s certificate (AA) is not the one in server_cert_file',
    /certificate of the server is not the one/,
  ],
  ['ECONNREFUSED', 'connect ECONNREFUSED', /nothing is listening at this address/],
  ['UND_ERR_CONNECT_TIMEOUT', 'Connect Timeout Error', /port 8443 is open/],
])('a connection that fails with %s has advice', (code, message, advice) => {
  const cause = Object.assign(new Error(message), { code })
  expect(adviceOf(new Error('Incus does not answer', { cause }))).toMatch(advice)
  expect(adviceOf(cause)).toMatch(advice)
})
