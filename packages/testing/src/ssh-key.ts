/** A valid public key. Its private key is unknown. */
export const sshKey =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvmWxvLnVPXnO3xXQ2n3yUoP1yT8kQ5cXqkqN3u9Ckm ada@laptop'
