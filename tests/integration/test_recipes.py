"""The recipes of docs/recipes.md: their configurations are right, and their pictures are there."""

import re

import pytest

from harness.daemon import ROOT

DOCS = ROOT / "docs"
SECTIONS = re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", (DOCS / "recipes.md").read_text(), re.MULTILINE)


def pictures(text):
    return re.findall(r"!\[.+?\]\(pictures/(.+?)\)", text)


@pytest.mark.parametrize("text", [text for _, text in SECTIONS], ids=[name for name, _ in SECTIONS])
def test_a_recipe_has_a_picture_and_a_configuration_that_is_right(cli, tmp_path, text):
    assert pictures(text)
    (config,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    file = tmp_path / "recipe.yaml"
    file.write_text(config.replace("/etc/framelane/", f"{DOCS}/pictures/"))
    done = cli("check", "-c", file)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr


def test_every_picture_is_there_is_shown_and_is_small():
    shown = {name for page in DOCS.glob("*.md") for name in pictures(page.read_text())}
    sizes = {file.name: file.stat().st_size for file in (DOCS / "pictures").iterdir()
             if file.suffix in (".jpg", ".svg") and file.stem != "logo"}  # recipes draw the logo
    assert shown == set(sizes)
    assert max(sizes.values()) <= 40_000 and sum(sizes.values()) <= 400_000


def test_links_between_the_pages_lead_to_headings():
    for page in DOCS.glob("*.md"):
        for target, heading in re.findall(r"\]\((\w[\w.-]*\.md)?#([\w-]+)\)", page.read_text()):
            headings = re.findall(r"^#+ (.+)$", (DOCS / (target or page.name)).read_text(), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings]
            assert heading in anchors, (page.name, target, heading)
