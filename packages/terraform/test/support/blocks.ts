/** Returns the block of a VM. The values of `changes` are Terraform expressions. */
export const vm = (changes: Record<string, string> = {}) => {
  const values: Record<string, string> = {
    name: '"train-7"',
    type: '"a100.1x"',
    location: '"us-east1-a"',
    image: '"ubuntu24.04-nvidia"',
    ssh_public_key: 'file("id_ed25519.pub")',
    ...changes,
  }
  const lines = Object.entries(values).map(([name, value]) => `  ${name} = ${value}\n`)
  return `resource "slipway_vm" "it" {\n${lines.join('')}}\n`
}
