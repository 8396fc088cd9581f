/**
 * Incus has few error codes, so some decisions depend on the English messages. All such checks are here, and
 * test/engines/incus/error-texts.test.ts has the messages of each supported version.
 */
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** An object with this name exists, or another process is creating it. */
export const saysDuplicate = (error: unknown): boolean =>
  /already (exists|defined|created)|is already defined on member/i.test(textOf(error))

/** Incus sends changes to networks and ACLs to every member, and reverts them if it cannot reach one. */
export const saysMemberDown = (error: unknown): boolean =>
  /peer node \S+ is down|failed to (connect to|notify) peer/i.test(textOf(error))

/** Incus does not allow changes to an instance while it starts or stops. */
export const saysBusy = (error: unknown): boolean => /is busy running/.test(textOf(error))

/** The member's kernel lacks a module that Incus needs to limit a network interface. */
export const saysNoTrafficControl = (error: unknown): boolean =>
  /Failed to create (root|ingress|limit)? ?tc (qdisc|class|filter)/.test(textOf(error))

/** The pool's driver cannot grow a volume that is in use. */
export const saysInUse = (error: unknown): boolean => /^in use$/i.test(textOf(error))

/** The storage pool is full, or the project in Incus has reached its limit. */
export const saysFull = (error: unknown): boolean => /no space left|quota exceeded/i.test(textOf(error))

/** The listen address of a forward is in use, perhaps by the same forward. */
export const saysForwardTaken = (error: unknown): boolean => /already|overlaps|in use/i.test(textOf(error))

/**
 * What an operator can do about a failed connection, by the error code of Node or OpenSSL; '' for other
 * errors.
 */
export function adviceOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const { code = '', message = '' } = cause as NodeJS.ErrnoException
  if (/ALERT_(CERTIFICATE_EXPIRED|BAD_CERTIFICATE|UNKNOWN_CA|CERTIFICATE_UNKNOWN)/.test(code))
    return 'Incus rejects the client certificate: renew client_cert_file, and register it with incus config trust add-certificate'
  if (code === 'CERT_HAS_EXPIRED')
    return 'the certificate of the server has expired: renew it, and copy it to server_cert_file'
  if (/server_cert_file/.test(message) || /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/.test(code))
    return 'the certificate of the server is not the one in server_cert_file: copy cluster.crt (or server.crt) from a member to that file'
  if (code === 'ECONNREFUSED')
    return 'nothing is listening at this address: run systemctl status incus on the member'
  if (/TIMEOUT|EHOSTUNREACH|ENETUNREACH/.test(code) || /timeout|does not (answer|respond)/i.test(message))
    return 'the machine does not respond: check that it is running, and that port 8443 is open from here'
  if (code === 'ENOTFOUND') return 'the host name cannot be resolved: check urls in slipway.toml'
  return ''
}
