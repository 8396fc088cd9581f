/** A typed client of the Slipway API for Node and browsers. Start at {@link createClient}. */
export type {
  AccessKey,
  Address,
  Alert,
  ApiErrorBody,
  Budget,
  CapacityEstimate,
  CapacityRequest,
  CapacityRequestCreate,
  CatalogueItem,
  Costs,
  CustomImage,
  CustomImageCreate,
  Disk,
  DiskCreate,
  ErrorCode,
  Event,
  FailureCode,
  FirewallEndpoint,
  FirewallRule,
  FirewallRuleCreate,
  FirewallRuleUpdate,
  Gpu,
  GpuFault,
  GpuFaultDay,
  HealthReason,
  Host,
  HostVm,
  Image,
  InstanceGroup,
  InstanceTemplate,
  Invoice,
  Location,
  Member,
  MetricSeries,
  Network,
  Offer,
  Operation,
  OperationStep,
  Organization,
  OrganizationQuota,
  Price,
  Project,
  Quota,
  QuotaRequest,
  Reservation,
  ReservationCreate,
  RouteBody,
  RouteId,
  RouteParams,
  RouteQuery,
  RouteResponse,
  SearchResult,
  Snapshot,
  SnapshotCreate,
  SshKey,
  Subnet,
  Suggestion,
  UsageItem,
  Vm,
  VmCreate,
  VmHealth,
  VmUpdate,
  Webhook,
  WebhookDelivery,
  WebhookDeliveryDetail,
} from '@slipway/contract'
export * from '@slipway/contract/states'
export * from '@slipway/contract/vm-types'
export { type CallInput, isPaged } from './call.ts'
export { type Client, createClient } from './client.ts'
export type { ClientCore } from './client-core.ts'
export { ApiError, type ApiErrorCode, isApiError } from './errors.ts'
export type { EventStreamOptions } from './events.ts'
export type { Method, MethodResult, StartedOperation, Target } from './methods.ts'
export type { ListId, ListItem } from './pages.ts'
export type { ProjectClient } from './project-client.ts'
export { logIn, resumeSession, type Session, type SessionOptions, type SessionTokens } from './session.ts'
export type { CallOptions, ClientOptions, TokenSource } from './transport.ts'
export type { Finished, Progress, WaitOptions } from './wait.ts'
export {
  signWebhook,
  type VerifyOptions,
  verifyWebhook,
  WebhookError,
  type WebhookMessage,
} from './webhooks.ts'
