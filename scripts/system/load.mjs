// Simulates tenants that use all servers of a service. Records every unsuccessful response as a failure.
import { randomUUID } from 'node:crypto'
import { until } from './container.mjs'

const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvmWxvLnVPXnO3xXQ2n3yUoP1yT8kQ5cXqkqN3u9Ckm load'

export class Load {
  failures = []
  accepted = []
  count = 0
  #credentials
  #served = new Map()
  #inFlight = new Map()
  #urls = []
  #isOver = false
  #tenants = []

  constructor(credentials) {
    this.#credentials = credentials
  }

  add(url) {
    this.#urls.push(url)
    this.#served.set(url, 0)
    this.#inFlight.set(url, 0)
  }

  /** Sends no more requests to a server, and waits for those in progress, as a load balancer does. */
  async remove(url) {
    this.#urls = this.#urls.filter((each) => each !== url)
    await until('requests in progress have ended', () => this.#inFlight.get(url) === 0)
  }

  start(tenants) {
    this.#tenants = Array.from({ length: tenants }, () => this.#useService())
  }

  async stop() {
    this.#isOver = true
    await Promise.all(this.#tenants)
  }

  /** Waits until each of these servers has served `more` further requests. */
  async waitUntilServed(servers, more) {
    const goals = servers.map(({ url }) => [url, this.#served.get(url) + more])
    await until('requests are served', () => {
      return goals.every(([url, goal]) => this.#served.get(url) >= goal)
    })
  }

  /** Returns how many operations ended in each state; null while some are still running. */
  async endStates() {
    const states = {}
    for (const id of this.accepted) {
      const { state } = await this.#send('GET', `/operations/${id}`)
      if (state === 'IN_PROGRESS') return null
      states[state] = (states[state] ?? 0) + 1
    }
    return states
  }

  async #useService() {
    while (!this.#isOver) {
      const name = `vm-${randomUUID().slice(0, 8)}`
      const body = {
        name,
        type: 'a100.1x',
        location: 'us-east1-a',
        image: 'ubuntu24.04-nvidia:latest',
        ssh_public_key: key,
      }
      const created = await this.#begin('POST', '/vms', body)
      if (!created) continue
      const { id } = created.metadata
      // A deletion would cancel a creation that has not ended.
      await until('the creation has ended', () => this.#hasEnded(created.operation_id))
      await this.#send('GET', `/vms/${id}`)
      await this.#send('GET', '/vms?limit=20')
      await this.#send('PATCH', `/vms/${id}`, { labels: { load: 'on' } })
      await this.#send('GET', '/availabilities')
      await this.#begin('DELETE', `/vms/${id}`)
    }
  }

  async #hasEnded(id) {
    const operation = await this.#send('GET', `/operations/${id}?wait=10`)
    return operation !== undefined && operation.state !== 'IN_PROGRESS'
  }

  async #begin(method, path, body) {
    const response = await this.#send(method, path, body)
    if (response?.operation) this.accepted.push(response.operation.operation_id)
    return response?.operation
  }

  async #send(method, path, body) {
    const url = this.#urls[this.count++ % this.#urls.length]
    this.#inFlight.set(url, this.#inFlight.get(url) + 1)
    try {
      const response = await fetch(`${url}/v0.1/projects/${this.#credentials.project_id}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#credentials.access_key}`,
          ...(body && { 'content-type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      if (response.status !== 200) this.failures.push({ url, method, path, status: response.status, text })
      this.#served.set(url, this.#served.get(url) + 1)
      return response.status === 200 ? JSON.parse(text) : undefined
    } catch (error) {
      this.failures.push({ url, method, path, error: String(error.cause ?? error) })
      return undefined
    } finally {
      this.#inFlight.set(url, this.#inFlight.get(url) - 1)
    }
  }
}
