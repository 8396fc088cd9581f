"""Hand-written parts of the client: Idempotency-Keys and waiting for operations. The rest is generated."""

import time
import uuid
from typing import Any

import httpx

from .api.operations import operation_get
from .client import AuthenticatedClient
from .models.error import Error
from .models.operation import Operation
from .models.operation_started import OperationStarted

_LONG_POLL_SECONDS = 20


class SlipwayError(Exception):
    """A request that the service refused, or an operation that failed. Use `code` in programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} [{code}]")
        self.code = code
        self.message = message


def connect(api_url: str, access_key: str, **httpx_args: Any) -> AuthenticatedClient:
    """Returns a client that adds an Idempotency-Key to each write. The service performs a write only once per key.

    Pass `idempotency_key` to a call to choose the key yourself, for example to repeat a call after a crash.
    """
    return AuthenticatedClient(
        base_url=api_url.rstrip("/"),
        token=access_key,
        timeout=httpx.Timeout(30 + _LONG_POLL_SECONDS),
        httpx_args={**httpx_args, "event_hooks": {"request": [_add_idempotency_key]}},
    )


def wait(
    client: AuthenticatedClient,
    project_id: uuid.UUID | str,
    started: OperationStarted | Operation | Error | None,
    timeout_seconds: float = 1200,
) -> Operation:
    """Waits until an operation ends, and returns it. Raises a `SlipwayError` if the request or the operation failed.

    After `timeout_seconds` it raises a `TimeoutError`; the operation itself continues.
    """
    operation = _operation_of(checked(started))
    give_up_at = time.monotonic() + timeout_seconds
    while operation.state == "IN_PROGRESS":
        left = give_up_at - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"The operation {operation.operation_id} did not end within {timeout_seconds} s.")
        seconds = max(1, min(_LONG_POLL_SECONDS, int(left)))
        answer = operation_get.sync(
            uuid.UUID(str(project_id)), uuid.UUID(str(operation.operation_id)), client=client, wait=seconds
        )
        operation = _operation_of(checked(answer))
    if operation.state == "FAILED":
        result = operation.to_dict()["result"] or {}
        raise SlipwayError(result.get("code", "internal_error"), result.get("message", "The operation failed."))
    return operation


def checked(answer: Any) -> Any:
    """Returns the response of a call, or raises a `SlipwayError` if the service refused the request."""
    if isinstance(answer, Error):
        raise SlipwayError(str(answer.code), answer.message)
    if answer is None:
        raise SlipwayError("unexpected_answer", "The response is not from this API.")
    return answer


def _operation_of(answer: OperationStarted | Operation) -> Operation:
    return answer.operation if isinstance(answer, OperationStarted) else answer


def _add_idempotency_key(request: httpx.Request) -> None:
    if request.method != "GET":
        request.headers.setdefault("Idempotency-Key", uuid.uuid4().hex)
