"""The image, the files for Compose and Kubernetes, and the pages about them agree with each other."""

import re

import yaml

from harness.daemon import ROOT

DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
VERSION = re.search(r"project\(framelane VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
STAGES = set(re.findall(r"^FROM \S+ AS (\w+)", DOCKERFILE, re.MULTILINE))
KUBERNETES = ROOT / "docker" / "kubernetes"
MANIFEST = {document["kind"]: document
            for document in yaml.safe_load_all((KUBERNETES / "cpu" / "framelane.yaml").read_text())}
POD = MANIFEST["Deployment"]["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


def test_images_are_labelled_and_tagged_with_the_program_s_version():
    assert f'org.opencontainers.image.version="{VERSION}"' in DOCKERFILE
    assert CONTAINER["image"] == f"framelane:{VERSION}"
    patched = yaml.safe_load((KUBERNETES / "nvidia" / "kustomization.yaml").read_text())
    assert patched["images"] == [{"name": "framelane", "newTag": f"{VERSION}-cuda"}]


def test_every_target_that_a_file_or_a_page_names_is_a_stage_of_the_dockerfile():
    targets = {yaml.safe_load((ROOT / "docker" / name).read_text())["services"]["framelane"]["build"]["target"]
               for name in ("compose.yaml", "compose.nvidia.yaml")}
    assert targets == {"cpu", "cuda"}
    for page in ("docs/operations.md", "docs/connecting.md", "docker/Dockerfile"):
        targets |= set(re.findall(r"--target (\w+)", (ROOT / page).read_text()))
    assert targets == {"cpu", "devices", "cuda"} <= STAGES
    # The last stage is what is built if nobody names one.
    assert re.findall(r"^FROM \S+ AS (\w+)", DOCKERFILE, re.MULTILINE)[-1] == "cpu"


def test_the_configuration_of_the_manifest_is_right_and_its_secrets_are_in_the_manifest(cli, tmp_path):
    text = MANIFEST["ConfigMap"]["data"]["framelane.yaml"]
    (tmp_path / "framelane.yaml").write_text(text)
    done = cli("check", "--no-env", "-c", tmp_path / "framelane.yaml")
    assert done.returncode == 0, done.stderr
    (mounted,) = [m["mountPath"] for m in CONTAINER["volumeMounts"] if m["name"] == "secrets"]
    assert mounted == "/run/secrets/framelane"
    assert set(re.findall(r"\bframelane/([\w-]+)", text)) == set(MANIFEST["Secret"]["stringData"])


def test_what_the_pod_mounts_exists_and_is_where_the_image_has_it():
    volumes = {volume["name"]: volume for volume in POD["spec"]["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert set(volumes) == set(mounts)
    assert volumes["configuration"]["configMap"]["name"] == MANIFEST["ConfigMap"]["metadata"]["name"]
    assert volumes["secrets"]["secret"]["secretName"] == MANIFEST["Secret"]["metadata"]["name"]
    claim = volumes["recordings"]["persistentVolumeClaim"]["claimName"]
    assert claim == MANIFEST["PersistentVolumeClaim"]["metadata"]["name"]
    assert f"VOLUME {mounts['recordings']}\n" in DOCKERFILE
    assert f"COPY docker/framelane.yaml {mounts['configuration']}/\n" in DOCKERFILE


def test_the_pod_may_do_no_more_than_the_image_needs():
    (user,) = set(re.findall(r"^USER (990:990)", DOCKERFILE, re.MULTILINE))
    security = POD["spec"]["securityContext"]
    assert f"{security['runAsUser']}:{security['runAsGroup']}" == user and security["fsGroup"] == 990
    assert security["runAsNonRoot"] and security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert POD["spec"]["automountServiceAccountToken"] is False


def test_the_service_and_the_probes_find_the_admin_listener():
    selector = MANIFEST["Service"]["spec"]["selector"]
    assert selector == MANIFEST["Deployment"]["spec"]["selector"]["matchLabels"] == POD["metadata"]["labels"]
    (port,) = CONTAINER["ports"]
    listen = yaml.safe_load(MANIFEST["ConfigMap"]["data"]["framelane.yaml"])["admin"]["listen"]
    assert f"EXPOSE {port['containerPort']}\n" in DOCKERFILE
    assert listen == f"0.0.0.0:{port['containerPort']}"
    assert [one["targetPort"] for one in MANIFEST["Service"]["spec"]["ports"]] == [port["name"]]
    probes = {name: CONTAINER[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    assert all(probe["port"] == port["name"] for probe in probes.values())


def test_the_variant_with_a_gpu_patches_what_the_manifest_has():
    (patch,) = yaml.safe_load((KUBERNETES / "nvidia" / "kustomization.yaml").read_text())["patches"]
    patched = yaml.safe_load(patch["patch"])
    assert (patched["kind"], patched["metadata"]["name"]) == ("Deployment", patch["target"]["name"])
    (container,) = patched["spec"]["template"]["spec"]["containers"]
    assert container["name"] == CONTAINER["name"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1}


def test_every_alert_has_its_section_which_says_how_urgent_it_is():
    rules = yaml.safe_load((ROOT / "docker" / "prometheus" / "rules.yml").read_text())["groups"][0]["rules"]
    page = (ROOT / "docs" / "alerts.md").read_text()
    sections = dict(re.findall(r"^## (Framelane\w+)\n\n(\w+)", page, re.MULTILINE))
    assert sections == {rule["alert"]: rule["labels"]["severity"].capitalize() for rule in rules if "alert" in rule}


def test_every_configuration_of_the_recipes_is_right(cli, tmp_path):
    page = (ROOT / "docs" / "connecting.md").read_text()
    shown = [text for text in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
             if "feeds:" in text]
    assert len(shown) == 7
    for text in shown:
        (tmp_path / "shown.yaml").write_text(text)
        done = cli("check", "--no-env", "-c", tmp_path / "shown.yaml")
        assert done.returncode == 0, done.stderr + text
        assert "warning" not in done.stderr, done.stderr
