"""What is shipped beside the program: that its parts agree with each other."""

import re

import yaml

from harness.daemon import ROOT


def output_urls(config):
    for feed in [config.get("defaults", {}), *config["feeds"].values()]:
        for output in (feed.get("outputs") or {}).values():
            if output:
                yield output["url"]


def shown_in(page):
    """The configurations shown in a page of the documentation."""
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
    for link in links:
        assert (ROOT / link).exists(), link
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages - set(links) == {"docs/packaging-tests.md"}
