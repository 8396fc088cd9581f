import { fromJSON, type PackageDefinition } from '@grpc/proto-loader'

type Field = [id: number, type: string, name: string, rule?: 'repeated' | 'map']

const diagnostics = (id: number): Field => [id, 'Diagnostic', 'diagnostics', 'repeated']
const typeName: Field = [1, 'string', 'type_name']

/**
 * The messages of Terraform's plugin protocol 6 that this provider uses, with the number, type and name of
 * each field. The other fields and calls of the protocol are optional.
 */
const messages: Record<string, Field[]> = {
  Empty: [],
  DynamicValue: [
    [1, 'bytes', 'msgpack'],
    [2, 'bytes', 'json'],
  ],
  Diagnostic: [
    [1, 'int32', 'severity'],
    [2, 'string', 'summary'],
    [3, 'string', 'detail'],
    [4, 'AttributePath', 'attribute'],
  ],
  AttributePath: [[1, 'PathStep', 'steps', 'repeated']],
  PathStep: [[1, 'string', 'attribute_name']],
  RawState: [[1, 'bytes', 'json']],
  Schema: [
    [1, 'int64', 'version'],
    [2, 'SchemaBlock', 'block'],
  ],
  SchemaBlock: [
    [2, 'SchemaAttribute', 'attributes', 'repeated'],
    [4, 'string', 'description'],
    [5, 'int32', 'description_kind'],
  ],
  SchemaAttribute: [
    [1, 'string', 'name'],
    [2, 'bytes', 'type'],
    [3, 'string', 'description'],
    [4, 'bool', 'required'],
    [5, 'bool', 'optional'],
    [6, 'bool', 'computed'],
    [7, 'bool', 'sensitive'],
    [8, 'int32', 'description_kind'],
    [10, 'SchemaObject', 'nested_type'],
  ],
  SchemaObject: [
    [1, 'SchemaAttribute', 'attributes', 'repeated'],
    [3, 'int32', 'nesting'],
  ],
  ServerCapabilities: [
    [1, 'bool', 'plan_destroy'],
    [2, 'bool', 'get_provider_schema_optional'],
  ],
  GetProviderSchemaResponse: [
    [1, 'Schema', 'provider'],
    [2, 'Schema', 'resource_schemas', 'map'],
    [3, 'Schema', 'data_source_schemas', 'map'],
    diagnostics(4),
    [6, 'ServerCapabilities', 'server_capabilities'],
  ],
  ConfigRequest: [[1, 'DynamicValue', 'config']],
  DiagnosticsSecond: [diagnostics(2)],
  DiagnosticsFirst: [diagnostics(1)],
  ValidateRequest: [typeName, [2, 'DynamicValue', 'config']],
  UpgradeResourceStateRequest: [typeName, [2, 'int64', 'version'], [3, 'RawState', 'raw_state']],
  UpgradeResourceStateResponse: [[1, 'DynamicValue', 'upgraded_state'], diagnostics(2)],
  ConfigureProviderRequest: [
    [1, 'string', 'terraform_version'],
    [2, 'DynamicValue', 'config'],
  ],
  ReadResourceRequest: [typeName, [2, 'DynamicValue', 'current_state'], [3, 'bytes', 'private']],
  ReadResourceResponse: [[1, 'DynamicValue', 'new_state'], diagnostics(2), [3, 'bytes', 'private']],
  PlanResourceChangeRequest: [
    typeName,
    [2, 'DynamicValue', 'prior_state'],
    [3, 'DynamicValue', 'proposed_new_state'],
    [4, 'DynamicValue', 'config'],
    [5, 'bytes', 'prior_private'],
  ],
  PlanResourceChangeResponse: [
    [1, 'DynamicValue', 'planned_state'],
    [2, 'AttributePath', 'requires_replace', 'repeated'],
    [3, 'bytes', 'planned_private'],
    diagnostics(4),
  ],
  ApplyResourceChangeRequest: [
    typeName,
    [2, 'DynamicValue', 'prior_state'],
    [3, 'DynamicValue', 'planned_state'],
    [4, 'DynamicValue', 'config'],
    [5, 'bytes', 'planned_private'],
  ],
  ApplyResourceChangeResponse: [[1, 'DynamicValue', 'new_state'], [2, 'bytes', 'private'], diagnostics(3)],
  ImportResourceStateRequest: [typeName, [2, 'string', 'id']],
  ImportedResource: [typeName, [2, 'DynamicValue', 'state'], [3, 'bytes', 'private']],
  ImportResourceStateResponse: [[1, 'ImportedResource', 'imported_resources', 'repeated'], diagnostics(2)],
  ReadDataSourceResponse: [[1, 'DynamicValue', 'state'], diagnostics(2)],
  StopProviderResponse: [[1, 'string', 'Error']],
}

/** The request and response messages of each Terraform call. */
const calls = {
  GetProviderSchema: ['Empty', 'GetProviderSchemaResponse'],
  ValidateProviderConfig: ['ConfigRequest', 'DiagnosticsSecond'],
  ValidateResourceConfig: ['ValidateRequest', 'DiagnosticsFirst'],
  ValidateDataResourceConfig: ['ValidateRequest', 'DiagnosticsFirst'],
  UpgradeResourceState: ['UpgradeResourceStateRequest', 'UpgradeResourceStateResponse'],
  ConfigureProvider: ['ConfigureProviderRequest', 'DiagnosticsFirst'],
  ReadResource: ['ReadResourceRequest', 'ReadResourceResponse'],
  PlanResourceChange: ['PlanResourceChangeRequest', 'PlanResourceChangeResponse'],
  ApplyResourceChange: ['ApplyResourceChangeRequest', 'ApplyResourceChangeResponse'],
  ImportResourceState: ['ImportResourceStateRequest', 'ImportResourceStateResponse'],
  ReadDataSource: ['ValidateRequest', 'ReadDataSourceResponse'],
  StopProvider: ['Empty', 'StopProviderResponse'],
} as const
export type CallName = keyof typeof calls

const descriptor = {
  nested: {
    tfplugin6: {
      nested: {
        ...Object.fromEntries(Object.entries(messages).map(([name, fields]) => [name, message(fields)])),
        Provider: {
          methods: mapValues(calls, ([requestType, responseType]) => ({ requestType, responseType })),
        },
      },
    },
    // Terraform stops a provider through this service of its plugin library.
    plugin: {
      nested: {
        Nothing: { fields: {} },
        GRPCController: { methods: { Shutdown: { requestType: 'Nothing', responseType: 'Nothing' } } },
      },
    },
  },
}

function message(fields: Field[]) {
  const entries = fields.map(([id, type, name, rule]) => [
    name,
    { id, type, ...(rule === 'map' && { keyType: 'string' }), ...(rule === 'repeated' && { rule }) },
  ])
  return { fields: Object.fromEntries(entries) }
}

function mapValues<T extends object, R>(from: T, map: (value: T[keyof T]) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, map(value)]))
}

const definition: PackageDefinition = fromJSON(descriptor as never, {
  keepCase: true,
  longs: Number,
  defaults: true,
})
export const providerService = definition['tfplugin6.Provider'] as never
export const controllerService = definition['plugin.GRPCController'] as never
