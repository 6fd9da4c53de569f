"""The files that are shipped with the program agree with each other."""

import re

import yaml

from harness.daemon import ROOT


def output_urls(config):
    for feed in [config.get("defaults", {}), *config["feeds"].values()]:
        for output in (feed.get("outputs") or {}).values():
            if output:
                yield output["url"]


def shown_in(page):
    """The configurations that a page of the documentation shows."""
    for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        shown = yaml.safe_load(text)
        if isinstance(shown, dict) and "feeds" in shown:
            yield shown


def test_the_shipped_configurations_write_where_the_unit_and_the_image_may():
    configs = [*shown_in(ROOT / "README.md"),
               *(yaml.safe_load((ROOT / path).read_text())
                 for path in ("config/framelane.example.yaml", "docker/framelane.yaml"))]
    assert len(configs) == 3
    for config in configs:
        urls = list(output_urls(config))
        assert urls
        for url in urls:
            assert url.startswith("/var/lib/framelane/"), url


def test_a_fifo_of_the_example_lies_where_no_stop_removes_it():
    example = yaml.safe_load((ROOT / "config" / "framelane.example.yaml").read_text())
    kept = re.findall(r"^d +(\S+)", (ROOT / "systemd" / "framelane.tmpfiles").read_text(), re.MULTILINE)
    fifos = [feed["input"]["url"] for feed in example["feeds"].values()
             if feed["input"]["url"].endswith(".fifo")]
    assert fifos and all(fifo.rpartition("/")[0] in kept for fifo in fifos)


def test_every_page_that_the_readme_links_to_exists_and_every_page_for_users_is_linked():
    links = re.findall(r"\]\(([^):]+)\)", (ROOT / "README.md").read_text())
    linked = set()
    for link in links:
        page, _, heading = link.partition("#")
        linked.add(page)
        assert (ROOT / page).exists(), link
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE) if heading else []
        anchors = [re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings]
        assert not heading or heading in anchors, link
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages - linked == {"docs/packaging-tests.md"}


def test_what_compose_mounts_and_builds_from_exists():
    folder = ROOT / "docker"
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    mounted = []
    for name, service in compose["services"].items():
        for source, target, *_ in (volume.split(":") for volume in service["volumes"]):
            assert target.startswith("/"), (name, target)
            if source.startswith("."):
                mounted.append(source)
                assert (folder / source).is_file(), (name, source)
            else:
                assert source in compose["volumes"], (name, source)
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:"), (name, port)  # there is no password
    assert len(mounted) == 3
    build = compose["services"]["framelane"]["build"]
    context = folder / build["context"]
    dockerfile = (context / build["dockerfile"]).read_text()
    arguments = set(re.findall(r"^ARG (\w+)", dockerfile, re.MULTILINE))
    assert set(build["args"]) <= arguments
    for source in re.findall(r"^COPY (?!--from)(\S+) ", dockerfile, re.MULTILINE):
        assert (context / source).exists(), source
    rules = yaml.safe_load((folder / "prometheus.yml").read_text())["rule_files"]
    assert [f"./{rule}" for rule in rules] == [m for m in mounted if "alerts" in m]


def test_no_page_and_no_file_publishes_the_admin_port_to_everybody():
    for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md", *(ROOT / "docker").iterdir()]:
        for published in re.findall(r"-p (\S+:9853)\b", path.read_text()):
            assert published.startswith("127.0.0.1:"), (path, published)


def test_the_image_runs_a_configuration_that_is_right(cli):
    done = cli("check", "-c", ROOT / "docker" / "framelane.yaml")
    assert done.returncode == 0, done.stderr


def test_the_unit_s_groups_are_made_by_its_sysusers():
    unit = (ROOT / "systemd" / "framelane.service.in").read_text()
    groups = re.search(r"^SupplementaryGroups=(.*)", unit, re.MULTILINE).group(1).split()
    made = re.findall(r"^g +(\S+)", (ROOT / "systemd" / "framelane.sysusers").read_text(), re.MULTILINE)
    assert set(groups) <= set(made)
