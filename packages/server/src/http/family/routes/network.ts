import type { FirewallRule } from '@slipway/contract'
import { Failure, requireFound } from '../../../domain/failure.ts'
import { findRuleView } from '../../../store/network/rules.ts'
import { noNat, refuseUnsupported, withoutEmpty } from '../members.ts'
import { ruleFields, ruleShape, subnetShape } from '../shapes/network.ts'
import { begin, type FamilyRoute, get, patch, post, remove, unlimitedGet } from './route.ts'

const networking = '/projects/:project_id/networking'
const rules = `${networking}/vpc-firewall-rules`
const networks = `${networking}/vpc-networks`
const subnets = `${networking}/vpc-subnets`

const ruleRoutes: FamilyRoute[] = [
  post(rules, (call) =>
    call.operation({ name: 'CREATE', type: 'firewall_rule' }, () =>
      begin(call.ownApi('firewallRuleCreate', { body: ruleFields(call.body) })),
    ),
  ),
  get(rules, async (call) => ({ items: (await call.all('firewallRuleList')).map(ruleShape) })),
  unlimitedGet(`${rules}/:rule_id`, 'firewallRuleGet', async ({ services, params, projectId }) => {
    const found = await findRuleView(services.database, projectId, params.rule_id ?? '')
    const { text } = requireFound('firewall rule', found)
    return ruleShape(JSON.parse(text) as FirewallRule)
  }),
  patch(`${rules}/:rule_id`, (call) =>
    call.operation({ name: 'UPDATE', type: 'firewall_rule', id: call.params.rule_id! }, () => {
      const {
        action: _action,
        direction: _direction,
        vpc_network_id: _network,
        ...body
      } = ruleFields(call.body)
      return begin(call.ownApi('firewallRuleUpdate', { body }))
    }),
  ),
  remove(`${rules}/:rule_id`, (call) =>
    call.operation({ name: 'DELETE', type: 'firewall_rule', id: call.params.rule_id! }, () =>
      begin(call.ownApi('firewallRuleDelete')),
    ),
  ),
]

/** Changes of networks and subnets take effect immediately. */
const networkRoutes: FamilyRoute[] = [
  post(networks, async (call) => {
    const { name, cidr } = call.body
    return { network: await call.ownApi('networkCreate', { body: withoutEmpty({ name, cidr }) }) }
  }),
  get(networks, async (call) => ({ items: await call.all('networkList') })),
  get(`${networks}/:network_id`, (call) => call.ownApi('networkGet')),
  patch(`${networks}/:network_id`, (call) =>
    call.change({ name: 'UPDATE', type: 'network', id: call.params.network_id! }, () =>
      call.ownApi('networkUpdate', { body: withoutEmpty({ name: call.body.name }) }),
    ),
  ),
  remove(`${networks}/:network_id`, (call) =>
    call.change({ name: 'DELETE', type: 'network', id: call.params.network_id! }, async () => {
      await call.ownApi('networkDelete')
      return null
    }),
  ),
]

const subnetRoutes: FamilyRoute[] = [
  post(subnets, async (call) => {
    refuseUnsupported(call.body, { nat_gateway_enabled: noNat })
    const { name, cidr, vpc_network_id, location } = call.body
    const body = withoutEmpty({ name, cidr, vpc_network_id, location })
    return { subnet: subnetShape(await call.ownApi('subnetCreate', { body })) }
  }),
  get(subnets, async (call) => ({ items: (await call.all('subnetList')).map(subnetShape) })),
  get(`${subnets}/:subnet_id`, async (call) => subnetShape(await call.ownApi('subnetGet'))),
  patch(`${subnets}/:subnet_id`, (call) => {
    const { name, nat_gateway_action: nat } = call.body
    if (nat && nat !== 'disable')
      throw new Failure('invalid_argument', `nat_gateway_action must be disable: ${noNat}`)
    return call.change({ name: 'UPDATE', type: 'subnet', id: call.params.subnet_id! }, async () =>
      subnetShape(await call.ownApi('subnetUpdate', { body: withoutEmpty({ name }) })),
    )
  }),
  remove(`${subnets}/:subnet_id`, (call) =>
    call.change({ name: 'DELETE', type: 'subnet', id: call.params.subnet_id! }, async () => {
      await call.ownApi('subnetDelete')
      return null
    }),
  ),
]

export const networkingRoutes = [...ruleRoutes, ...networkRoutes, ...subnetRoutes]
