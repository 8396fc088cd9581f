/**
 * The introduction of the API reference. The docs page renders only paragraphs, `## ` headings and words in
 * backticks.
 */
export const guide = `Slipway provides GPU virtual machines on demand. Every path starts with \`/v0.1\`; bodies are JSON in both directions.

## Authentication

Send \`Authorization: Bearer <token>\`, where the token is an access key (\`slp_…\`) or an access token from \`POST /v0.1/auth/token\`. Access tokens are valid for one hour. A refresh token can be used once; the response contains the next refresh token. An access key with the role \`read\` has the rights of a \`viewer\`; a key with \`write\` has the rights of a \`member\`.

## Operations

A request that creates, changes or deletes a VM, disk or firewall rule returns an operation immediately; the work continues in the background. GPUs, quota, name and addresses are already reserved when you get the response. Read the operation with \`?wait=60\`: the response is sent when the operation ends, or after 60 seconds. \`metadata.id\` is the id of the resource, and is already in the first response.

## Retrying safely

Send a unique \`Idempotency-Key\` header with every request that changes something. If you did not receive the response, send the same request with the same key. Within 24 hours, you get the first response again, with the header \`Idempotency-Replayed: true\`. Requests that failed with 429, 500 or 503 are safe to retry in this way; \`Retry-After\` says how many seconds to wait.

## Lists

A list is \`{items, next_page_token}\`, newest first. Pass the token as \`page_token\` to get the next page; an empty token means that there are no more pages. Use a token only for the list that returned it. Lists of organizations and projects are plain arrays. The lists of the catalogue have no pages.

## Fields

Ids are UUIDs. Timestamps are ISO 8601 in UTC with milliseconds, or the empty string if not set. A request with an unknown field or a value of the wrong type is rejected. Responses return your values exactly as you sent them.

## Errors

Every error response has the same fields: \`code\` for programs, \`message\` for people, \`request_id\` for support requests, and \`details\` with errors in individual fields. A 503 with \`details: {outcome: "unknown"}\` means that the connection to the database was lost during the commit and the request may have taken effect: send the request again with the same \`Idempotency-Key\`. A 409 with \`details: {operation_id}\` means that another operation is in progress: wait until that operation has ended, then send the request again. Every response has the header \`X-Request-Id\`; if you send this header, the response contains your value. Checks run in the order 401, 404, 403, 402, 400, 409. For resources of other tenants, the response is 404, as if the resources did not exist.

## Limits

A request body can be at most 1 MiB, and the headers at most 16 KiB. The number of requests is limited per caller. Every response has the headers \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\`.

## Webhooks

A webhook receives the events of a project by POST: \`{type, timestamp, data}\`, where \`data\` is the event as the API shows it. Each request has the headers of the Standard Webhooks specification: \`webhook-id\` (the id of the event, the same for every attempt), \`webhook-timestamp\` (in seconds) and \`webhook-signature\`. The signature is \`v1,\` followed by the base64-encoded HMAC-SHA256 of the id, the timestamp and the body, joined by dots. The HMAC key is the base64-decoded part of the secret after \`whsec_\`. For one day after a rotation, there are two signatures, separated by a space.

A delivery succeeds if the response is 2xx and arrives within 10 seconds. Otherwise, it is retried after 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h and 8 h, and a last time one day after the first attempt. Every event is delivered at least once, and the events of one resource are delivered in order. A webhook is paused if all its deliveries fail for three days.`
