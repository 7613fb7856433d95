"""deploy/: its manifests are valid, refer to what exists, and agree with the code."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.fleet import configured, has_haproxy
from mcp_memory.core.config import PREFIX, Settings
from mcp_memory.server import http_middleware
from mcp_memory.server.transports import serve
from scripts.doc_examples import ROOT
from tests.test_docs import exists

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
FILES = sorted([*DEPLOY.glob("*.*"), *KUBERNETES.glob("*.*")])
MANIFESTS: list[dict[str, Any]] = [
    manifest
    for file in sorted(KUBERNETES.glob("*.yaml"))
    if file.name != "kustomization.yaml"
    for manifest in yaml.safe_load_all(file.read_text())
]
SERVICE = DEPLOY / "mcp-memory.service"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
KUSTOMIZATION = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
PORT = inspect.signature(serve).parameters["port"].default
VERSION = "1.34"
"""Of the schema of Kubernetes."""


def name_of(manifest: dict[str, Any]) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def named(kind: str) -> set[str]:
    return {manifest["metadata"]["name"] for manifest in MANIFESTS if manifest["kind"] == kind}


def pods() -> Iterator[dict[str, Any]]:
    yield from (manifest["spec"]["template"] for manifest in MANIFESTS if "template" in manifest.get("spec", {}))


def containers() -> Iterator[dict[str, Any]]:
    yield from (container for pod in pods() for container in pod["spec"]["containers"])


def values(of: Any, key: str) -> Iterator[Any]:
    """Every value of a key, however deep."""
    match of:
        case dict():
            for name, value in of.items():
                if name == key:
                    yield value
                yield from values(value, key)
        case list():
            for item in of:
                yield from values(item, key)
        case _:
            pass


@pytest.mark.parametrize("manifest", MANIFESTS, ids=name_of)
def test_a_manifest_has_the_published_schema(manifest: dict[str, Any]) -> None:
    if find_spec("kubernetes_validate") is None:
        pytest.skip("needs kubernetes-validate, which the nightly run installs")
    if manifest["apiVersion"].startswith("postgresql.cnpg.io/"):
        pytest.skip("the operator has its own schema")
    import kubernetes_validate

    kubernetes_validate.validate(manifest, VERSION, strict=True)


def test_the_kustomization_lists_every_file() -> None:
    files = {file.name for file in KUBERNETES.iterdir()} - {"kustomization.yaml"}
    generated = {name for config in KUSTOMIZATION["configMapGenerator"] for name in config["files"]}
    assert {*KUSTOMIZATION["resources"], *generated} == files


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_variables_of_a_file_are_settings(file: Path) -> None:
    variables = re.findall(rf"\b{PREFIX}([A-Z_]*[A-Z])", file.read_text())
    assert {variable.lower() for variable in variables} <= set(Settings.model_fields)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_service(tmp_path: Path) -> None:
    text = SERVICE.read_text()
    (command,) = re.findall(r"^ExecStart=(\S+)", text, re.MULTILINE)
    service = tmp_path / SERVICE.name
    service.write_text(text.replace(command, sys.executable))
    checked = subprocess.run(["systemd-analyze", "verify", service], capture_output=True, text=True, check=False)
    assert (checked.returncode, SERVICE.name in checked.stderr) == (0, False), checked.stderr


def test_the_commands_exist() -> None:
    given = [re.findall(r"^ExecStart=\S+ (.*)$", SERVICE.read_text(), re.MULTILINE)[0].split()]
    given += [container["args"] for container in containers() if "args" in container]
    given += [service["command"].split() for service in COMPOSE["services"].values() if "command" in service]
    assert len(given) >= 4
    for arguments in given:
        assert exists([str(word) for word in arguments]), arguments


def test_ports_and_probes_are_those_of_the_server() -> None:
    assert {port["containerPort"] for container in containers() for port in container.get("ports", ())} == {PORT}
    assert {
        port["port"] for manifest in MANIFESTS if manifest["kind"] == "Service" for port in manifest["spec"]["ports"]
    } == {PORT}
    probes = {probe["path"] for probe in values(MANIFESTS, "httpGet")}
    assert probes == {http_middleware._LIVE, http_middleware._READY}  # pyright: ignore[reportPrivateUsage]
    for file in (DEPLOY / "haproxy.cfg", KUBERNETES / "haproxy.cfg"):
        assert set(re.findall(r":(\d+)\b", file.read_text())) - {"443"} == {str(PORT)}
        assert re.findall(r"GET (\S+)", file.read_text()) == ["/readyz"]


def test_what_a_manifest_refers_to_exists() -> None:
    made_elsewhere = {"memory", "memory-tls", "postgres-app"}  # by hand, by cert-manager, by the operator
    secrets = {ref["name"] for ref in values(MANIFESTS, "secretKeyRef")} | {*values(MANIFESTS, "secretName")}
    assert secrets == made_elsewhere
    maps = {ref["name"] for key in ("configMapRef", "configMap") for ref in values(MANIFESTS, key)}
    assert maps == named("ConfigMap") | {config["name"] for config in KUSTOMIZATION["configMapGenerator"]}
    assert {backend["service"]["name"] for backend in values(MANIFESTS, "backend")} <= named("Service")
    labels = [pod["metadata"]["labels"] for pod in pods()] + [{"cnpg.io/cluster": name} for name in named("Cluster")]
    selectors = [
        *values(MANIFESTS, "matchLabels"),
        *(s for s in values(MANIFESTS, "selector") if "matchLabels" not in s),
    ]
    for selector in selectors:
        assert selector in labels
    (server,) = set(re.findall(r"server-template \S+ \d+ (\S+):", (KUBERNETES / "haproxy.cfg").read_text()))
    assert server == f"servers.{KUSTOMIZATION['namespace']}.svc.cluster.local"
    hosts = set(re.findall(r"@([\w-]+)/", " ".join(values(MANIFESTS, "value"))))
    assert hosts == {f"{name}-rw" for name in named("Cluster")}


def test_pods_run_without_rights_as_the_user_of_the_image() -> None:
    (user,) = re.findall(r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    for pod in pods():
        of_pod = pod["spec"]["securityContext"]
        ours = [container for container in pod["spec"]["containers"] if container["image"] == "mcp-memory"]
        assert of_pod["runAsNonRoot"]
        assert not ours or of_pod["runAsUser"] == int(user)
        assert pod["spec"]["automountServiceAccountToken"] is False
    for container in containers():
        of_container = container["securityContext"]
        assert of_container["readOnlyRootFilesystem"]
        assert not of_container["allowPrivilegeEscalation"]
        assert of_container["capabilities"] == {"drop": ["ALL"]}
        assert {"requests", "limits"} <= container["resources"].keys()


def test_the_configurations_of_haproxy_differ_only_in_how_servers_are_found() -> None:
    def rules(file: Path) -> list[str]:
        text = re.sub(r"^resolvers .*?\n\n", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
        return [line for line in text.splitlines() if line and not re.match(r"#|\s+server", line)]

    assert rules(KUBERNETES / "haproxy.cfg") == rules(DEPLOY / "haproxy.cfg")
    *defaults, backend = (
        "\n".join(rules(DEPLOY / "haproxy.cfg")).partition("\nbackend unready")[0].split("\nbackend servers\n")
    )
    shards = "\n".join(rules(DEPLOY / "shards.cfg")).partition("\nbackend unready")[0]
    assert shards.startswith(defaults[0].partition("\n    use_backend")[0])
    assert re.split(r"\nbackend shard-\d\n", shards)[1:] == [backend, backend]


@pytest.mark.skipif(not has_haproxy(), reason="haproxy is not installed")
def test_haproxy_accepts_both_configurations(tmp_path: Path) -> None:
    local = tmp_path / "haproxy.cfg"
    local.write_text(configured(8765, [f"http://127.0.0.1:{port}" for port in (1, 2, 3)]))
    for file in (local, KUBERNETES / "haproxy.cfg"):
        checked = subprocess.run(["haproxy", "-c", "-f", file], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        assert "WARNING" not in checked.stderr


def test_the_compose_file_refers_to_what_it_has() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        needed = service.get("depends_on", [])
        assert {*needed} <= services.keys()
        for name, condition in needed.items() if isinstance(needed, dict) else ():
            if condition["condition"] == "service_healthy":
                assert "healthcheck" in services[name]
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists()
    assert set(values(services, "source")) == COMPOSE["configs"].keys()
    servers = re.findall(r"server (\w+) (\w+):", (DEPLOY / "haproxy.cfg").read_text())
    assert all(name == host and host in services for name, host in servers)


def test_the_scripts_are_clean() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    scripts = [config["content"] for config in COMPOSE["configs"].values() if "content" in config]
    scripts += [file.read_text() for file in DEPLOY.glob("*.sh")]
    for entrypoint in values(COMPOSE["services"], "entrypoint"):
        *_, script = shlex.split(entrypoint) if isinstance(entrypoint, str) else entrypoint
        scripts.append(script)
    assert len(scripts) >= 2
    for script in scripts:
        text = script.replace("$$", "$")
        checked = subprocess.run(
            ["shellcheck", "-s", "sh", "-"], input=text, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout
