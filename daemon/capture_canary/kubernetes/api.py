"""The Kubernetes API as far as we call it, and how its refusals and silences are told apart."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx2
from lightkube import Client
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.types import CascadeType, PatchType

Job: Final = create_namespaced_resource("batch", "v1", "Job", "jobs")
Pod: Final = create_namespaced_resource("", "v1", "Pod", "pods")
Event: Final = create_namespaced_resource("", "v1", "Event", "events")
Node: Final = create_global_resource("", "v1", "Node", "nodes")
CALL_SECONDS: Final = 10.0
MAX_OBJECTS: Final = 500
"""Of a list: our own Jobs are few."""
_DENIED = (401, 403)
_CONFLICT, _GONE = 409, 404


class ApiError(Exception):
    """A call did not succeed: the API server is away, slow or in trouble."""


class DeniedError(ApiError):
    """We may not: what asked for this is to be off."""


class ExistsError(ApiError):
    """There is an object of that name."""


class Api:
    """Calls, each with a deadline; every failure is an ApiError."""

    def __init__(self) -> None:
        """Find the API server: KUBECONFIG, else the pod's own account, whose token may change at any time.

        Raises:
            ApiError: this is no pod.
        """
        try:
            config = KubeConfig.from_env()
            self._client: Any = Client(config=config, timeout=httpx2.Timeout(CALL_SECONDS))
        except (ConfigError, OSError) as error:
            raise ApiError(f"no way to the Kubernetes API: {error}") from error
        except Exception as error:  # noqa: BLE001  # a broken file; most errors quote it, and it holds a token
            raise ApiError(f"no way to the Kubernetes API: {type(error).__name__}") from None
        self.namespace: str = self._client.namespace

    def found(self, kind: Any, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the objects of our namespace with these labels, the first of them."""
        objects: list[dict[str, Any]] = []
        with _told():
            for one in self._client.list(kind, labels=dict(labels), chunk_size=MAX_OBJECTS):
                objects.append(dict(one))
                if len(objects) >= MAX_OBJECTS:
                    break
        return objects

    def create(self, kind: Any, document: Mapping[str, Any], namespace: str) -> None:
        """Make an object."""
        with _told():
            self._client.create(kind(document), namespace=namespace)

    def delete_job(self, name: str) -> None:
        """Delete a Job with its pods; one that is gone already is no failure."""
        with _told(gone=True):
            self._client.delete(Job, name, namespace=self.namespace, cascade=CascadeType.BACKGROUND)

    def conditions(self, node: str) -> list[dict[str, Any]]:
        """Return the node's conditions."""
        with _told():
            status = self._client.get(Node.Status, node).get("status") or {}
        return [one for one in status.get("conditions") or [] if isinstance(one, dict)]

    def set_condition(self, node: str, condition: Mapping[str, Any]) -> None:
        """Put a condition on the node, beside the others."""
        with _told():
            self._client.patch(
                Node.Status,
                node,
                {"status": {"conditions": [dict(condition)]}},
                patch_type=PatchType.STRATEGIC,
            )


@contextmanager
def _told(*, gone: bool = False) -> Iterator[None]:
    """Turn what the client raises into our errors; `gone`: that something is not there is no failure."""
    try:
        yield
    except httpx2.HTTPStatusError as error:
        code = error.response.status_code
        if not (gone and code == _GONE):
            raise _KINDS.get(code, ApiError)(f"{code}: {str(error)[:300]}") from error
    except httpx2.NetworkError as error:
        raise ApiError(f"{type(error).__name__}: {str(error)[:300]}") from error
    # Whatever the client makes of a broken answer; a token that fits no header, it quotes.
    except Exception as error:  # noqa: BLE001  # the same
        raise ApiError(type(error).__name__) from None


_KINDS = {**dict.fromkeys(_DENIED, DeniedError), _CONFLICT: ExistsError}
