import { resources } from '../../src/resources/index.ts'

const base = `
variable "organization_id" {}
variable "suffix" { default = "" }
variable "size" { default = "10GiB" }
variable "ports" {
  type    = list(string)
  default = ["8888"]
}
variable "count_of_members" {
  type    = number
  default = 2
}
variable "attached" {
  type    = bool
  default = true
}
variable "monthly_usd" {
  type    = number
  default = 500.25
}
variable "static" {
  type    = bool
  default = true
}
variable "paused" {
  type    = bool
  default = false
}

resource "slipway_project" "it" {
  name            = "research\${var.suffix}"
  organization_id = var.organization_id
  labels          = { stage = "test" }
}
resource "slipway_budget" "it" {
  project_id  = slipway_project.it.id
  monthly_usd = var.monthly_usd
  hard_stop   = true
}
resource "slipway_access_key" "it" {
  name          = "ci"
  role          = "read"
  allowed_cidrs = ["203.0.113.0/24"]
  expires_at    = "2040-01-01T00:00:00Z"
}
resource "slipway_webhook" "it" {
  url         = "https://hooks.example.com/slipway"
  event_types = ["vm.running", "operation.*"]
  state       = var.paused ? "paused" : "active"
}
resource "slipway_ssh_key" "it" {
  name       = "ada"
  public_key = file("id_ed25519.pub")
}
resource "slipway_network" "it" {
  name = "training\${var.suffix}"
  cidr = "10.40.0.0/16"
}
resource "slipway_subnet" "it" {
  name           = "training-east"
  cidr           = "10.40.1.0/24"
  vpc_network_id = slipway_network.it.id
  location       = "us-east1-a"
}
resource "slipway_firewall_rule" "it" {
  name              = "jupyter\${var.suffix}"
  vpc_network_id    = slipway_network.it.id
  action            = "allow"
  direction         = "ingress"
  protocols         = ["tcp", "udp"]
  sources           = [{ cidr = "203.0.113.7" }, { cidr = "198.51.100.0/24" }]
  destinations      = [{ resource_id = slipway_network.it.id }]
  destination_ports = var.ports
}
resource "slipway_disk" "it" {
  name     = "data\${var.suffix}"
  size     = var.size
  location = "us-east1-a"
}
resource "slipway_vm" "it" {
  name            = "v\${var.suffix}"
  type            = "a100.1x"
  location        = "us-east1-a"
  image           = "ubuntu24.04-nvidia"
  ssh_key_ids     = [slipway_ssh_key.it.id]
  subnet_id       = slipway_subnet.it.id
  startup_script  = "#!/bin/sh\\necho hello\\n"
  shutdown_script = "#!/bin/sh\\necho bye\\n"
  disks           = var.attached ? [{ disk_id = slipway_disk.it.id }] : []
  new_disks       = [{ size = "10GiB" }]
  ttl_seconds     = 3600
  public_address_id = var.static ? slipway_address.it.id : null
  on_expiry       = "stop"
}
resource "slipway_instance_template" "it" {
  name           = "trainer"
  type           = "a100.1x"
  location       = "us-east1-a"
  image          = "ubuntu24.04-nvidia:latest"
  ssh_public_key = file("id_ed25519.pub")
  new_disks      = [{ size = "10GiB" }]
}
resource "slipway_instance_group" "it" {
  name          = "trainer"
  desired_count = var.count_of_members
  template_id   = slipway_instance_template.it.id
  vm            = { labels = { role = "worker" }, public_ip = "none" }
  labels        = { team = "ml\${var.suffix}" }
  delete_disks  = true
}
`

/** Blocks that are added if the contract has the routes of their resources. */
const optionalBlocks: Record<string, string> = {
  snapshot: `
resource "slipway_snapshot" "it" {
  name    = "monday\${var.suffix}"
  disk_id = slipway_disk.it.id
}`,
  custom_image: `
resource "slipway_custom_image" "it" {
  name        = "golden:v1"
  description = "golden\${var.suffix}"
  disk_id     = slipway_disk.it.id
  # The disk may be attached to the running VM when it is copied.
  allow_crash_consistent = true
}`,
  address: `
resource "slipway_address" "it" {
  name     = "gateway\${var.suffix}"
  location = "us-east1-a"
}`,
}

/** One configuration with every resource. Tests change it by setting its variables. */
export const everything = base + resources.map(({ row }) => optionalBlocks[row.name] ?? '').join('\n')

/** Values of the variables that change every resource that can be changed in place. */
export const changedVariables = [
  '-var=suffix=2',
  '-var=size=1TiB',
  '-var=ports=["8888","9000-9010"]',
  '-var=count_of_members=3',
  '-var=attached=false',
  '-var=static=false',
  '-var=monthly_usd=0.1',
  '-var=paused=true',
]
