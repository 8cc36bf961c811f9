"""A release's images by a real engine and a real registry: built on digests, pushed, joined, signed, scanned."""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from steps import scanning
from steps.images import ARCHITECTURES
from steps.running import StepError
from steps.scanning import Packages, Sbom, check_sees_ours, read
from tests.real.conftest import need
from tests.real.test_injector import busybox, released

from capture_canary import __version__
from capture_canary.images.build_child import build
from capture_canary.images.job import Job

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
LIST = "application/vnd.docker.distribution.manifest.list.v2+json"


def from_debian13(package):
    """The folder of a package that Debian 12 does not have."""
    need("dpkg")
    tool = ROOT / "tests" / "tools" / "get-debian13"
    done = subprocess.run([tool, package], capture_output=True, text=True, check=True, timeout=300)
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """A registry of one's own: what its names begin with."""
    command, folder = need("docker-registry"), tmp_path_factory.mktemp("registry")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    (folder / "config.yml").write_text(json.dumps(settings))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [command, "serve", folder / "config.yml"], stdout=log, stderr=log
        )
    try:
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()[-2000:]
                assert time.monotonic() < end
                time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def manifest(registry, name, reference):
    """What the registry has under a name."""
    request = urllib.request.Request(
        f"http://{registry}/v2/{name}/manifests/{reference}", headers={"Accept": LIST}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # our own registry
        return json.load(answer), answer.headers["Docker-Content-Digest"]


@pytest.fixture(scope="module")
def release(docker, tmp_path_factory):
    """Runs a step as the workflow does, with this engine and a home of its own."""
    home = tmp_path_factory.mktemp("home")
    environ = {
        **os.environ,
        "DOCKER_HOST": f"unix://{docker[1]}",
        "HOME": str(home),
        "COSIGN_PASSWORD": "",
    }
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"

    def run(*words, check=True, path=None):
        done = subprocess.run(
            [sys.executable, ROOT / "scripts" / "release", *words],
            env={**environ, "PATH": f"{path}:{environ['PATH']}"} if path else environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        if not check:
            return done
        assert done.returncode == 0, done.stderr[-3000:]
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    return run


@pytest.fixture(scope="module")
def base(docker, registry, tmp_path_factory):
    """A busybox for both architectures in the registry; of arm64's, nothing is run."""
    run, socket = docker
    folder, name = tmp_path_factory.mktemp("busybox"), f"{registry}/busybox:1"
    busybox(folder)
    (folder / "Dockerfile").write_text("FROM scratch\nADD busybox.tar /\n")
    debians = Path("/usr/bin/docker")  # builds with BuildKit without a plugin
    client = debians if debians.exists() else need("docker")
    environ = {**os.environ, "DOCKER_BUILDKIT": "1", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
    for arch in ARCHITECTURES:
        words = ("build", "-q", f"--platform=linux/{arch}", "-t", f"{name}-{arch}", folder)
        subprocess.run([client, "-H", f"unix://{socket}", *words], check=True, env=environ)
        run("push", f"{name}-{arch}")
    run("manifest", "create", "--insecure", name, *(f"{name}-{arch}" for arch in ARCHITECTURES))
    run("manifest", "push", "--purge", "--insecure", name)
    run("rmi", "-f", *(f"{name}-{arch}" for arch in ARCHITECTURES))
    return name


@pytest.fixture(scope="module")
def built(release, registry, base):
    """The name of the injector, built for both architectures."""
    words = ("--out", released(), "--version", __version__, "--to", f"{registry}/canary")
    return release("injector", *words, "--base", base)["image"]


@pytest.fixture(scope="module")
def pushed(release, built, tmp_path_factory):
    """What was written down of the push, and what the join printed."""
    folder = tmp_path_factory.mktemp("pushed")
    for arch in ARCHITECTURES:
        words = ("--image", built, "--local", f"{built}-{arch}", "--arch", arch)
        release("push", *words, "--pushed", folder)
    return folder, release("index", "--image", built, "--pushed", folder)


def test_one_name_serves_both_architectures(docker, registry, built, pushed):
    folder, said = pushed
    index, digest = manifest(registry, "canary/injector", __version__)
    there = {one["platform"]["architecture"]: one["digest"] for one in index["manifests"]}
    assert (there, digest) == ({arch: said[arch] for arch in ARCHITECTURES}, said["digest"])
    assert said["name"] == built.rpartition(":")[0]
    run, _ = docker
    run("rmi", "-f", *(f"{built}-{arch}" for arch in ARCHITECTURES))
    run("pull", "-q", f"{said['name']}@{said['digest']}")
    whole = f"{said['name']}@{said['digest']}"
    assert "inject: /var/" in run(
        "run", "--rm", "--network=none", "--tmpfs=/var:mode=1777", whole, "/var/a"
    )
    for arch in ARCHITECTURES:
        sbom = json.loads((folder / f"sbom-{arch}.json").read_text())
        assert sbom["bomFormat"] == "CycloneDX"
        assert {"capture-canary", "msgspec"} <= {
            one["name"].replace("_", "-") for one in sbom["components"]
        }


def test_each_is_built_on_a_digest_and_says_which(docker, registry, base, pushed):
    run, _ = docker
    index, _ = manifest(registry, "busybox", "1")
    for one in index["manifests"]:
        arch = one["platform"]["architecture"]
        name = f"{pushed[1]['name']}@{pushed[1][arch]}"
        run("pull", "-q", f"--platform=linux/{arch}", name)
        labels = json.loads(run("image", "inspect", "-f", "{{json .Config.Labels}}", name))
        assert labels["org.opencontainers.image.base.digest"] == one["digest"]
        assert labels["org.opencontainers.image.base.name"] == base


def test_a_join_takes_only_what_was_pushed_of_that_image(release, built, pushed, tmp_path):
    half = tmp_path / "half"
    half.mkdir()
    shutil.copy2(pushed[0] / "amd64.json", half)
    done = release("index", "--image", built, "--pushed", half, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        f"{built}: was not pushed for arm64",
    )
    done = release("index", "--image", f"{built}2", "--pushed", pushed[0], check=False)
    assert done.returncode == 1
    assert f"is of {built}, and not of {built}2" in done.stderr


def test_an_image_of_another_architecture_is_not_pushed(docker, release, built, pushed, tmp_path):
    run, _ = docker
    there = f"{pushed[1]['name']}@{pushed[1]['arm64']}"
    run("pull", "-q", "--platform=linux/arm64", there)
    words = ("--image", built, "--local", there, "--arch", "amd64", "--pushed", tmp_path)
    done = release("push", *words, check=False)
    assert (done.returncode, "is for arm64, and not amd64" in done.stderr) == (1, True)


def test_a_base_that_is_not_for_both_is_refused(release, registry, base):
    words = (
        "--out",
        released(),
        "--version",
        "9",
        "--to",
        f"{registry}/canary",
        "--base",
        f"{base}-amd64",
    )
    done = release("injector", *words, check=False)
    assert (done.returncode, "has none for amd64" in done.stderr) == (1, True)


def test_what_is_signed_verifies_and_is_all_of_it(release, pushed, tmp_path):
    """By a key in place of the workflow's identity, which there is only there."""
    tools = from_debian13("cosign") / "usr" / "bin"
    environ = {**os.environ, "COSIGN_PASSWORD": ""}

    def cosign(*words):
        return subprocess.run(
            [tools / "cosign", *words],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    assert cosign("generate-key-pair").returncode == 0
    said = pushed[1]
    options = (f"--key={tmp_path / 'cosign.key'}", "--tlog-upload=false", "--allow-http-registry")
    words = ("--name", said["name"], "--digest", said["digest"])
    release("sign", *words, "--", *options, path=tools)
    check = ("verify", "--key=cosign.pub", "--insecure-ignore-tlog", "--allow-http-registry")
    for digest in (said["digest"], *(said[arch] for arch in ARCHITECTURES)):
        done = cosign(*check, f"{said['name']}@{digest}")
        assert done.returncode == 0, done.stderr
    done = release("sign", "--name", said["name"], "--digest", "latest", check=False, path=tools)
    assert (done.returncode, "latest: is no digest" in done.stderr) == (1, True)


def test_syft_sees_all_that_we_ship_in_our_layers(docker, pushed, tmp_path, monkeypatch):
    """Of Grype, which looks up what Syft saw, no registry here has a build; what it prints: tests/release."""
    run, socket = docker
    monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
    image = f"{pushed[1]['name']}@{pushed[1]['amd64']}"
    run("pull", "-q", "--platform=linux/amd64", image)
    labels = json.loads(run("image", "inspect", "-f", "{{json .Config.Labels}}", image))
    base = json.loads(
        run("image", "inspect", "-f", "{{json .RootFS.Layers}}", scanning.base_of(labels))
    )
    syft = Path(sys.executable).with_name("syft")
    words = ("scan", f"docker:{image}", "--quiet", "-o", f"syft-json={tmp_path / 'syft.json'}")
    subprocess.run([need(str(syft)), *words], check=True, timeout=300)
    packages, sbom = (
        read(tmp_path / "syft.json", Packages),
        read(pushed[0] / "sbom-amd64.json", Sbom),
    )
    check_sees_ours(packages, base, sbom)
    packages.artifacts = [one for one in packages.artifacts if one.name != "msgspec"]
    with pytest.raises(StepError, match=r"did not see msgspec$"):
        check_sees_ours(packages, base, sbom)


def test_an_image_that_does_not_name_its_base_is_not_scanned(docker, base, monkeypatch):
    run, socket = docker
    monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
    run("pull", "-q", base)
    with pytest.raises(StepError, match="does not say what it is built on"):
        scanning.scan_image(argparse.Namespace(image=base))


def test_a_cell_is_built_on_a_digest_and_says_which(docker, registry, base, tmp_path):
    """A tag that moves between pull and build changes nothing."""
    import docker as sdk  # noqa: PLC0415  # the fixture has its name

    run, socket = docker
    run("pull", "-q", base)
    client = sdk.DockerClient(base_url=f"unix://{socket}", timeout=60)
    context = tmp_path / "context.tar"
    (tmp_path / "Dockerfile").write_text(
        'ARG BASE\nFROM ${BASE}\nARG BASE\nARG BASE_DIGEST\nLABEL from="${BASE}" digest="${BASE_DIGEST}"\n'
    )
    subprocess.run([need("tar"), "-cf", context, "-C", tmp_path, "Dockerfile"], check=True)
    job = Job(
        name="pinned",
        tag="canary-pinned:1",
        bases=(base,),
        pull=False,
        context=str(context),
        context_digest="1",
        dockerfile="Dockerfile",
        arguments={"BASE": base, "BASE_NAME": base},
    )
    events = list(build(client, job))
    client.close()
    assert events[-1].kind == "built"
    labels = json.loads(run("image", "inspect", "-f", "{{json .Config.Labels}}", "canary-pinned:1"))
    # The registry knows it by two: the one of all architectures, and, pulled for the injector, its own.
    index, whole = manifest(registry, "busybox", "1")
    assert labels["digest"] in {whole, *(one["digest"] for one in index["manifests"])}
    assert labels["from"] == f"{registry}/busybox@{labels['digest']}"


def test_every_group_of_the_bake_file_is_one_that_buildx_takes(tmp_path):
    buildx = from_debian13("docker-buildx") / "usr/libexec/docker/cli-plugins/docker-buildx"
    said = subprocess.run(
        [sys.executable, "-m", "capture_canary.cli", "images", "bake"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (tmp_path / "bake.json").write_text(said)
    file = json.loads(said)
    command = [buildx, "bake", "-f", "bake.json", "--print", *file["group"]]
    environ = {**os.environ, "REPOSITORY": "elsewhere/canary", "REVISION": "abc"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    taken = json.loads(done.stdout)["target"]
    assert set(taken) == set(file["target"])
    for name, target in taken.items():
        assert target["tags"][0].startswith(f"elsewhere/canary:{__version__}-"), name
        assert target["args"]["REVISION"] == "abc"
        assert target["platforms"] == ["linux/amd64", "linux/arm64"]
