export { parseSshPublicKey, SSH_KEY_TYPES, type SshKey } from '@slipway/contract/ssh-key'
