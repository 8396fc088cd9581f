import type { SearchResult } from '@slipway/contract'
import type { FoundRow } from '../store/finding/search.ts'

export const searchResultView = (row: FoundRow): SearchResult => ({
  resource_type: row.resource_type,
  resource_id: row.resource_id,
  name: row.name,
  state: row.state,
  location: row.location,
  address: row.address,
  project_id: row.project_id ?? '',
  project_name: row.project_name ?? '',
  organization_id: row.organization_id ?? '',
  organization_name: row.organization_name ?? '',
})
