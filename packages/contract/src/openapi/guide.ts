/** The opening of the reference. Plain paragraphs, `## ` headings and back-ticked words: the docs page knows no more. */
export const guide = `Slipway provides GPU virtual machines on demand. Every path starts with \`/v0.1\`; bodies are JSON in both directions.

## Authentication

Send \`Authorization: Bearer <token>\`, where the token is a project access key (\`slp_…\`) or an access token of \`POST /v0.1/auth/token\`. Access tokens live an hour. A refresh token works once, and its answer has the next one. A key with the role \`read\` has the rights of a \`viewer\`, one with \`write\` those of a \`member\`.

## Operations

Creating, changing and deleting a VM, disk or firewall rule answers with an operation at once, and the work goes on behind it. What the answer promises is held from then on: GPUs, quota, name and addresses. Read the operation with \`?wait=60\` to be told the moment it ends; \`metadata.id\` names the resource from the first answer on.

## Retrying safely

Send an \`Idempotency-Key\` of your own with every change. If the answer was lost, send the same request with the same key: within 24 hours you get the first answer again, marked \`Idempotency-Replayed: true\`. Answers of 429, 500 and 503 are safe to retry this way; \`Retry-After\` says how long to wait.

## Lists

A list is \`{items, next_page_token}\`, newest first. Pass the token as \`page_token\` until it is empty. Tokens are opaque and belong to one list. Organizations and projects are plain arrays; the catalogue’s lists are whole.

## Fields

Ids are UUIDs. Timestamps are ISO 8601 in UTC with milliseconds, and the empty string while unset. Unknown members of a request are refused and nothing is coerced. What you sent comes back as you sent it.

## Errors

Every error has the same shape: \`code\` to branch on, \`message\` to read, \`request_id\` to quote, and \`details\` for single fields. Every answer names its request in \`X-Request-Id\`, with your own value if you sent one. Checks come in the order 401, 404, 403, 402, 400, 409. What is not yours answers 404, as if it did not exist.

## Limits

Bodies are at most 1 MiB, headers 16 KiB. Requests are limited per caller; \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\` are on every answer.

## Webhooks

A webhook receives the events of a project by POST: \`{type, timestamp, data}\`, where \`data\` is the event as the API shows it. Each carries \`webhook-id\` (the event’s id, the same at every attempt), \`webhook-timestamp\` (in seconds) and \`webhook-signature\`, as Standard Webhooks has them: \`v1,\` and the base64 of HMAC-SHA256 over id, timestamp and body, joined by dots, with the bytes behind \`whsec_\` as the key. After a rotation there are two signatures for a day, with a space between them.

Any 2xx within 10 seconds counts as delivered. Every other response is retried after 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h and 8 h, and for the last time one day after the first attempt. Deliveries come at least once, and in order for each resource. A webhook whose deliveries have all failed for three days is paused.`
